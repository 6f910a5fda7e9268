//! How a worker waits: for replies, for time, for new connections.

use std::cell::{Cell, RefCell};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use dyno_units::Nanoseconds;
use dyno_workload::{ConnectError, Connection, Connector, ErrorClass, StatementError};
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::LoadError;
use crate::opener::Opener;
use crate::usage::Usage;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitMode {
    /// The reactor reports them.
    Readiness,
    /// The server is in this process.
    Immediate,
    Blocking,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadline {
    pub(crate) at: Nanoseconds,
    /// Whether a millisecond late is too late.
    pub(crate) is_precise: bool,
}

/// Epoll, or a simulation; all other code is the same for both.
pub(crate) trait Reactor: Sized + 'static {
    /// `is_alone`: it is the worker's only connection.
    fn attach(
        &self,
        slot: u32,
        connection: &mut dyn Connection,
        is_alone: bool,
    ) -> Result<WaitMode, StatementError>;

    /// Reports again what the descriptor is ready for.
    fn rearm(&self, slot: u32, connection: &dyn Connection);

    fn detach(&self, slot: u32, wait_mode: WaitMode);

    fn open(&self, slot: u32);

    fn take_opened(&self, slot: u32) -> Option<Result<Box<dyn Connection>, ConnectError>>;

    /// Until `deadline` or an event; notes the clients with events.
    fn wait(
        &self,
        now: Nanoseconds,
        deadline: Deadline,
        happened: &mut Happened,
    ) -> Result<(), LoadError>;

    fn usage(&self) -> Usage;
}

#[derive(Debug, Default)]
pub(crate) struct Happened {
    pub(crate) ready: Vec<u32>,
    pub(crate) closed: Vec<u32>,
    /// Opened, or failed to open.
    pub(crate) woken: Vec<u32>,
}

/// Fetched with one call.
const EVENTS_AT_ONCE: usize = 256;

const OPENED: u64 = u64::MAX;

/// The most that epoll, which counts in milliseconds, is late by, with a margin.
const EPOLL_GRAIN: Nanoseconds = Nanoseconds::from_millis(2);

/// A precise deadline farther off is first waited for like any other.
const FAR: Nanoseconds = Nanoseconds::from_millis(4);

/// Edge-triggered: each arrival is reported once, and nothing is changed between statements. The
/// rest after a read needs `rearm`, which is rare: most replies come in one piece. A close while
/// the client is idle is also reported once, perhaps with a reply, so the client remembers it.
pub(crate) struct EpollReactor {
    epoll: OwnedFd,
    events: RefCell<Vec<Event>>,
    n_watched: Cell<usize>,
    opener: RefCell<Opener>,
}

impl EpollReactor {
    pub(crate) fn new(connector: Connector) -> Result<EpollReactor, LoadError> {
        let refuse = |what: &str, error: Errno| LoadError(format!("cannot {what}: {error}"));
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|error| refuse("create an epoll set", error))?;
        let opener = Opener::new(connector)
            .map_err(|error| refuse("create an eventfd for reconnects", error))?;
        epoll::add(&epoll, opener.bell(), EventData::new_u64(OPENED), EventFlags::IN)
            .map_err(|error| refuse("wait for reconnects", error))?;
        // The kernel's default is 50 µs; where it refuses this, the recorded lag shows it.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        Ok(EpollReactor {
            epoll,
            events: RefCell::new(Vec::with_capacity(EVENTS_AT_ONCE)),
            n_watched: Cell::new(0),
            opener: RefCell::new(opener),
        })
    }

    /// To the nanosecond, where epoll knows only milliseconds; true if something happened first.
    fn sleep_precisely(&self, timeout: &Timespec) -> rustix::io::Result<bool> {
        let n = poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(timeout))?;
        Ok(n > 0)
    }

    fn fetch(&self, timeout: &Timespec) -> rustix::io::Result<usize> {
        let mut events = self.events.borrow_mut();
        events.clear();
        epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut *events), Some(timeout))
    }

    fn fetch_until(&self, timeout: Nanoseconds, is_precise: bool) -> rustix::io::Result<usize> {
        let no_time = Timespec { tv_sec: 0, tv_nsec: 0 };
        let timespec = |time: Nanoseconds| Timespec {
            tv_sec: (time.0 / 1_000_000_000) as i64,
            tv_nsec: (time.0 % 1_000_000_000) as _,
        };
        if !is_precise || timeout == Nanoseconds::ZERO {
            return self.fetch(&timespec(timeout));
        }
        if self.n_watched.get() > 0 {
            // Replies usually come first; a precise wait covers the time that epoll may be late.
            let is_far = timeout >= FAR;
            let coarse = if is_far { timeout - EPOLL_GRAIN } else { Nanoseconds::ZERO };
            let n_fetched = self.fetch(&timespec(coarse))?;
            if n_fetched > 0 || is_far {
                return Ok(n_fetched);
            }
        }
        match self.sleep_precisely(&timespec(timeout))? {
            true => self.fetch(&no_time),
            false => Ok(0),
        }
    }
}

fn flags(connection: &dyn Connection) -> EventFlags {
    let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    if connection.wants_write() { flags | EventFlags::OUT } else { flags }
}

fn refused(error: Errno) -> StatementError {
    StatementError::new(
        ErrorClass::Refused,
        "epoll",
        format!("cannot wait for the connection's descriptor: {error}"),
    )
}

impl Reactor for EpollReactor {
    fn attach(
        &self,
        slot: u32,
        connection: &mut dyn Connection,
        is_alone: bool,
    ) -> Result<WaitMode, StatementError> {
        if connection.descriptor().is_none() {
            return Ok(WaitMode::Immediate);
        }
        if is_alone {
            return Ok(WaitMode::Blocking);
        }
        connection.set_blocking(false, 0)?;
        let flags = flags(connection);
        let descriptor = connection.descriptor().ok_or_else(|| refused(Errno::BADF))?;
        epoll::add(&self.epoll, descriptor, EventData::new_u64(u64::from(slot)), flags)
            .map_err(refused)?;
        self.n_watched.set(self.n_watched.get() + 1);
        Ok(WaitMode::Readiness)
    }

    fn rearm(&self, slot: u32, connection: &dyn Connection) {
        if let Some(descriptor) = connection.descriptor() {
            let data = EventData::new_u64(u64::from(slot));
            // Fails only if the kernel lacks memory; then the statement times out.
            let _ = epoll::modify(&self.epoll, descriptor, data, flags(connection));
        }
    }

    fn detach(&self, _slot: u32, wait_mode: WaitMode) {
        // Closing the descriptor removes it.
        if wait_mode == WaitMode::Readiness {
            self.n_watched.set(self.n_watched.get() - 1);
        }
    }

    fn open(&self, slot: u32) {
        self.opener.borrow_mut().open(slot);
    }

    fn take_opened(&self, slot: u32) -> Option<Result<Box<dyn Connection>, ConnectError>> {
        self.opener.borrow_mut().take(slot)
    }

    fn wait(
        &self,
        now: Nanoseconds,
        deadline: Deadline,
        happened: &mut Happened,
    ) -> Result<(), LoadError> {
        let timeout = deadline.at.saturating_sub(now);
        let is_idle = self.n_watched.get() == 0 && !self.opener.borrow().is_busy();
        if is_idle && timeout == Nanoseconds::ZERO {
            return Ok(());
        }
        match self.fetch_until(timeout, deadline.is_precise) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(LoadError(format!("cannot wait for replies: {error}"))),
        }
        for event in self.events.borrow_mut().drain(..) {
            match event.data.u64() {
                OPENED => self.opener.borrow_mut().collect(&mut happened.woken),
                slot => {
                    let flags = event.flags;
                    if flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
                        happened.closed.push(slot as u32);
                    }
                    happened.ready.push(slot as u32);
                }
            }
        }
        Ok(())
    }

    fn usage(&self) -> Usage {
        Usage::of_this_thread()
    }
}

/// Rung by the helper; shared between two threads.
pub(crate) type Bell = Arc<OwnedFd>;
