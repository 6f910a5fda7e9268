//! Reads what a program prints while it runs, and no longer: something that it has started may keep its
//! output open for ever.

use std::io::Read;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The most that is read: MariaDB lists its settings in 200 KiB.
const BYTES_MAX: usize = 4 << 20;

/// How long nothing may come before it is checked whether the program is over.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
const NO_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The beginning of a program's output, as text: to its end, or, once the program is over, what is there.
pub(super) fn words(
    from: Option<impl Read + AsFd>,
    is_over: &AtomicBool,
) -> std::io::Result<String> {
    let (mut bytes, mut block) = (Vec::new(), [0; 4096]);
    let Some(mut from) = from else { return Ok(String::new()) };
    while bytes.len() < BYTES_MAX {
        // Asked first: what a program printed before it was over is there by now.
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
