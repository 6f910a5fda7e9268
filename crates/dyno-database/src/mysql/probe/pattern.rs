//! Matches lines of a status text against patterns such as `# OS file reads, # OS fsyncs`.

/// Matches from the first character that is not blank: `#` is a number, `*` any text, a blank any
/// number of blanks; the rest of the line is ignored. Returns the numbers in order, none without a
/// match.
pub(super) fn numbers(line: &str, pattern: &str) -> Option<Vec<f64>> {
    let mut rest = line.trim_start();
    let mut found = Vec::new();
    let mut pieces = pattern.split_inclusive(['#', '*']).peekable();
    while let Some(piece) = pieces.next() {
        let (literal, wild) = match piece.as_bytes().last() {
            Some(b'#') => (&piece[..piece.len() - 1], Some('#')),
            Some(b'*') => (&piece[..piece.len() - 1], Some('*')),
            _ => (piece, None),
        };
        rest = after_literal(rest, literal)?;
        match wild {
            Some('#') => {
                let (number, after) = leading_number(rest)?;
                found.push(number);
                rest = after;
            }
            Some('*') => {
                let next = pieces.peek()?.trim_end_matches(['#', '*']);
                rest = &rest[rest.find(next)?..];
            }
            _ => {}
        }
    }
    Some(found)
}

/// The same without `*`, where each number has a name, which may be empty: `{fsyncs} OS fsyncs`.
pub(super) fn named<'p>(line: &str, pattern: &'p str) -> Option<Vec<(&'p str, f64)>> {
    let mut rest = line.trim_start();
    let mut found = Vec::new();
    let mut pieces = pattern.split(['{', '}']);
    while let Some(literal) = pieces.next() {
        rest = after_literal(rest, literal)?;
        if let Some(name) = pieces.next() {
            let (number, after) = leading_number(rest)?;
            found.push((name, number));
            rest = after;
        }
    }
    Some(found)
}

/// The line after `literal`, whose blanks may be any number of blanks.
fn after_literal<'a>(mut line: &'a str, literal: &str) -> Option<&'a str> {
    for c in literal.chars() {
        line = match c {
            ' ' => line.trim_start_matches([' ', '\t']),
            c => line.strip_prefix(c)?,
        };
    }
    Some(line)
}

pub(super) fn leading_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start_matches([' ', '\t']);
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    // A full stop may end the sentence.
    let digits = text[..end].trim_end_matches('.');
    let number: f64 = digits.parse().ok().filter(|number: &f64| number.is_finite())?;
    Some((number, &text[digits.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, pattern: &str, expected: Option<&[f64]>) {
        assert_eq!(numbers(line, pattern).as_deref(), expected, "{line} | {pattern}");
    }

    #[test]
    fn lines_are_matched() {
        check("12 OS file reads, 3 OS fsyncs", "# OS file reads, # OS fsyncs", Some(&[12.0, 3.0]));
        check("Buffer pool size        512000", "Buffer pool size #", Some(&[512_000.0]));
        check("Buffer pool size, bytes 5", "Buffer pool size #", None);
        check("hit rate 999 / 1000, more", "hit rate # / #", Some(&[999.0, 1000.0]));
        check("--Thread 7 at a/b.c line 3 for 2.50 seconds", "--Thread # at * for # s", {
            Some(&[7.0, 2.5])
        });
        check("0.00 reads/s", "# reads/s", Some(&[0.0]));
        check("", "# x", None);
        check("é", "# x", None);
        check("a 5.", "a #", Some(&[5.0]));
    }

    proptest::proptest! {
        #[test]
        fn no_line_makes_it_panic(line in "([a-zé#* ,]{0,4}[-.0-9]{0,30}){0,4}") {
            for pattern in ["# a, # b", "a * b #", "#", "a#"] {
                let _ = numbers(&line, pattern);
            }
        }
    }
}
