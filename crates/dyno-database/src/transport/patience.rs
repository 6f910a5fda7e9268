//! How long cold work waits for a server, and how the user ends that.

use std::io::{self, Read, Write};

use dyno_units::Nanoseconds;

use super::socket::Socket;
use crate::waiting::{SET_UP_LIMIT, STOPPED_LIMIT, is_over, n_stops};

/// To make or drop a catalog with files, some of them after a checkpoint.
pub(crate) const CATALOG_LIMIT: Nanoseconds = Nanoseconds::from_secs(600);

/// Without a byte either way, during or after rows, which are stored as they come.
pub(crate) const ROWS_SILENCE: Nanoseconds = Nanoseconds::from_secs(30 * 60);

/// For other statements without a limit: creating a large index sends nothing until it is done.
pub(crate) const STATEMENT_SILENCE: Nanoseconds = Nanoseconds::from_secs(24 * 60 * 60);

/// Length of one wait in the kernel, after which limits are checked.
pub(super) const SLICE: Nanoseconds = Nanoseconds::from_millis(100);

/// After a stop by the user, work without a limit (filling a table, creating an index) may still
/// finish: an abandoned statement would continue in the server.
const GRACE: Nanoseconds = Nanoseconds::from_secs(10);

/// How long one piece of cold work may still wait.
#[derive(Debug)]
pub(super) struct Patience {
    // Zero for no limit.
    limit: Nanoseconds,
    began: Nanoseconds,
    // Without a byte in either direction.
    silence: Nanoseconds,
    last_byte: Nanoseconds,
    n_stops: u32,
    // When a stop was first noticed.
    stopped: Option<Nanoseconds>,
}

impl Patience {
    /// Begins now; a `limit` of 0 is none. Ends in any case after `silence` without a byte.
    pub(super) fn begin(limit: Nanoseconds, silence: Nanoseconds) -> Patience {
        Patience::begun(limit, silence, now(), n_stops())
    }

    fn begun(
        limit: Nanoseconds,
        silence: Nanoseconds,
        began: Nanoseconds,
        n_stops: u32,
    ) -> Patience {
        let is_set_up = Nanoseconds::ZERO < limit && limit <= SET_UP_LIMIT;
        let limit = if n_stops > 0 && is_set_up { limit.min(STOPPED_LIMIT) } else { limit };
        Patience { limit, began, silence, last_byte: began, n_stops, stopped: None }
    }

    /// Fails with `TimedOut`, or `ConnectionAborted` if the user has stopped Dyno.
    fn check(&mut self) -> io::Result<()> {
        if is_over() {
            return Err(was_stopped());
        }
        self.judge(now(), n_stops())
    }

    fn judge(&mut self, now: Nanoseconds, n_stops: u32) -> io::Result<()> {
        let limit = self.limit;
        if limit > Nanoseconds::ZERO && now.saturating_sub(self.began) >= limit {
            let reason = format!("the server has not finished its answer within {limit}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
        }
        if now.saturating_sub(self.last_byte) >= self.silence {
            let reason = format!(
                "the server has neither sent nor accepted data for {}, the longest that Dyno waits \
                 here",
                self.silence
            );
            return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
        }
        if n_stops == self.n_stops {
            return Ok(());
        }
        let stopped = *self.stopped.get_or_insert(now);
        if limit > Nanoseconds::ZERO || now.saturating_sub(stopped) >= GRACE {
            return Err(was_stopped());
        }
        Ok(())
    }
}

fn was_stopped() -> io::Error {
    let reason = "Dyno was stopped while it waited for the server";
    io::Error::new(io::ErrorKind::ConnectionAborted, reason)
}

/// The kernel's monotonic clock. Limits are of the real server on the other side, in a test too.
fn now() -> Nanoseconds {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Nanoseconds(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// A socket that blocks in slices, as long as the patience lasts.
pub(super) struct Patient<'a> {
    pub(super) socket: &'a mut Socket,
    pub(super) patience: &'a mut Patience,
}

impl Patient<'_> {
    fn persist<T>(&mut self, mut work: impl FnMut(&mut Socket) -> io::Result<T>) -> io::Result<T> {
        loop {
            // Before each read, so that a server that never stops sending runs into the limit, too.
            self.patience.check()?;
            match work(self.socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => {
                    self.patience.last_byte = now();
                    return other;
                }
            }
        }
    }
}

impl Read for Patient<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.persist(|socket| socket.read(room))
    }
}

impl Write for Patient<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.persist(|socket| socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work that began at 100 s before any stop: its state at these moments.
    #[track_caller]
    fn check(limit_s: u64, moments: &[(u64, u32)], expected: &[Option<io::ErrorKind>]) {
        check_after(0, limit_s, moments, expected);
    }

    /// The same after so many stops.
    #[track_caller]
    fn check_after(
        n_stops: u32,
        limit_s: u64,
        moments: &[(u64, u32)],
        expected: &[Option<io::ErrorKind>],
    ) {
        let seconds = Nanoseconds::from_secs;
        let silence = ROWS_SILENCE;
        let mut patience = Patience::begun(seconds(limit_s), silence, seconds(100), n_stops);
        let judged: Vec<Option<io::ErrorKind>> = moments
            .iter()
            .map(|&(at_s, n_stops)| {
                patience.judge(seconds(at_s), n_stops).err().map(|error| error.kind())
            })
            .collect();
        assert_eq!(judged, expected);
    }

    #[test]
    fn a_limit_counts_from_the_beginning() {
        check(30, &[(100, 0), (129, 0)], &[None, None]);
        check(30, &[(130, 0)], &[Some(io::ErrorKind::TimedOut)]);
        check(0, &[(1_899, 0)], &[None]);
    }

    #[test]
    fn silence_ends_what_may_take_any_time() {
        check(0, &[(1_899, 0), (1_900, 0)], &[None, Some(io::ErrorKind::TimedOut)]);
        let seconds = Nanoseconds::from_secs;
        let mut patience = Patience::begun(seconds(0), seconds(60), seconds(100), 0);
        patience.last_byte = seconds(150);
        assert!(patience.judge(seconds(209), 0).is_ok());
        let error = patience.judge(seconds(210), 0).unwrap_err();
        assert!(error.to_string().contains("neither sent nor accepted data for 1 min"), "{error}");
    }

    #[test]
    fn a_stop_ends_set_up_at_once_and_other_work_in_a_while() {
        let stopped = Some(io::ErrorKind::ConnectionAborted);
        check(30, &[(101, 0), (102, 1)], &[None, stopped]);
        check(0, &[(101, 1), (110, 1), (111, 1)], &[None, None, stopped]);
    }

    #[test]
    fn set_up_after_a_stop_has_five_seconds() {
        let late = Some(io::ErrorKind::TimedOut);
        check_after(1, 30, &[(104, 1), (105, 1)], &[None, late]);
        check_after(2, 10, &[(104, 2), (105, 2)], &[None, late]);
        check_after(1, 3, &[(102, 1), (103, 1)], &[None, late]);
        // Dropping tables may take long in a server that has just answered.
        check_after(1, 600, &[(699, 1), (700, 1)], &[None, late]);
        check_after(1, 0, &[(1_899, 1)], &[None]);
    }
}
