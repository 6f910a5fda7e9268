//! Texts from a template: `#` is a digit, `@` a letter, `{name}` a value; all else is literal.

use dyno_units::RandomStream;

use super::values::Values;

const DIGITS_MOST: usize = 18;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    Fixed(Vec<u8>),
    /// Random digits; at most [`DIGITS_MOST`].
    Digits(usize),
    Letters(usize),
    Value(usize),
}

/// `place` finds a named value. Fails with what is wrong.
pub(super) fn read(
    template: &str,
    mut place: impl FnMut(&str) -> Result<usize, String>,
) -> Result<Vec<Piece>, String> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut chars = template.chars();
    while let Some(c) = chars.next() {
        match (c, pieces.last_mut()) {
            ('#', Some(Piece::Digits(n))) if *n < DIGITS_MOST => *n += 1,
            ('#', _) => pieces.push(Piece::Digits(1)),
            ('@', Some(Piece::Letters(n))) => *n += 1,
            ('@', _) => pieces.push(Piece::Letters(1)),
            ('{', _) => {
                let why = "`{` has no matching `}`; write a literal brace as `\\{`";
                let (name, rest) = chars.as_str().split_once('}').ok_or(why)?;
                pieces.push(Piece::Value(place(name)?));
                chars = rest.chars();
            }
            (c, last) => {
                let c = match c {
                    '\\' => chars.next().ok_or("nothing follows the last backslash")?,
                    c => c,
                };
                let mut bytes = [0; 4];
                let bytes = c.encode_utf8(&mut bytes).as_bytes();
                match last {
                    Some(Piece::Fixed(fixed)) => fixed.extend_from_slice(bytes),
                    _ => pieces.push(Piece::Fixed(bytes.to_vec())),
                }
            }
        }
    }
    Ok(pieces)
}

/// Bytes that are taken for a value whose length is not known.
const VALUE_ROOM: usize = 40;

/// A rough maximum in bytes; `of` gives known lengths of the values at their places.
pub(super) fn room(pieces: &[Piece], of: impl Fn(usize) -> Option<usize>) -> usize {
    let piece = |piece: &Piece| match piece {
        Piece::Fixed(bytes) => bytes.len(),
        Piece::Digits(n) | Piece::Letters(n) => *n,
        Piece::Value(place) => of(*place).unwrap_or_default().max(VALUE_ROOM),
    };
    pieces.iter().map(piece).fold(0, usize::saturating_add)
}

/// Appends the text of these pieces to the bytes of the values.
pub(super) fn write(pieces: &[Piece], values: &mut Values, random: &mut RandomStream) {
    for piece in pieces {
        match piece {
            // A lone separator is a store; copying by length would be a call.
            Piece::Fixed(bytes) => match bytes[..] {
                [byte] => values.bytes().push(byte),
                _ => values.bytes().extend_from_slice(bytes),
            },
            Piece::Digits(n) => push_digits(values.bytes(), *n, random),
            Piece::Letters(n) => push_letters(values.bytes(), *n, random),
            Piece::Value(at) => values.append(*at),
        }
    }
}

const POWERS: [u64; DIGITS_MOST + 1] = {
    let mut powers = [1; DIGITS_MOST + 1];
    let mut idx = 1;
    while idx <= DIGITS_MOST {
        powers[idx] = 10 * powers[idx - 1];
        idx += 1;
    }
    powers
};

/// Appends `n` random digits by one draw.
#[inline]
fn push_digits(out: &mut Vec<u8>, n: usize, random: &mut RandomStream) {
    let mut drawn = random.below(POWERS[n]);
    if n > 16 {
        let (first, rest) = (drawn / POWERS[16], drawn % POWERS[16]);
        let two = [b'0' + (first / 10) as u8, b'0' + (first % 10) as u8];
        out.extend_from_slice(&two[DIGITS_MOST - n..]);
        drawn = rest;
    }
    let high = eight((drawn / 100_000_000) as u32);
    let low = eight((drawn % 100_000_000) as u32);
    push_last(out, (u128::from(low) << 64) | u128::from(high), n.min(16));
}

/// Appends the last `n` of these sixteen digits; the first one is the lowest byte.
#[inline]
fn push_last(out: &mut Vec<u8>, digits: u128, n: usize) {
    // Appends all sixteen bytes and truncates: a copy of fixed length is two moves, any other is a call.
    let end = out.len() + n;
    let wanted = digits.unbounded_shr(8 * (16 - n) as u32);
    out.extend_from_slice(&wanted.to_le_bytes());
    out.truncate(end);
}

/// The eight digits of a number with leading zeros, the first in the lowest byte.
///
/// Halves the number into lanes of one register: two of four digits, four of two, eight of one. Division in
/// lanes multiplies by a rounded reciprocal, exact for all possible values.
#[inline]
fn eight(number: u32) -> u64 {
    let (high, low) = (u64::from(number / 10_000), u64::from(number % 10_000));
    let fours = high | (low << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let ones = tens | ((twos - 10 * tens) << 8);
    ones + 0x3030_3030_3030_3030
}

/// Appends `n` random letters, ten of each draw.
pub(super) fn push_letters(out: &mut Vec<u8>, n: usize, random: &mut RandomStream) {
    let mut left = n;
    while left > 0 {
        let mut bits = random.below(26_u64.pow(10));
        let n = left.min(10);
        for _ in 0..n {
            out.push(b'a' + (bits % 26) as u8);
            bits /= 26;
        }
        left -= n;
    }
}

#[cfg(test)]
mod tests {
    use dyno_units::Seed;

    use super::*;
    use crate::declared::values::Slot;

    fn made(template: &str) -> String {
        let place = |name: &str| match name {
            "id" => Ok(0),
            other => Err(format!("there is no `{other}`")),
        };
        let pieces = read(template, place).unwrap();
        let mut values = Values::new(1, 0);
        values.set(0, Slot::Integer(42));
        write(&pieces, &mut values, &mut Seed(5).stream());
        String::from_utf8(values.bytes().clone()).unwrap()
    }

    #[test]
    fn templates_are_written_as_they_say() {
        assert_eq!(made("user{id}\\@x\\#\\{\\\\ü"), "user42@x#{\\ü");
        let text = made("###########-@@@");
        assert_eq!((text.len(), text.find('-')), (15, Some(11)));
        assert!(text[..11].bytes().all(|byte| byte.is_ascii_digit()), "{text}");
        assert!(text[12..].bytes().all(|byte| byte.is_ascii_lowercase()), "{text}");
        assert_eq!(made(&"#".repeat(100)).len(), 100);
        assert_eq!(made(""), "");
    }

    #[test]
    fn wrong_templates_are_refused() {
        let refused = |template: &str| read(template, |_| Err("no name".to_owned())).unwrap_err();
        assert!(refused("a{b").contains("has no matching `}`"));
        assert!(refused("a\\").contains("backslash"));
        assert_eq!(refused("{x}"), "no name");
    }

    #[test]
    fn digits_are_those_of_the_number_that_is_drawn() {
        for n in 1..=DIGITS_MOST {
            let (mut one, mut same) = (Seed(3).stream(), Seed(3).stream());
            for _ in 0..50 {
                let mut out = b"x".to_vec();
                push_digits(&mut out, n, &mut one);
                let expected = format!("x{:0n$}", same.below(POWERS[n]));
                assert_eq!(String::from_utf8(out).unwrap(), expected);
            }
        }
    }

    #[test]
    fn eight_digits_are_those_of_the_number() {
        let numbers = (0..100_000_000).step_by(997).chain(0..20_000).chain(99_980_000..100_000_000);
        for number in numbers {
            let digits = eight(number).to_le_bytes();
            assert_eq!(std::str::from_utf8(&digits).unwrap(), format!("{number:08}"));
        }
    }

    #[test]
    fn every_digit_and_letter_is_equally_likely_at_every_place() {
        let mut random = Seed(11).stream();
        let (mut digits, mut letters) = ([[0_u32; 10]; 18], [[0_u32; 26]; 13]);
        let n = 26_000;
        for _ in 0..n {
            let mut out = Vec::new();
            push_digits(&mut out, 18, &mut random);
            push_letters(&mut out, 13, &mut random);
            out[..18].iter().zip(&mut digits).for_each(|(c, at)| at[(c - b'0') as usize] += 1);
            out[18..].iter().zip(&mut letters).for_each(|(c, at)| at[(c - b'a') as usize] += 1);
        }
        let near = |count: &u32, of: u32| {
            let expected = f64::from(n / of);
            (f64::from(*count) - expected).abs() < 6.0 * expected.sqrt()
        };
        assert!(digits.as_flattened().iter().all(|count| near(count, 10)), "{digits:?}");
        assert!(letters.as_flattened().iter().all(|count| near(count, 26)), "{letters:?}");
    }
}
