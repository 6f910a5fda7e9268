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

    proptest::proptest! {
        #[test]
        fn cleaned_text_is_short_and_harmless(text in "(\\PC|\\p{Cc}|[\u{200e}-\u{2069}]){0,80}") {
            let cleaned = clean_text(&text);
            proptest::prop_assert!(!cleaned.contains(is_unsafe_char));
            proptest::prop_assert_eq!(clean_text(&cleaned), cleaned);
        }
    }
}
