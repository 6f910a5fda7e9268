//! The prefix of messages in PostgreSQL's log, as in its setting `log_line_prefix`.

use crate::declared::sql::is_one_of;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    parts: Vec<Part>,
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Literal(char),
    Escape(char),
    /// What follows is missing in messages of processes that serve no client.
    Stop,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefixed<'a> {
    /// The session, or its process.
    pub(super) session: &'a str,
    pub(super) database: Option<&'a str>,
    pub(super) severity: &'a str,
    /// The message, as far as it is on this line.
    pub(super) message: &'a str,
}

const SEVERITIES: &str = "\
    LOG DETAIL HINT CONTEXT STATEMENT QUERY LOCATION ERROR WARNING NOTICE INFO FATAL PANIC DEBUG \
    DEBUG1 DEBUG2 DEBUG3 DEBUG4 DEBUG5";

/// Tried if none is given: PostgreSQL's, Debian's, and those of services and log readers.
const USUAL: &[&str] = &[
    "%m [%p] %q%u@%d ",
    "%m [%p] ",
    "%t [%p] ",
    "%m [%p] %q[%u@%d] ",
    "%m [%p] %u@%d ",
    "%t [%p] %q%u@%d ",
    "%t [%p] %u@%d ",
    "%t:%r:%u@%d:[%p]:",
    "%m:%r:%u@%d:[%p]:%l:%e:%s:%v:%x:%c:%q%a:",
    "%t [%p]: user=%u,db=%d,app=%a,client=%h ",
    "%m [%p]: user=%u,db=%d,app=%a,client=%h ",
    "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
    "%m [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
    "%t [%p]: [%l-1] user=%u,db=%d ",
    "%m [%p] db=%d,user=%u,app=%a,client=%h ",
    "%m [%p]: [%l-1] db=%d,user=%u ",
    "%t %c %q%u@%d ",
    "%m %c ",
    "%m %p ",
    "%t %p ",
    "[%p] ",
    "%p ",
    "%c ",
    "%m [%c] ",
];

impl Prefix {
    /// Fails with what is wrong or missing.
    pub(super) fn read(text: &str) -> Result<Prefix, String> {
        let mut parts = Vec::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                parts.push(Part::Literal(c));
                continue;
            }
            // A width for padding: blanks are skipped where they may be.
            let letter = chars.find(|c| !c.is_ascii_digit() && *c != '-');
            parts.push(match letter {
                Some('%') => Part::Literal('%'),
                Some('q') => Part::Stop,
                Some(c) if "audbrhpPtmnileQsvxcL".contains(c) => Part::Escape(c),
                Some(c) => return Err(format!("log_line_prefix has no %{c}")),
                None => return Err("log_line_prefix ends with a %".to_owned()),
            });
        }
        let has_session = parts.iter().any(|part| matches!(part, Part::Escape('p' | 'c')));
        let why = "a log whose prefix has neither %p nor %c does not show which session sent what";
        if has_session { Ok(Prefix { parts, text: text.to_owned() }) } else { Err(why.to_owned()) }
    }

    /// The prefix that the server says it has from now on.
    pub(super) fn said(message: &str) -> Option<Prefix> {
        let setting = message.strip_prefix(SAID)?.trim_end().strip_suffix('"')?;
        Prefix::read(setting).ok()
    }

    /// The first of the usual prefixes that fit most lines. It must fit half of the messages, unless the
    /// server says among them how they continue.
    pub(super) fn guess<'a>(lines: impl Iterator<Item = &'a str> + Clone) -> Option<Prefix> {
        let mut best: Option<(usize, Prefix)> = None;
        for text in USUAL {
            let Ok(prefix) = Prefix::read(text) else { continue };
            let n = lines.clone().filter(|line| prefix.matches(line).is_some()).count();
            if n > best.as_ref().map_or(0, |(n, _)| *n) {
                best = Some((n, prefix));
            }
        }
        let is_said = lines.clone().any(|line| line.contains(SAID));
        let n_messages = lines.filter(|line| is_message(line)).count();
        best.filter(|(n, _)| is_said || n * 2 >= n_messages).map(|(_, prefix)| prefix)
    }

    pub(super) fn matches<'a>(&self, line: &'a str) -> Option<Prefixed<'a>> {
        let mut found = Prefixed::default();
        let mut steps = STEPS_MOST;
        matched(&self.parts, line, &mut found, &mut steps).then_some(found)
    }
}

/// What the server says when it reads the setting again.
const SAID: &str = "parameter \"log_line_prefix\" changed to \"";

/// Whether a line begins a message, whatever its prefix.
fn is_message(line: &str) -> bool {
    let severities = ["LOG:  ", "ERROR:  ", "FATAL:  ", "DETAIL:  ", "STATEMENT:  "];
    !line.starts_with('\t') && severities.iter().any(|severity| line.contains(severity))
}

const STEPS_MOST: usize = 5_000;

/// Whether the rest of a line fits the rest of a prefix; the shortest texts for escapes first.
fn matched<'a>(parts: &[Part], line: &'a str, found: &mut Prefixed<'a>, steps: &mut usize) -> bool {
    *steps = steps.saturating_sub(1);
    if *steps == 0 {
        return false;
    }
    let Some((part, rest)) = parts.split_first() else { return severity(line, found) };
    match part {
        Part::Literal(c) => {
            line.strip_prefix(*c).is_some_and(|line| matched(rest, line, found, steps))
        }
        Part::Stop => matched(rest, line, found, steps) || severity(line, found),
        Part::Escape(letter) => {
            // The ends of what the escape may stand for.
            let ends = line.char_indices().map(|(at, _)| at).chain([line.len()]);
            for end in ends {
                let (text, after) = line.split_at(end);
                // What precedes its last character has been looked at.
                let last = text.chars().next_back();
                if *steps == 0 || last.is_some_and(|last| !may_continue(*letter, text.len(), last))
                {
                    return false;
                }
                if is_whole(*letter, text) && matched(rest, after, found, steps) {
                    note(*letter, text.trim(), found);
                    return true;
                }
            }
            false
        }
    }
}

/// Whether a text of this many bytes that ends with `c` may start an escape's value, if it may without `c`.
fn may_continue(letter: char, bytes: usize, c: char) -> bool {
    let (most, is_inside) = match letter {
        'p' | 'P' | 'l' | 'x' | 'Q' => (64, c.is_ascii_digit() || "- ".contains(c)),
        'n' => (64, c.is_ascii_digit() || ". ".contains(c)),
        'c' => (64, c.is_ascii_hexdigit() || ". ".contains(c)),
        'v' => (64, c.is_ascii_digit() || "/ ".contains(c)),
        'e' => (16, c.is_ascii_alphanumeric() || c == ' '),
        't' | 'm' | 's' => (40, c.is_ascii_alphanumeric() || "-+:. /".contains(c)),
        _ => (300, true),
    };
    bytes <= most && is_inside
}

/// Whether a text may be what an escape stands for.
fn is_whole(letter: char, text: &str) -> bool {
    let has_digit = text.contains(|c: char| c.is_ascii_digit());
    match letter {
        'p' | 'l' | 'n' => has_digit,
        'c' => {
            has_digit
                && text.trim().split_once('.').is_some_and(|(a, b)| !a.is_empty() && !b.is_empty())
        }
        // A date, a time and a zone.
        't' | 'm' => has_digit && text.contains(':') && text.split_whitespace().count() == 3,
        _ => true,
    }
}

fn note<'a>(letter: char, text: &'a str, found: &mut Prefixed<'a>) {
    match letter {
        // The session is better than its process, whose number may be used again.
        'c' => found.session = text,
        'p' if found.session.is_empty() => found.session = text,
        'd' if !text.is_empty() && text != "[unknown]" => found.database = Some(text),
        _ => {}
    }
}

/// Reads `LOG:  message`.
fn severity<'a>(line: &'a str, found: &mut Prefixed<'a>) -> bool {
    let Some((severity, message)) = line.split_once(':') else { return false };
    let is_one = is_one_of(severity, SEVERITIES);
    if is_one {
        found.severity = severity;
        let message = message.strip_prefix("  ").unwrap_or(message);
        found.message = without_state(message);
    }
    is_one
}

/// A message without the SQLSTATE that `log_error_verbosity = verbose` writes before it.
fn without_state(message: &str) -> &str {
    let is_inside = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    match message.split_once(": ") {
        Some((state, rest)) if state.len() == 5 && state.bytes().all(is_inside) => rest,
        _ => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_prefix_are_bounded() {
        let line = format!("{} LOG:  x", "1".repeat(1 << 20));
        assert!(Prefix::read("%p ").unwrap().matches(&line).is_none());
    }

    #[test]
    fn lines_are_read_by_their_prefix() {
        let check = |prefix: &str, line: &str, expected: (&str, Option<&str>, &str, &str)| {
            let read = Prefix::read(prefix).unwrap();
            let found = read.matches(line).unwrap_or_else(|| panic!("{prefix}: {line}"));
            let found = (found.session, found.database, found.severity, found.message);
            assert_eq!(found, expected, "{prefix}");
        };
        let said = "LOG:  statement: SELECT 'a: b'";
        let expected = ("412", Some("shop"), "LOG", "statement: SELECT 'a: b'");
        let time = "2026-11-23 20:22:53.123 UTC";
        check("%m [%p] %q%u@%d ", &format!("{time} [412] me@shop {said}"), expected);
        check(
            "%m [%p] %q%u@%d ",
            &format!("{time} [412] {said}"),
            ("412", None, "LOG", expected.3),
        );
        check("%t:%r:%u@%d:[%p]:", &format!("{time}:10.0.0.1(5):me@shop:[412]:{said}"), expected);
        check(
            "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
            &format!("{time} [412]: [3-1] user=me,db=shop,app=a: b,client=[local] {said}"),
            expected,
        );
        check(
            "%m %c %d ",
            &format!("{time} 69238f.1b shop DETAIL:  x"),
            ("69238f.1b", Some("shop"), "DETAIL", "x"),
        );
        check("%p %d: ", &format!("412 [unknown]: {said}"), ("412", None, "LOG", expected.3));
        check("%-8p|%%|", "412     |%|FATAL:  x", ("412", None, "FATAL", "x"));
    }

    #[test]
    fn usual_prefixes_are_guessed() {
        let check = |lines: &[&str], expected: Option<&str>| {
            let found = Prefix::guess(lines.iter().copied());
            assert_eq!(found.as_ref().map(|one| one.text.as_str()), expected, "{lines:?}");
        };
        let time = "2026-11-23 20:22:53.123 UTC";
        let lines = [format!("{time} [4] LOG:  x"), format!("{time} [5] me@shop LOG:  y")];
        check(&[&lines[0], &lines[1]], Some("%m [%p] %q%u@%d "));
        check(
            &[&format!("{time} [4]: user=a,db=b,app=c,client=d LOG:  x")],
            Some("%t [%p]: user=%u,db=%d,app=%a,client=%h "),
        );
        check(&["\tx", "4 LOG:  x"], Some("%p "));
        check(&["LOG:  x", "hello"], None);
        // Two lines of the server do not outvote those of the sessions, unless it says what comes.
        let others = ["< a LOG:  x", "< b LOG:  x", "< c ERROR:  x", "\tLOG:  y", "hello"];
        let with = |line: &'static str| [&others[..], &["4 LOG:  x", line]].concat();
        check(&with("5 LOG:  x"), None);
        check(&with("5 LOG:  parameter \"log_line_prefix\" changed to \"< %p \""), Some("%p "));
    }

    #[test]
    fn prefixes_that_say_no_session_are_refused() {
        assert!(Prefix::read("%m ").unwrap_err().contains("neither %p nor %c"));
        assert!(Prefix::read("%p %").unwrap_err().contains("ends with"));
        assert!(Prefix::read("%p %z").unwrap_err().contains("%z"));
    }
}
