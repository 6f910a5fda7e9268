//! Response times of each second, from the interval logs, as sparse counts: a second has a few
//! hundred different times of the 23 000 places of a histogram's table.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::{Decompress, FlushDecompress, Status};

use crate::EncodedHistogram;
use crate::error::{ReadError, ReadResult};
use crate::files::{Log, unpacked_most, unpacks_to_too_much};
use crate::reader::Checksums;

#[derive(Clone, Debug, PartialEq)]
pub struct SecondOfTimes<'a> {
    pub step: usize,
    pub kind: &'a str,
    /// False in warm-up.
    pub is_measured: bool,
    /// Since the run's clock began.
    pub start_s: f64,
    pub length_s: f64,
    /// Nanoseconds (the middle of a histogram bucket) and count, rising.
    pub counts: &'a [(u64, u64)],
}

type Visit<'a> = &'a mut dyn FnMut(&SecondOfTimes<'_>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEnd {
    Whole,
    /// Cut or damaged; read as far as it goes.
    Cut,
    Missing,
}

/// Hands each second and kind of a trial's response times to `visit`; a trial without a log has
/// none. Fails if the log cannot be opened, differs from its checksum, or unpacks to far too much.
pub fn read_times(folder: &Path, visit: Visit<'_>) -> ReadResult<LogEnd> {
    let (packed, plain) = (folder.join("intervals.hlog.gz"), folder.join("intervals.hlog"));
    let is_there = |path: &Path| std::fs::symlink_metadata(path).is_ok();
    let path = if is_there(&packed) { packed } else { plain };
    if !is_there(&path) {
        return Ok(LogEnd::Missing);
    }
    let mut log = Log::open(&path).map_err(|error| ReadError::new(&path, error))?;
    let mut room = Room { left: log.unpacked_most(), ..Room::new() };
    let (mut line, mut counts) = (Vec::new(), Vec::new());
    // What is whole before a cut counts.
    loop {
        match log.read_line(&mut line) {
            Ok(0) => break,
            Ok(_) if line.ends_with(b"\n") => {}
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                return Err(ReadError::new(&path, error));
            }
            Ok(_) | Err(_) => return Ok(LogEnd::Cut),
        }
        if line.starts_with(RESPONSE.as_bytes())
            && let Ok(text) = std::str::from_utf8(line.trim_ascii_end())
        {
            read_line(text, (&mut room, &mut counts), visit);
        }
        if room.left == 0 {
            return Err(ReadError::new(&path, unpacks_to_too_much()));
        }
        line.clear();
    }
    let digest = log.digest().map_err(|error| ReadError::new(&path, error))?;
    Checksums::read(folder)?.check(&path, &digest)?;
    Ok(LogEnd::Whole)
}

/// As [`read_times`], for lines of a log that is being written. Fails if they unpack to far too
/// much; what comes before was handed on.
pub fn read_times_lines(lines: &[String], visit: Visit<'_>) -> Result<(), String> {
    let n_bytes = lines.iter().map(|line| line.len() as u64).sum();
    let mut room = Room { left: unpacked_most(n_bytes), ..Room::new() };
    let mut counts = Vec::new();
    for line in lines {
        read_line(line, (&mut room, &mut counts), visit);
        if room.left == 0 {
            return Err(unpacks_to_too_much());
        }
    }
    Ok(())
}

fn read_line(line: &str, (room, counts): (&mut Room, &mut Vec<(u64, u64)>), visit: Visit<'_>) {
    let Some((second, histogram)) = parse(line) else { return };
    counts.clear();
    if room.walk(histogram, |time, n| counts.push((time, n))).is_some() {
        visit(&SecondOfTimes { counts, ..second });
    }
}

const RESPONSE: &str = "Tag=response/";

/// `None` for lines of another kind.
fn parse(line: &str) -> Option<(SecondOfTimes<'_>, &str)> {
    let mut fields = line.splitn(5, ',');
    let tag = fields.next()?.strip_prefix(RESPONSE)?;
    let start_s = fields.next()?.parse().ok()?;
    let length_s = fields.next()?.parse().ok()?;
    let histogram = fields.nth(1)?;
    let (rest, phase) = tag.rsplit_once('/')?;
    let (kind, step) = rest.rsplit_once("/step")?;
    let step = step.parse().ok()?;
    let is_measured = phase == "measure";
    Some((SecondOfTimes { step, kind, is_measured, start_s, length_s, counts: &[] }, histogram))
}

impl EncodedHistogram {
    /// Hands each time in nanoseconds (the middle of its bucket) and its count to `visit`, rising.
    /// `None` if the text is no histogram; then nothing handed on may be used.
    pub fn walk(&self, visit: &mut dyn FnMut(u64, u64)) -> Option<()> {
        if self.0.is_empty() { Some(()) } else { Room::new().walk(&self.0, visit) }
    }
}

/// First words of HdrHistogram's V2 encoding, deflated and plain, without the word's size.
const DEFLATED: u32 = 0x1c84_9304;
const PLAIN: u32 = 0x1c84_9303;
/// Before the counts.
const HEAD: usize = 40;
/// Bits of the first word that identify the encoding.
const COOKIE: u32 = !0xf0;

/// Digits, shortest and longest time in the head of Dyno's histograms. Other digits are not Dyno's:
/// a few bytes would stand for a table of 50 MB. Imported histograms grow with their longest time.
const BOUNDS: (u32, u64, u64) = (3, 1, 3_600_000_000_000);

/// More than 56,320 places of nine bytes, which any time fits into.
const PLAIN_MOST: usize = 1 << 19;

/// Buffers for unpacking one histogram after the other.
pub(crate) struct Room {
    packed: Vec<u8>,
    plain: Vec<u8>,
    inflate: Decompress,
    /// How many bytes may still be unpacked.
    left: u64,
}

impl Room {
    pub(crate) fn new() -> Room {
        let (packed, plain) = (Vec::new(), vec![0; 1 << 14]);
        Room { packed, plain, inflate: Decompress::new(true), left: u64::MAX }
    }

    /// Inflated V2 encoding.
    pub(crate) fn plain(&mut self, text: &str) -> Option<&[u8]> {
        self.packed.clear();
        STANDARD.decode_vec(text, &mut self.packed).ok()?;
        if word(&self.packed, 0)? & COOKIE != DEFLATED {
            return None;
        }
        let n = self.unpack()?;
        let plain = &self.plain[..n];
        let (digits, lowest, highest) = BOUNDS;
        let is_own =
            (word(plain, 12)?, long(plain, 16)?) == (digits, lowest) && long(plain, 24)? >= highest;
        if word(plain, 0)? & COOKIE != PLAIN || !is_own {
            return None;
        }
        // The stated length decides how much is allocated, so it must be the real one.
        let payload = word(plain, 4)? as usize;
        (plain.len() >= HEAD && payload <= plain.len() - HEAD).then_some(plain)
    }

    fn walk(&mut self, text: &str, visit: impl FnMut(u64, u64)) -> Option<()> {
        let plain = self.plain(text)?;
        let payload = plain.get(HEAD..HEAD + word(plain, 4)? as usize)?;
        walk_payload(payload, visit)
    }

    /// Returns the inflated length. All at once, straight to its place.
    fn unpack(&mut self) -> Option<usize> {
        let deflated = self.packed.get(8..)?;
        loop {
            self.inflate.reset(true);
            let status =
                self.inflate.decompress(deflated, &mut self.plain, FlushDecompress::Finish).ok()?;
            let n = self.inflate.total_out() as usize;
            self.left = self.left.saturating_sub(n as u64);
            match status {
                Status::StreamEnd => return Some(n),
                // There was room left, so the text was cut.
                _ if n < self.plain.len() || n >= PLAIN_MOST => return None,
                _ => self.plain.resize(2 * n, 0),
            }
        }
    }
}

fn walk_payload(payload: &[u8], mut visit: impl FnMut(u64, u64)) -> Option<()> {
    let (mut at, mut index) = (0, 0_u64);
    while at < payload.len() {
        let count = zigzag(payload, &mut at)?;
        if count < 0 {
            index = index.checked_add(count.unsigned_abs())?;
            continue;
        }
        if count > 0 {
            visit(middle(index)?, count.unsigned_abs());
        }
        index += 1;
    }
    Some(())
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some((u64::from(word(bytes, at)?) << 32) | u64::from(word(bytes, at + 4)?))
}

/// ZigZag LEB128 of at most nine bytes, the ninth of which is whole.
fn zigzag(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let first = *bytes.get(*at)?;
    if first & 0x80 == 0 {
        *at += 1;
        return Some(i64::from(first >> 1) ^ -i64::from(first & 1));
    }
    let mut value = 0_u64;
    for place in 0..9 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        if place == 8 {
            value |= u64::from(byte) << 56;
            break;
        }
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

/// log2 of half a bucket's places, with three digits.
const HALF: u32 = 10;

/// As HdrHistogram's `median_equivalent`.
fn middle(index: u64) -> Option<u64> {
    let bucket = (index >> HALF).saturating_sub(1);
    let place = if bucket == 0 && index < (1 << HALF) {
        index
    } else {
        (index & ((1 << HALF) - 1)) + (1 << HALF)
    };
    let shift = u32::try_from(bucket).ok()?;
    if shift > 62 || place.leading_zeros() <= shift {
        return None;
    }
    Some((place << shift) + ((1_u64 << shift) >> 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::new_histogram;

    fn walked(text: &EncodedHistogram) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        text.walk(&mut |time, n| found.push((time, n))).expect("it is a histogram");
        found
    }

    proptest::proptest! {
        #[test]
        fn walking_sees_what_decoding_sees(times in proptest::collection::vec(1_u64..3_000_000_000_000, 0..300)) {
            let mut histogram = new_histogram();
            times.iter().for_each(|time| histogram.record(*time).unwrap());
            let expected: Vec<(u64, u64)> = histogram
                .iter_recorded()
                .map(|v| (histogram.median_equivalent(v.value_iterated_to()), v.count_at_value()))
                .collect();
            proptest::prop_assert_eq!(walked(&EncodedHistogram::encode(&histogram)), expected);
        }

        #[test]
        fn no_text_makes_walking_panic(text in ".{0,200}", bytes: Vec<u8>) {
            let _ = EncodedHistogram(text).walk(&mut |_, _| {});
            let mut packed = DEFLATED.to_be_bytes().to_vec();
            packed.extend(bytes);
            let _ = EncodedHistogram(STANDARD.encode(packed)).walk(&mut |_, _| {});
        }
    }

    #[test]
    fn logs_that_are_cut_or_missing_are_told() {
        use std::io::Write;
        let run = tempfile::tempdir().unwrap();
        let folder = run.path().join("trials/001-a-1");
        std::fs::create_dir_all(&folder).unwrap();
        let read = || {
            let mut n = 0;
            (read_times(&folder, &mut |_| n += 1).unwrap(), n)
        };
        assert_eq!(read(), (LogEnd::Missing, 0));
        let mut histogram = new_histogram();
        histogram.record(1_000).unwrap();
        let text = EncodedHistogram::encode(&histogram).0;
        let lines: String = (0..200)
            .map(|i| format!("Tag=response/read/step0/measure,{i}.000,1.000,0.001,{text}\n"))
            .collect();
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(lines.as_bytes()).unwrap();
        let packed = packed.finish().unwrap();
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
        write("intervals.hlog", &lines.as_bytes()[..lines.len() - 3]);
        assert_eq!(read(), (LogEnd::Cut, 199));
        write("intervals.hlog.gz", &packed);
        assert_eq!(read(), (LogEnd::Whole, 200));
        write("intervals.hlog.gz", &packed[..packed.len() / 2]);
        assert_eq!(read().0, LogEnd::Cut);
    }

    #[test]
    fn a_log_whose_histograms_unpack_to_far_too_much_is_refused() {
        use std::io::Write;
        let run = tempfile::tempdir().unwrap();
        let folder = run.path().join("trials/001-a-1");
        std::fs::create_dir_all(&folder).unwrap();
        let lines = |payload: &[u8], n: usize| {
            let EncodedHistogram(text) = packed(BOUNDS, payload);
            vec![format!("Tag=response/read/step0/measure,0.000,1.000,0.001,{text}"); n]
        };
        let read = |lines: &[String]| {
            let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packer.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
            std::fs::write(folder.join("intervals.hlog.gz"), packer.finish().unwrap()).unwrap();
            read_times(&folder, &mut |_| {}).map_err(|error| error.to_string())
        };
        assert_eq!(read(&lines(&[2, 2], 200)), Ok(LogEnd::Whole));
        // Zeros beyond all places: what follows is unpacked, and not walked.
        let beyond = [&[0xff; 8][..], &[0x7f], &[2; 500_000]].concat();
        let many = lines(&beyond, 200);
        assert!(read(&many).unwrap_err().contains("unpacks to more than 100 times"));
        assert!(read_times_lines(&many, &mut |_| {}).is_err());
        assert!(read_times_lines(&many[..10], &mut |_| {}).is_ok());
    }

    fn packed((digits, lowest, highest): (u32, u64, u64), payload: &[u8]) -> EncodedHistogram {
        use std::io::Write;
        let mut plain = (PLAIN | 0x10).to_be_bytes().to_vec();
        for number in [payload.len() as u32, 0, digits] {
            plain.extend(number.to_be_bytes());
        }
        plain.extend(lowest.to_be_bytes());
        plain.extend(highest.to_be_bytes());
        plain.extend(1.0_f64.to_be_bytes());
        plain.extend(payload);
        let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(&plain).unwrap();
        let mut packed = DEFLATED.to_be_bytes().to_vec();
        packed.extend([0; 4]);
        packed.extend(packer.finish().unwrap());
        EncodedHistogram(STANDARD.encode(packed))
    }

    #[test]
    fn a_damaged_payload_is_told_and_does_not_panic() {
        let check = |payload: &[u8]| packed(BOUNDS, payload).walk(&mut |_, _| {});
        assert_eq!(check(&[2, 2]), Some(()));
        // Zeros beyond all places, then a count.
        assert_eq!(check(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 2]), None);
        assert_eq!(check(&[0x80]), None);
    }

    #[test]
    fn a_few_bytes_stand_for_no_large_table_and_no_long_walk() {
        let check = |bounds: (u32, u64, u64), payload: &[u8], is_taken: bool| {
            let text = packed(bounds, payload);
            assert_eq!(text.decode().is_some(), is_taken, "decoded: {bounds:?}");
            assert_eq!(text.walk(&mut |_, _| {}).is_some(), is_taken, "walked: {bounds:?}");
        };
        let (digits, lowest, highest) = BOUNDS;
        check(BOUNDS, &[2, 2], true);
        check((5, lowest, 1 << 62), &[2], false);
        check((5, lowest, highest), &[2], false);
        check((digits, 2, highest), &[2], false);
        check((digits, 0, highest), &[2], false);
        check((digits, lowest, highest - 1), &[2], false);
        check((digits, lowest, u64::MAX), &[2], true);
        check(BOUNDS, &vec![0; PLAIN_MOST], false);
        // All places, with the longest counts.
        let longest = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01].repeat(30_000);
        assert_eq!(packed(BOUNDS, &longest).walk(&mut |_, _| {}), Some(()));
    }

    #[test]
    fn lines_of_response_times_are_told_from_others() {
        let check = |line: &str, expected: Option<(&str, usize, bool, f64)>| {
            let found = parse(line).map(|(s, _)| (s.kind, s.step, s.is_measured, s.start_s));
            assert_eq!(found, expected, "{line}");
        };
        check(
            "Tag=response/new_order/step2/measure,12.5,1.0,3.1,AAA",
            Some(("new_order", 2, true, 12.5)),
        );
        check("Tag=response/a/b/step0/warm-up,1,1,1,AAA", Some(("a/b", 0, false, 1.0)));
        check("Tag=service/a/step0/measure,1,1,1,AAA", None);
        check("\"StartTimestamp\",\"Interval_Length\"", None);
        check("Tag=response/a/step0/measure,1", None);
    }
}
