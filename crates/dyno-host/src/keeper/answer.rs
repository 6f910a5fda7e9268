//! Reads a program's output while it runs, and no longer: what it started may keep the output open.

use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

use dyno_units::{Nanoseconds, clean_text};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::{OrKeeper, Result};

/// MariaDB lists its settings in 200 KiB.
const BYTES_MAX: usize = 4 << 20;

/// Silence before it is checked whether the program is over.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
const NO_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Shown when a tool fails.
const LINES_MOST: usize = 8;

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: ExitStatus,
    pub out: String,
    pub errors: String,
}

/// The program leads its own process group, and is killed after the limit.
pub(crate) fn answer_of(program: &Path, child: Child, limit: Nanoseconds) -> Result<Answer> {
    let answer = answer_within(child, limit).or_path(program, "does not answer")?;
    answer.or_keeper(|| format!("{} did not answer within {limit}", program.display()))
}

fn answer_within(mut child: Child, limit: Nanoseconds) -> std::io::Result<Option<Answer>> {
    let (out, errors) = (child.stdout.take(), child.stderr.take());
    let is_over = AtomicBool::new(false);
    // A program blocks if its output is not read.
    let (is_in_time, out, errors) = std::thread::scope(|scope| {
        let errors = scope.spawn(|| words(errors, &is_over));
        let out = scope.spawn(|| words(out, &is_over));
        let is_in_time = super::kept::end_within(&child, limit);
        is_over.store(true, Ordering::Release);
        let join = |reader: ScopedJoinHandle<'_, _>| {
            reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        (is_in_time, join(out), join(errors))
    });
    let status = child.wait()?;
    if !is_in_time {
        return Ok(None);
    }
    Ok(Some(Answer { status, out: out?, errors: errors? }))
}

/// To the end of the output, or to what is there once the program is over.
fn words(from: Option<impl Read + AsFd>, is_over: &AtomicBool) -> std::io::Result<String> {
    let (mut bytes, mut block) = (Vec::new(), [0; 4096]);
    let Some(mut from) = from else { return Ok(String::new()) };
    while bytes.len() < BYTES_MAX {
        // Asked first: earlier output is there by now.
        let is_last = is_over.load(Ordering::Acquire);
        let pause = if is_last { NO_PAUSE } else { PAUSE };
        let mut waited = [PollFd::new(&from, PollFlags::IN)];
        match rustix::io::retry_on_intr(|| poll(&mut waited, Some(&pause)))? {
            0 if is_last => break,
            0 => {}
            _ => match from.read(&mut block)? {
                0 => break,
                n_read => bytes.extend_from_slice(&block[..n_read]),
            },
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last lines with words, in one, without terminal sequences.
pub(crate) fn last_words(text: &str) -> String {
    lines_with_words(text).join("; ")
}

pub(crate) fn lines_with_words(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| dyno_units::redact_secrets(clean_text(line).trim()));
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LINES_MOST)..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_prints_without_end_is_read_so_far() {
        let endless = std::fs::File::open("/dev/zero").expect("Linux has it");
        let read = words(Some(endless), &AtomicBool::new(false)).expect("it can be read");
        assert!((BYTES_MAX..BYTES_MAX + 4096).contains(&read.len()) && read.len() < 5 << 20);
        let none: Option<std::fs::File> = None;
        assert_eq!(words(none, &AtomicBool::new(false)).expect("nothing is read"), "");
    }
}
