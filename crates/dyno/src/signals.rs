//! Effects of Ctrl-C (SIGINT), SIGTERM and SIGHUP; docs/signals.md has the table.
//!
//! The first signal does what the command registered ([`on_first`]), or ends the program; the second always ends it.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, OnceLock};

use anyhow::Context;
use dyno_load::AbortFlag;
use dyno_units::locked;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::terminal;

/// After any of the signals.
pub(crate) const EXIT_CODE: u8 = 130;

/// 0 if none has come.
static FIRST: AtomicI32 = AtomicI32::new(0);

/// A signal is the normal end of this command.
static IS_EXPECTED: AtomicBool = AtomicBool::new(false);

static STOP: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

pub(crate) fn listen() -> anyhow::Result<()> {
    static LISTENS: OnceLock<()> = OnceLock::new();
    if LISTENS.set(()).is_err() {
        return Ok(());
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    // After `nohup`, Dyno outlives the terminal.
    let wanted = [SIGINT, SIGTERM].into_iter().chain((!ignores_hangup(&status)).then_some(SIGHUP));
    let mut signals = Signals::new(wanted).context("cannot listen for Ctrl-C")?;
    let work = move || signals.forever().for_each(obey);
    let thread = std::thread::Builder::new().name("dyno-signals".to_owned());
    thread.spawn(work).context("cannot listen for Ctrl-C")?;
    Ok(())
}

fn obey(signal: i32) {
    let is_first = FIRST.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    match &*locked(&STOP) {
        Some(stop) if is_first => stop(),
        _ => std::process::exit(i32::from(EXIT_CODE)),
    }
}

/// From the text of `/proc/PID/status`.
fn ignores_hangup(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 << (SIGHUP - 1) != 0)
}

pub(crate) fn on_first(stop: impl Fn() + Send + 'static) -> anyhow::Result<()> {
    *locked(&STOP) = Some(Box::new(stop));
    listen()
}

/// On the first signal: prints the text, raises the flag, ends waits for servers.
pub(crate) fn raise(abort: &AbortFlag, text: &'static str) -> anyhow::Result<()> {
    let abort = abort.clone();
    on_first(move || {
        terminal::say(&format!("\n{text}"));
        abort.raise();
        // Code that waits for a silent server does not check the flag.
        dyno_database::stop_waiting();
    })
}

/// The command then has not done its work, whatever came of it.
pub(crate) fn have_come() -> bool {
    FIRST.load(Ordering::Relaxed) != 0 && !IS_EXPECTED.load(Ordering::Relaxed)
}

/// A signal is the normal end of this command: its result decides the exit code.
pub(crate) fn are_expected() {
    IS_EXPECTED.store(true, Ordering::Relaxed);
}

/// Ends the program by the signal that came, if any, so that the parent process sees how it ended.
pub(crate) fn die_of_first() {
    let signal = FIRST.load(Ordering::Relaxed);
    if signal != 0 {
        let _ = signal_hook::low_level::emulate_default_handler(signal);
        std::process::exit(128 + signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hangups_are_ignored_if_whoever_starts_dyno_says_so() {
        let check = |status: &str, expected: bool| assert_eq!(ignores_hangup(status), expected);
        check("Name:\tdyno\nSigIgn:\t0000000000001001\nSigCgt:\t0\n", true);
        check("SigIgn:\t0000000000001000\n", false);
        check("SigIgn:\tx\n", false);
        check("", false);
    }
}
