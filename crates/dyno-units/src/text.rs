//! Text from outside (a server, its log, a file), cleaned once, where it enters.

/// In bytes.
pub const FOREIGN_TEXT_MAX: usize = 4096;

/// Control characters, bidirectional controls, and line and paragraph separators.
pub fn is_unsafe_char(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// One line of at most [`FOREIGN_TEXT_MAX`] bytes: line breaks and tabs become blanks, other unsafe
/// characters U+FFFD; longer text ends in an ellipsis.
pub fn clean_text(text: &str) -> String {
    let is_whole = text.len() <= FOREIGN_TEXT_MAX;
    if is_whole && !text.contains(is_unsafe_char) {
        return text.to_owned();
    }
    let mut cleaned = String::with_capacity(text.len().min(FOREIGN_TEXT_MAX) + 4);
    for c in text.chars() {
        let c = match c {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
            c if is_unsafe_char(c) => '\u{fffd}',
            c => c,
        };
        if cleaned.len() + c.len_utf8() > FOREIGN_TEXT_MAX {
            cleaned.push('…');
            break;
        }
        cleaned.push(c);
    }
    cleaned
}

/// In characters; a longer cell widens no column, so that one foreign text does not pad a thousand rows.
const COLUMN_MOST: usize = 200;

/// Rows of cells as lines, with columns as wide as their widest cell; those in `right` are aligned to the right.
pub fn aligned<R: AsRef<[String]>>(rows: &[R], right: &[usize]) -> Vec<String> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (column, cell) in row.as_ref().iter().enumerate() {
            let width = cell.chars().count().min(COLUMN_MOST);
            match widths.get_mut(column) {
                Some(widest) => *widest = width.max(*widest),
                None => widths.push(width),
            }
        }
    }
    let line = |row: &R| {
        let cells =
            row.as_ref().iter().zip(&widths).enumerate().map(|(column, (cell, width))| match right
                .contains(&column)
            {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(clean_text(text), expected);
    }

    #[test]
    fn what_a_terminal_would_obey_is_replaced() {
        check("plain, ä, 漢 and 🙂", "plain, ä, 漢 and 🙂");
        check("\x1b]0;PWNED\x07\x1b[31m", "\u{fffd}]0;PWNED\u{fffd}\u{fffd}[31m");
        check("a\nb\tc\r\nd", "a b c  d");
        check("\u{9b}31m\u{7f}\0", "\u{fffd}31m\u{fffd}\u{fffd}");
        check("a\u{202e}b\u{2066}c\u{200f}d\u{61c}e", "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}e");
        check("a\u{2028}b", "a b");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        check(&"x".repeat(FOREIGN_TEXT_MAX), &"x".repeat(FOREIGN_TEXT_MAX));
        check(&"x".repeat(FOREIGN_TEXT_MAX + 1), &("x".repeat(FOREIGN_TEXT_MAX) + "…"));
        let cut = clean_text(&"漢".repeat(FOREIGN_TEXT_MAX));
        assert!(cut.len() <= FOREIGN_TEXT_MAX + '…'.len_utf8() && cut.ends_with("漢…"));
    }

    #[test]
    fn columns_are_aligned_and_a_long_cell_pads_no_other() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned);
        let rows = [row(["a", "1", "x"]), row(["ä b", "10", ""]), row(["NULL", "9", "y"])];
        assert_eq!(aligned(&rows, &[1]), ["a      1  x", "ä b   10", "NULL   9  y"]);
        let long = "x".repeat(70_000);
        let lines = aligned(&[row([&long, "1", ""]), row(["a", "2", ""])], &[]);
        assert_eq!(lines, [format!("{long}  1"), format!("{:<200}  2", "a")]);
        assert_eq!(aligned::<Vec<String>>(&[], &[]), [""; 0]);
    }

    proptest::proptest! {
        #[test]
        fn cleaned_text_is_short_and_harmless(text in "(\\PC|\\p{Cc}|[\u{200e}-\u{2069}]){0,80}") {
            let cleaned = clean_text(&text);
            proptest::prop_assert!(!cleaned.contains(is_unsafe_char));
            proptest::prop_assert_eq!(clean_text(&cleaned), cleaned);
        }
    }
}
