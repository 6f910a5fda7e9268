//! Text into HTML and SVG: escaping, and numbers as short as they can be.

use std::fmt::{Display, Write as _};

/// Escapes a text for element content and for attributes in double or single quotes.
///
/// Control characters other than tab and newline are not allowed in HTML; they become U+FFFD, so
/// that an escape sequence in a server's log stays visible as "something was here".
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if dyno_units::is_unsafe_char(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A coordinate with at most one decimal: `12`, `12.5`.
pub(crate) fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// Markup: nothing that is only text becomes it. Charts are drawn as markup, and [`crate::document::html`] writes
/// all others; a test checks that no other file does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Markup {
    out: String,
}

impl std::ops::Deref for Markup {
    type Target = str;

    fn deref(&self) -> &str {
        &self.out
    }
}

impl Markup {
    pub(crate) fn new() -> Markup {
        Markup::default()
    }

    /// Appends markup as it is. Everything from outside goes through [`Markup::text`] instead.
    pub(crate) fn raw(&mut self, markup: impl Display) -> &mut Markup {
        // Writing to a String cannot fail.
        let _ = write!(self.out, "{markup}");
        self
    }

    /// Appends text, escaped.
    pub(crate) fn text(&mut self, text: impl AsRef<str>) -> &mut Markup {
        self.out.push_str(&escape(text.as_ref()));
        self
    }

    /// Appends an element without attributes around an escaped text.
    pub(crate) fn element(&mut self, name: &str, text: impl AsRef<str>) -> &mut Markup {
        self.raw(format_args!("<{name}>{}</{name}>", escape(text.as_ref())))
    }

    /// Appends an element with a class around an escaped text.
    pub(crate) fn classed(&mut self, tag: &str, class: &str, text: impl AsRef<str>) -> &mut Markup {
        let text = escape(text.as_ref());
        self.raw(format_args!("<{tag} class=\"{class}\">{text}</{tag}>"))
    }

    /// Appends an escaped text in which `backticks` mark code, and none of these names is broken at the end of a
    /// line, longer names first.
    /// What is copied from the page is the text as it is.
    pub(crate) fn prose_with(&mut self, text: &str, unbroken: &[&str]) -> &mut Markup {
        let mut parts = text.split('`').peekable();
        let mut is_code = false;
        while let Some(part) = parts.next() {
            // A backtick without its partner is one.
            match (is_code, parts.peek().is_some()) {
                (true, true) => self.element("code", part),
                (true, false) => self.raw('`').text(part),
                (false, _) => self.text_with(part, unbroken),
            };
            is_code = !is_code;
        }
        self
    }

    fn text_with(&mut self, text: &str, unbroken: &[&str]) -> &mut Markup {
        let is_of_name = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let mut rest = text;
        let mut before = None;
        let mut plain = 0;
        while let Some(c) = rest[plain..].chars().next() {
            let here = &rest[plain..];
            let is_whole = |name: &&&str| {
                here.strip_prefix(**name).is_some_and(|after| !is_of_name(after.chars().next()))
            };
            let name = unbroken.iter().filter(|_| !is_of_name(before)).find(is_whole);
            match name {
                Some(name) => {
                    self.text(&rest[..plain]);
                    self.classed("span", "unbroken", name);
                    rest = &here[name.len()..];
                    (before, plain) = (name.chars().next_back(), 0);
                }
                None => (before, plain) = (Some(c), plain + c.len_utf8()),
            }
        }
        self.text(rest)
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }
}

/// What may follow a number on the same line only.
const UNITS: [&str; 17] = [
    "×", "%", "ns", "µs", "ms", "s", "min", "h", "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB",
    "CPU",
];

/// A space at which no line ends.
pub(crate) const FIXED: char = '\u{a0}';

/// A word joiner: no line ends there.
pub(crate) const JOINER: char = '\u{2060}';

/// A text in which a number is never parted from its unit, nor `n` from its number, nor a range at its dash.
pub(crate) fn kept_together(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: Option<usize>| i.and_then(|i| chars.get(i)).copied().unwrap_or(' ');
    let is_of_unit = |c: char| c.is_alphanumeric() || matches!(c, '×' | '%');
    let keeps = |i: usize| {
        let (before, after) = (at(i.checked_sub(1)), at(Some(i + 1)));
        let is_n = |i: Option<usize>| {
            at(i) == 'n' && !at(i.and_then(|i| i.checked_sub(1))).is_alphabetic()
        };
        match (before, after) {
            ('%', 'C') => chars[i + 1..].starts_with(&['C', 'I']),
            _ if before.is_ascii_digit() && !after.is_ascii_digit() && after != '=' => {
                let word = chars[i + 1..].iter().take_while(|c| is_of_unit(**c));
                UNITS.contains(&word.collect::<String>().as_str())
            }
            (_, '=') => is_n(i.checked_sub(1)),
            ('=', _) => is_n(i.checked_sub(3)),
            _ => false,
        }
    };
    let is_range = |i: usize| {
        let before = at(i.checked_sub(1));
        is_of_unit(before) && at(Some(i + 1)).is_ascii_digit()
    };
    let mut kept = String::with_capacity(text.len());
    for (i, c) in chars.iter().enumerate() {
        kept.push(if *c == ' ' && keeps(i) { FIXED } else { *c });
        if *c == '–' && is_range(i) {
            kept.push(JOINER);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_charts_and_the_page_are_written_as_markup() {
        let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut folders = vec![sources.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path.strip_prefix(&sources).unwrap().display().to_string();
                let is_writer = ["document/html.rs", "html.rs", "markup.rs"].contains(&&*name);
                let is_chart = name.starts_with("chart/");
                let text = std::fs::read_to_string(path).unwrap_or_default();
                assert!(is_writer || is_chart || !text.contains(".raw("), "{name} writes markup");
            }
        }
    }

    #[test]
    fn hostile_text_is_escaped() {
        let check = |text: &str, expected: &str| assert_eq!(escape(text), expected);
        check("plain", "plain");
        check("<script>alert('x')</script>", "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
        check("\" onload=\"evil", "&quot; onload=&quot;evil");
        check("a & b &amp; c", "a &amp; b &amp;amp; c");
        check("\u{1b}[31mred\u{0}", "\u{fffd}[31mred\u{fffd}");
        check("µs – ünïcödé", "µs – ünïcödé");
    }

    #[test]
    fn backticks_mark_code() {
        let check = |text: &str, expected: &str| {
            let mut out = Markup::new();
            out.prose_with(text, &[]);
            assert_eq!(out.finish(), expected);
        };
        check("call `dyno run` again", "call <code>dyno run</code> again");
        check("`<b>`", "<code>&lt;b&gt;</code>");
        check("a ` b", "a ` b");
        check("`a` ` b", "<code>a</code> ` b");
    }

    #[test]
    fn names_are_not_broken() {
        let check = |text: &str, expected: &str| {
            let mut out = Markup::new();
            out.prose_with(text, &["wal-off", "wal"]);
            let spanned =
                out.finish().replace("<span class=\"unbroken\">", "[").replace("</span>", "]");
            assert_eq!(spanned, expected);
        };
        check("with wal-off, wal: `wal-off`", "with [wal-off], [wal]: <code>wal-off</code>");
        check("wals and a_wal, wal-official", "wals and a_wal, [wal]-official");
        check("µ<wal-off>", "µ&lt;[wal-off]&gt;");
        check("", "");
    }

    #[test]
    fn numbers_stay_with_their_units() {
        let check = |text: &str, expected: &str| {
            let kept = kept_together(text);
            assert_eq!(kept_together(&kept), kept);
            assert_eq!(kept.replace('\u{a0}', "~").replace('\u{2060}', "_"), expected);
        };
        check("70 × a (95 % bounds, n = 5)", "70~× a (95~% bounds, n~=~5)");
        check("(95 % CI 80.8–99.1 %)", "(95~%~CI 80.8–_99.1~%)");
        check("12–15 ms, 900 µs–1.30 ms", "12–_15~ms, 900~µs–_1.30~ms");
        check("1 min 3 s, 2 more, 5 members", "1~min 3~s, 2 more, 5 members");
        check("a – b, – 5, wal–off", "a – b, – 5, wal–off");
        check("12 µs at 4 clients", "12~µs at 4 clients");
        check("when = 5, a × b, × = %", "when = 5, a × b, × = %");
        check("", "");
    }

    #[test]
    fn coordinates_are_short() {
        let check = |value: f64, expected: &str| assert_eq!(coordinate(value), expected);
        check(12.0, "12");
        check(12.34, "12.3");
        check(-0.01, "0");
        check(0.96, "1");
        check(-3.5, "-3.5");
    }
}
