//! Runs a fuzz target over its corpus and mutations without a fuzzer: the same inputs on every
//! machine. Crates with targets include this file in their tests. Put a format's new words, for
//! mutations, in its corpus.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Bytes that matter to formats, and limits of arithmetic.
const TURNING: [&[u8]; 24] = [
    b"\0",
    b"\x01",
    b"\x7f",
    b"\x80",
    b"\xfb",
    b"\xff",
    b"\xff\xff\xff\xff",
    b"\0\0\0\x7f",
    b"\x7f\0\0\0",
    b"0",
    b"-1",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"18446744073709551616",
    b"1e308",
    b"NaN",
    b"0.000001",
    b"\n",
    b" ",
    b"\t",
    b"\"",
    b"'",
    b"\\",
    "é".as_bytes(),
];

/// In bytes, unless a file of the corpus is longer.
const LONGEST: usize = 16 << 10;

/// Over the files of `fuzz/corpus/NAME` and `n_mutations` of them, or as many as `FUZZ_MUTATIONS`
/// says.
pub(crate) fn run(name: &str, n_mutations: u64, target: fn(&[u8])) {
    let corpus = corpus(name);
    for (path, input) in &corpus {
        try_input(name, &path.display().to_string(), input, target);
    }
    let words = words(&corpus);
    #[expect(clippy::disallowed_methods, reason = "a longer search is asked for by hand")]
    let wanted = std::env::var("FUZZ_MUTATIONS").ok().and_then(|number| number.parse().ok());
    for number in 0..wanted.unwrap_or(n_mutations) {
        let input = mutated(&corpus, &words, &mut Random(number));
        try_input(name, &format!("mutation {number}"), &input, target);
    }
}

fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let files = std::fs::read_dir(&folder).expect("the target has a corpus");
    let mut paths: Vec<PathBuf> =
        files.map(|file| file.expect("it can be listed").path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let bytes = std::fs::read(&path).expect("an input can be read");
        (path, bytes)
    };
    paths.into_iter().map(read).collect()
}

/// A panic's input is kept in a file, which the message names.
fn try_input(name: &str, what: &str, input: &[u8], target: fn(&[u8])) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) else { return };
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
    let digest = input
        .iter()
        .fold(0_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    let path = std::env::temp_dir().join(format!("{name}-{digest:016x}"));
    let mut message = format!("the target {name} fails with {what}: {text}");
    match std::fs::write(&path, input) {
        Ok(()) => write!(
            message,
            "\nThe input is in {}; mend the fault and copy it to fuzz/corpus/{name}.",
            path.display()
        ),
        Err(error) => write!(message, "\nThe input could not be kept ({error})."),
    }
    .expect("a text takes all");
    panic!("{message}");
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `n`; 0 for 0.
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// Most often a short one.
    fn part(&mut self, bytes: &[u8]) -> std::ops::Range<usize> {
        let start = self.below(bytes.len() + 1);
        let longest = if self.below(4) == 0 { bytes.len() } else { 16 };
        start..(start + self.below(longest + 1)).min(bytes.len())
    }
}

/// Each once: names, numbers, and what stands between two of them on a line.
fn words(corpus: &[(PathBuf, Vec<u8>)]) -> Vec<&[u8]> {
    let mut words: Vec<&[u8]> = TURNING.to_vec();
    for (_, input) in corpus {
        words.extend(input.chunk_by(|a, b| class(*a) == class(*b)).filter(|word| word.len() < 64));
    }
    words.sort_unstable();
    words.dedup();
    words
}

fn class(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' => 1,
        b'\n' => 2,
        _ => 3,
    }
}

/// One to four changes.
fn mutated(corpus: &[(PathBuf, Vec<u8>)], words: &[&[u8]], random: &mut Random) -> Vec<u8> {
    let pick = |random: &mut Random| corpus[random.below(corpus.len())].1.as_slice();
    let mut input = pick(random).to_vec();
    let longest = input.len().max(LONGEST);
    for _ in 0..=random.below(4) {
        change(&mut input, pick(random), words, random);
    }
    input.truncate(longest);
    input
}

fn change(input: &mut Vec<u8>, other: &[u8], words: &[&[u8]], random: &mut Random) {
    let at = random.below(input.len());
    let word = words[random.below(words.len())];
    match random.below(9) {
        0 if at < input.len() => input[at] ^= 1 << random.below(8),
        1 if at < input.len() => input[at] = random.next() as u8,
        2 => input.truncate(at),
        3 => drop(input.drain(random.part(input))),
        4 => {
            let copy = input[random.part(input)].to_vec();
            input.splice(at..at, copy);
        }
        5 => drop(input.splice(at..at, word.iter().copied())),
        // A word replaces another of its class, as lengths, names and numbers change as a whole.
        6 => {
            let class_there = input.get(at).map(|byte| class(*byte));
            let is_of_it = |byte: &&u8| Some(class(**byte)) == class_there;
            let end = at + input[at..].iter().take_while(is_of_it).count();
            let start = at - input[..at].iter().rev().take_while(is_of_it).count();
            input.splice(start..end, word.iter().copied());
        }
        // Overwrites bytes, so that offsets stay.
        7 => {
            let end = (at + word.len()).min(input.len());
            input.splice(at..end, word.iter().copied());
        }
        // The rest of a line, or of everything, from another input.
        _ => {
            let from = &other[random.below(other.len()).min(other.len())..];
            let rest_of_line =
                |bytes: &[u8]| bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
            match random.below(2) {
                0 => drop(input.splice(
                    at..at + rest_of_line(&input[at..]),
                    from[..rest_of_line(from)].iter().copied(),
                )),
                _ => drop(input.splice(at.., from.iter().copied())),
            }
        }
    }
}
