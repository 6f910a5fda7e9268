//! Prints results to standard output, everything else to standard error.

use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::Mutex;

use anyhow::Context;
use dyno_units::{is_unsafe_char, locked};

/// The first reason why a result was not printed.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

fn note(printed: io::Result<()>) {
    if let Err(error) = printed {
        locked(&LOST).get_or_insert(error);
    }
}

/// Failures are reported by [`check_output`]; a reader that has gone (`| head`) is no error.
pub(crate) fn out(text: &str) {
    note(print(&mut io::stdout().lock(), text));
}

/// A result that is a command to a CI system; see [`out`].
pub(crate) fn out_command(text: &str) {
    note(print_clean(&mut io::stdout().lock(), &without_controls(text), ""));
}

/// Fails if a result was lost; the reason is reported once.
pub(crate) fn check_output() -> anyhow::Result<()> {
    match locked(&LOST).take() {
        None => Ok(()),
        Some(error) => Err(error).context("the result could not be printed"),
    }
}

/// The part has its own line ends; see [`out`].
#[cfg(feature = "lua")]
pub(crate) fn out_part(text: &str) {
    note(print_as_is(&mut io::stdout().lock(), text, ""));
}

pub(crate) fn say_part(text: &str) {
    let _ = write!(std::io::stderr().lock(), "{}", harmless(text));
}

fn print(to: &mut impl Write, text: &str) -> io::Result<()> {
    print_as_is(to, text, if text.ends_with('\n') { "" } else { "\n" })
}

fn print_as_is(to: &mut impl Write, text: &str, end: &str) -> io::Result<()> {
    print_clean(to, &harmless(text), end)
}

fn print_clean(to: &mut impl Write, text: &str, end: &str) -> io::Result<()> {
    let printed = to
        .write_all(text.as_bytes())
        .and_then(|()| to.write_all(end.as_bytes()))
        .and_then(|()| to.flush());
    match printed {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", harmless(text));
}

/// Removes what a terminal or CI system would obey: the text may quote a server, a record or a file.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let text = without_controls(text);
    if !text.lines().any(|line| without_commands(line) != line) {
        return text;
    }
    Cow::Owned(text.split_inclusive('\n').map(without_commands).collect())
}

/// Start commands anywhere in a line: GitHub's older ones, Azure's, TeamCity's.
const CI_MARKS: [&str; 3] = ["##[", "##vso[", "##teamcity["];

/// CI systems read commands in what a program prints.
fn without_commands(line: &str) -> Cow<'_, str> {
    let (blanks, rest) = line.split_at(line.len() - line.trim_start().len());
    let mut clean = Cow::Borrowed(line);
    if let Some(command) = rest.strip_prefix("::").filter(|command| is_github(command)) {
        clean = Cow::Owned(format!("{blanks}\u{fffd}:{command}"));
    }
    for mark in CI_MARKS {
        if clean.contains(mark) {
            clean = Cow::Owned(clean.replace(mark, &mark.replacen('#', "\u{fffd}", 1)));
        }
    }
    clean
}

/// Whether this follows `::` in a GitHub command (`error::text`, `error file=a::text`), not in SQL or an address.
fn is_github(command: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphabetic() || matches!(c, '-' | '_');
    let behind = command.trim_start_matches(is_of_name);
    behind.len() < command.len()
        && (behind.starts_with("::") || (behind.starts_with(' ') && behind.contains("::")))
}

/// Line ends, tabs and Dyno's own colours stay.
fn without_controls(text: &str) -> Cow<'_, str> {
    let is_unsafe = |c: char| c != '\n' && c != '\t' && is_unsafe_char(c);
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_unsafe) {
        clean.push_str(&rest[..at]);
        let length = colour_length(&rest[at..]);
        let n_bytes = length.unwrap_or(rest[at..].chars().next().map_or(1, char::len_utf8));
        match length {
            Some(length) => clean.push_str(&rest[at..at + length]),
            None => clean.push('\u{fffd}'),
        }
        rest = &rest[at + n_bytes..];
    }
    Cow::Owned(clean + rest)
}

/// Of the sequence `ESC [ … m` at the start of a text. Only Dyno's own colours: others could hide text.
fn colour_length(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\x1b[")?;
    let end = parameters.find('m')?;
    let is_own = |code: &str| {
        matches!(code.parse(), Ok(0_u8 | 1 | 2 | 4 | 22 | 24 | 31..=36 | 39 | 91..=96))
    };
    parameters[..end].split(';').all(is_own).then_some(end + 3)
}

/// Warns if a password would cross a network without encryption.
pub(crate) fn warn_of_login(endpoint: &dyno_database::Endpoint) {
    if let Some(warning) = endpoint.login_warning() {
        say(&format!("warning: {warning}"));
    }
}

pub(crate) fn error(error: &anyhow::Error) {
    say(&format!("error: {error:#}"));
}

/// Lines can be redrawn in place.
pub(crate) fn is_interactive() -> bool {
    std::io::stderr().is_terminal() && !is_dumb(variable("TERM").as_deref())
}

pub(crate) fn out_is_terminal() -> bool {
    std::io::stdout().is_terminal() && !is_dumb(variable("TERM").as_deref())
}

pub(crate) fn out_has_colours() -> bool {
    ColourWishes::read().allow(std::io::stdout().is_terminal())
}

pub(crate) fn messages_have_colours() -> bool {
    ColourWishes::read().allow(std::io::stderr().is_terminal())
}

/// From NO_COLOR (no-color.org), CLICOLOR and CLICOLOR_FORCE (bixense.com/clicolors), TERM.
#[derive(Clone, Debug, Default)]
struct ColourWishes {
    no_color: Option<String>,
    clicolor: Option<String>,
    clicolor_force: Option<String>,
    term: Option<String>,
}

impl ColourWishes {
    fn read() -> ColourWishes {
        ColourWishes {
            no_color: variable("NO_COLOR"),
            clicolor: variable("CLICOLOR"),
            clicolor_force: variable("CLICOLOR_FORCE"),
            term: variable("TERM"),
        }
    }

    /// NO_COLOR, then CLICOLOR_FORCE; otherwise only terminals get colours.
    fn allow(&self, is_terminal: bool) -> bool {
        let is_set = |wish: &Option<String>| wish.as_deref().is_some_and(|wish| !wish.is_empty());
        if is_set(&self.no_color) {
            return false;
        }
        if is_set(&self.clicolor_force) && self.clicolor_force.as_deref() != Some("0") {
            return true;
        }
        is_terminal && self.clicolor.as_deref() != Some("0") && !is_dumb(self.term.as_deref())
    }
}

/// It can neither move its cursor nor show colours.
fn is_dumb(term: Option<&str>) -> bool {
    term == Some("dumb")
}

#[expect(clippy::disallowed_methods, reason = "only this crate reads the environment")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// 24 without a terminal.
pub(crate) fn height() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    size.map_or(24, |size| usize::from(size.ws_row)).max(8)
}

/// For results; 100 without a terminal.
pub(crate) fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    columns(size.map(|size| size.ws_col)).clamp(40, 160)
}

/// For messages. Never wider than the terminal: a line that wraps is not erased as one.
pub(crate) fn message_width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    columns(size.map(|size| size.ws_col)).clamp(10, 160)
}

/// Terminals that do not know their size report 0.
fn columns(reported: Option<u16>) -> usize {
    reported.filter(|columns| *columns > 0).map_or(100, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails with this error.
    struct Refusing(ErrorKind);

    impl Write for Refusing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn colours_are_as_the_environment_wishes() {
        let wish = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let check = |(no_color, clicolor, force, term): (&str, &str, &str, &str), expected| {
            let wishes = ColourWishes {
                no_color: wish(no_color),
                clicolor: wish(clicolor),
                clicolor_force: wish(force),
                term: wish(term),
            };
            assert_eq!([wishes.allow(true), wishes.allow(false)], expected, "{wishes:?}");
        };
        check(("", "", "", ""), [true, false]);
        check(("", "", "", "xterm"), [true, false]);
        check(("1", "", "", "xterm"), [false, false]);
        check(("1", "", "1", "xterm"), [false, false]);
        check(("", "0", "", "xterm"), [false, false]);
        check(("", "0", "1", "xterm"), [true, true]);
        check(("", "", "0", "xterm"), [true, false]);
        check(("", "", "", "dumb"), [false, false]);
        assert!(
            ColourWishes { no_color: Some(String::new()), ..ColourWishes::default() }.allow(true)
        );
    }

    #[test]
    fn a_terminal_without_a_size_has_the_usual_one() {
        let check = |reported, expected: usize| assert_eq!(columns(reported), expected);
        check(None, 100);
        check(Some(0), 100);
        check(Some(50), 50);
    }

    #[test]
    fn what_a_terminal_would_obey_is_replaced() {
        let check = |text: &str, expected: &str| assert_eq!(harmless(text), expected);
        check("plain\n\ttext, ä\n", "plain\n\ttext, ä\n");
        check("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m");
        // Hidden, and in the background's colour.
        check("\x1b[8mx\x1b[1;8mx", "\u{fffd}[8mx\u{fffd}[1;8mx");
        check("\x1b[30;40mx\x1b[38;5;0mx\x1b[mx", "\u{fffd}[30;40mx\u{fffd}[38;5;0mx\u{fffd}[mx");
        check("\x1b]0;PWNED\x07", "\u{fffd}]0;PWNED\u{fffd}");
        check("\x1b[2J\x1b]52;c;QQ==\x07", "\u{fffd}[2J\u{fffd}]52;c;QQ==\u{fffd}");
        check("a\u{202e}b\r\u{9b}31m\x1b", "a\u{fffd}b\u{fffd}\u{fffd}31m\u{fffd}");
        let mut taken = Vec::new();
        print(&mut taken, "x\x1b[2J").unwrap();
        assert_eq!(String::from_utf8(taken).unwrap(), "x\u{fffd}[2J\n");
    }

    #[test]
    fn what_a_ci_system_would_obey_is_replaced() {
        let check = |text: &str, expected: &str| assert_eq!(harmless(text), expected);
        check("::error file=a,line=1::x", "\u{fffd}:error file=a,line=1::x");
        check("::error::x", "\u{fffd}:error::x");
        check("a\n \t::stop-commands::x\nb", "a\n \t\u{fffd}:stop-commands::x\nb");
        check("\u{a0}::add-mask::x", "\u{a0}\u{fffd}:add-mask::x");
        check("a ##[add-mask]x ##[error]", "a \u{fffd}#[add-mask]x \u{fffd}#[error]");
        check("##vso[task.x]\n##teamcity[y]", "\u{fffd}#vso[task.x]\n\u{fffd}#teamcity[y]");
        // Not at the start of a line, or no command.
        for text in ["x::error::y", "::1 is loopback", "a\n  ::uuid, b", ":: a", "## [b]"] {
            check(text, text);
        }
    }

    #[test]
    fn only_a_closed_pipe_is_no_error() {
        let check = |kind: ErrorKind, expected: Result<(), ErrorKind>| {
            let found = print(&mut Refusing(kind), "text").map_err(|error| error.kind());
            assert_eq!(found, expected);
        };
        check(ErrorKind::BrokenPipe, Ok(()));
        check(ErrorKind::StorageFull, Err(ErrorKind::StorageFull));
        let mut taken = Vec::new();
        print(&mut taken, "a").and_then(|()| print(&mut taken, "b\n")).unwrap();
        assert_eq!(taken, b"a\nb\n");
    }
}
