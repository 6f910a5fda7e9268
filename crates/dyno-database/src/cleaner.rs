//! Removes echoed passwords and other secrets from a server's text, and makes it one harmless line.
//! Each connection has a [`Cleaner`] for all texts that go to messages or records.

use dyno_units::{clean_text, redact_secrets, redact_setting};
use dyno_workload::{ErrorDetails, StatementError};
use zeroize::Zeroizing;

use crate::Secret;

/// A shorter password is replaced only as a word: otherwise the gaps would reveal it.
const PART_LEN_MIN: usize = 4;

/// Lines of a field of an error that are kept.
const LINES_MAX: usize = 20;

const MASK: &str = "***";

#[derive(Clone, Default)]
pub(crate) struct Cleaner {
    // The password as it is, percent-encoded, and as a protocol carries it; the longest first.
    forms: Vec<Zeroizing<String>>,
}

impl Cleaner {
    pub(crate) fn new(password: Option<&Secret>) -> Cleaner {
        let Some(word) = password.map(Secret::reveal).filter(|word| !word.is_empty()) else {
            return Cleaner::default();
        };
        let encoded = |keep: &str, is_upper: bool| {
            let mut out = String::with_capacity(3 * word.len());
            for byte in word.bytes() {
                let c = char::from(byte);
                if c.is_ascii_alphanumeric() || keep.contains(c) {
                    out.push(c);
                } else if is_upper {
                    out += &format!("%{byte:02X}");
                } else {
                    out += &format!("%{byte:02x}");
                }
            }
            Zeroizing::new(out)
        };
        let mut forms = vec![Zeroizing::new(word.to_owned())];
        // By RFC 3986 and, with what may stand in a password there, by WHATWG's rules.
        for keep in ["-._~", "-._~!$&'()*+,;=", ""] {
            forms.extend([true, false].map(|is_upper| encoded(keep, is_upper)));
        }
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        Cleaner { forms }
    }

    pub(crate) fn with(mut self, form: Zeroizing<String>) -> Cleaner {
        self.forms.push(form);
        self.forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self
    }

    /// A setting that a server reports, without what is secret.
    pub(crate) fn clean_setting(&self, name: &str, value: &str) -> (String, String) {
        (self.clean(name), self.clean(&redact_setting(name, value)))
    }

    /// The text without the password and other secrets, harmless, and of bounded length.
    pub(crate) fn clean(&self, text: &str) -> String {
        // Cut first, so that a text of megabytes costs no time; what is cut off is not shown.
        let start = match text.char_indices().nth(2 * dyno_units::FOREIGN_TEXT_MAX) {
            Some((end, _)) => &text[..end],
            None => text,
        };
        let mut text = start.to_owned();
        for form in &self.forms {
            if text.contains(form.as_str()) {
                text = without(&text, form);
            }
        }
        clean_text(&redact_secrets(&text))
    }

    pub(crate) fn clean_error(&self, error: StatementError) -> StatementError {
        let code: String = error.code.chars().filter(|c| !dyno_units::is_unsafe_char(*c)).collect();
        let details = error.details.map(|details| Box::new(self.clean_details(&details)));
        StatementError { message: self.clean(&error.message), code, details, ..error }
    }

    /// The same for the fields of an error; the lines of each stay lines.
    pub(crate) fn clean_details(&self, details: &ErrorDetails) -> ErrorDetails {
        let clean = |text: &String| {
            let lines: Vec<String> =
                text.lines().take(LINES_MAX).map(|line| self.clean(line)).collect();
            lines.join("\n")
        };
        ErrorDetails {
            severity: clean(&details.severity),
            message: clean(&details.message),
            detail: details.detail.as_ref().map(clean),
            hint: details.hint.as_ref().map(clean),
            context: details.context.as_ref().map(clean),
            position: details.position,
        }
    }
}

/// The text with `form` masked; a short one only if it stands alone.
fn without(text: &str, form: &str) -> String {
    if form.len() >= PART_LEN_MIN {
        return text.replace(form, MASK);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(form) {
        let (before, behind) = (&rest[..at], &rest[at + form.len()..]);
        let is_part = before.ends_with(char::is_alphanumeric)
            || out.ends_with(char::is_alphanumeric) && before.is_empty()
            || behind.starts_with(char::is_alphanumeric);
        out.push_str(before);
        out.push_str(if is_part { form } else { MASK });
        rest = behind;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(password: &str, text: &str, expected: &str) {
        assert_eq!(Cleaner::new(Some(&Secret::new(password))).clean(text), expected);
    }

    #[test]
    fn the_password_is_replaced_however_it_is_written() {
        check("S3cr3tPW", "no S3cr3tPW here, S3cr3tPW!", "no *** here, ***!");
        check("p@ss w/rd", "a p%40ss%20w%2Frd b p%40ss%20w%2frd c", "a *** b *** c");
        check("pä55", "x p%C3%A455 pä55", "x *** ***");
        check("a!b@c", "x a!b%40c y", "x *** y");
        check("x y z", "postgresql://me:x y z@h", "postgresql://me:***@h");
    }

    #[test]
    fn short_passwords_are_replaced_as_words() {
        check("a", "a man, a plan", "*** man, *** plan");
        check("abc", "abcabc 'abc' dabc", "abcabc '***' dabc");
        check("", "nothing at all", "nothing at all");
    }

    #[test]
    fn other_secrets_and_controls_go_too() {
        check("hush", "at mysql://me:other@h\x1b[2J", "at mysql://me:***@h\u{fffd}[2J");
        let cleaned = Cleaner::default().clean(&"é".repeat(1 << 20));
        assert!(cleaned.len() < 5000 && cleaned.ends_with('…'));
    }

    proptest::proptest! {
        #[test]
        fn no_echo_survives(
            password in "[ -~é]{4,12}",
            before in "[a-z ]{0,9}",
            behind in "[a-z ]{0,9}",
        ) {
            let cleaner = Cleaner::new(Some(&Secret::new(password.clone())));
            let cleaned = cleaner.clean(&format!("{before}{password}{behind}"));
            // Where a part of the password looks like the texts around it or the mask, it may be
            // there.
            let is_plain = password.chars().all(|c| c.is_ascii_lowercase() || c == ' ' || c == '*');
            proptest::prop_assert!(is_plain || !cleaned.contains(&password));
        }
    }
}
