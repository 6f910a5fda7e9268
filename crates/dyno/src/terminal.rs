//! Printing: results to standard output, everything else to standard error.

use std::io::{IsTerminal, Write};

/// Prints a result. A reader that has gone away (`| head`) is no error.
pub(crate) fn out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    // A closed pipe: nobody is left to tell.
    let _ = stdout.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = stdout.write_all(b"\n");
    }
    let _ = stdout.flush();
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
