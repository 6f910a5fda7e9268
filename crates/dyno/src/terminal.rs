//! Printing: results to standard output, everything else to standard error.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use anyhow::Context;

/// Why a result was not printed; the first reason counts.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// Prints a result. That it could not be printed is told by [`check_output`]; a reader that has
/// gone away (`| head`) is no error.
pub(crate) fn out(text: &str) {
    if let Err(error) = print(&mut io::stdout().lock(), text) {
        LOST.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Whether all that was printed has arrived; the reason is told once.
pub(crate) fn check_output() -> anyhow::Result<()> {
    match LOST.lock().unwrap_or_else(PoisonError::into_inner).take() {
        None => Ok(()),
        Some(error) => Err(error).context("the result could not be printed"),
    }
}

fn print(to: &mut impl Write, text: &str) -> io::Result<()> {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let printed = to
        .write_all(text.as_bytes())
        .and_then(|()| to.write_all(end.as_bytes()))
        .and_then(|()| to.flush());
    match printed {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Prints a message for a person.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Prints an error with its causes.
pub(crate) fn error(error: &anyhow::Error) {
    say(&format!("error: {error:#}"));
}

/// Whether messages are read by a person at a terminal.
pub(crate) fn is_interactive() -> bool {
    std::io::stderr().is_terminal()
}

/// Whether results are read at a terminal, so that colours help.
pub(crate) fn out_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Lines of the terminal, 24 where there is none.
pub(crate) fn height() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    size.map_or(24, |size| usize::from(size.ws_row)).max(8)
}

/// Columns of the terminal, 100 where there is none.
pub(crate) fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    size.map_or(100, |size| usize::from(size.ws_col)).clamp(60, 160)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes nothing, for this reason.
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
