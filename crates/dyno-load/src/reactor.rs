//! How a worker waits: for replies, for time, for new connections.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{fs, thread};

use dyno_units::Nanoseconds;
use dyno_workload::{ConnectError, Connection, Connector, Done, ErrorClass, StatementError};
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::LoadError;
use crate::step::Loaded;

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
    fn attach(&self, slot: u32, connection: &mut dyn Connection, is_alone: bool) -> Done<WaitMode>;

    /// Reports again what the descriptor is ready for.
    fn rearm(&self, slot: u32, connection: &dyn Connection);

    fn detach(&self, slot: u32, wait_mode: WaitMode);

    fn open(&self, slot: u32);

    fn take_opened(&self, slot: u32) -> Option<Result<Box<dyn Connection>, ConnectError>>;

    /// Until `deadline` or an event; notes the clients with events.
    fn wait(&self, now: Nanoseconds, deadline: Deadline, happened: &mut Happened) -> Loaded;

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
        epoll::add(&epoll, &opener.bell, EventData::new_u64(OPENED), EventFlags::IN)
            .map_err(|error| refuse("wait for reconnects", error))?;
        // The kernel's default is 50 µs; where it refuses this, the recorded lag shows it.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let events = RefCell::new(Vec::with_capacity(EVENTS_AT_ONCE));
        let (n_watched, opener) = (Cell::new(0), RefCell::new(opener));
        Ok(EpollReactor { epoll, events, n_watched, opener })
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
        if self.sleep_precisely(&timespec(timeout))? { self.fetch(&no_time) } else { Ok(0) }
    }
}

fn flags(connection: &dyn Connection) -> EventFlags {
    let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    if connection.wants_write() { flags | EventFlags::OUT } else { flags }
}

fn refused(error: Errno) -> StatementError {
    let why = format!("cannot wait for the connection's descriptor: {error}");
    StatementError::new(ErrorClass::Refused, "epoll", why)
}

impl Reactor for EpollReactor {
    fn attach(&self, slot: u32, connection: &mut dyn Connection, is_alone: bool) -> Done<WaitMode> {
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

    fn wait(&self, now: Nanoseconds, deadline: Deadline, happened: &mut Happened) -> Loaded {
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

// Opens connections on a helper thread, so that a reconnect does not stop the other clients.

type Opened = Result<Box<dyn Connection>, ConnectError>;

/// One after the other; the thread starts when it is first needed.
pub(crate) struct Opener {
    connector: Connector,
    pub(crate) bell: Bell,
    helper: Option<Helper>,
    opened: BTreeMap<u32, Opened>,
    n_asked: usize,
}

struct Helper {
    orders: Sender<u32>,
    results: Receiver<(u32, Opened)>,
}

impl Opener {
    pub(crate) fn new(connector: Connector) -> rustix::io::Result<Opener> {
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok(Opener { connector, bell, helper: None, opened: BTreeMap::new(), n_asked: 0 })
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.n_asked > 0
    }

    pub(crate) fn open(&mut self, slot: u32) {
        self.n_asked += 1;
        if self.helper.is_none() {
            self.helper = start(&self.connector, &self.bell);
        }
        let is_sent = self.helper.as_ref().is_some_and(|helper| helper.orders.send(slot).is_ok());
        if !is_sent {
            // A panic ended the thread; the next call starts another.
            self.helper = None;
            self.opened.insert(slot, Err(no_helper()));
        }
    }

    pub(crate) fn take(&mut self, slot: u32) -> Option<Opened> {
        let result = self.opened.remove(&slot)?;
        self.n_asked -= 1;
        Some(result)
    }

    pub(crate) fn collect(&mut self, woken: &mut Vec<u32>) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&*self.bell, &mut count);
        let Some(helper) = &self.helper else { return };
        for (slot, result) in helper.results.try_iter() {
            self.opened.insert(slot, result);
            woken.push(slot);
        }
    }
}

fn no_helper() -> ConnectError {
    let reason = "no thread could be started for it; raise the thread limit".to_owned();
    ConnectError { address: "the server".to_owned(), reason, details: None }
}

fn start(connector: &Connector, bell: &Bell) -> Option<Helper> {
    let (orders, ordered) = channel::<u32>();
    let (done, results) = channel();
    let (connector, bell) = (Arc::clone(connector), Arc::clone(bell));
    let work = move || {
        for slot in ordered {
            if done.send((slot, connector())).is_err() {
                return;
            }
            let _ = rustix::io::write(&*bell, &1_u64.to_ne_bytes());
        }
    };
    thread::Builder::new().name("dyno-reconnect".to_owned()).spawn(work).ok()?;
    Some(Helper { orders, results })
}

// What a worker's thread used of the machine, by the kernel.

/// All fields only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) cpu: Nanoseconds,
    // In clock ticks (usually 10 ms): good enough for the proportion.
    user_ticks: u64,
    system_ticks: u64,
    /// Time ready to run without a CPU; `None` if the kernel does not report it.
    pub(crate) run_queue: Option<Nanoseconds>,
}

impl Usage {
    pub(crate) fn of_this_thread() -> Usage {
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
        let schedstat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let (user_ticks, system_ticks) = parse_stat(&stat).unwrap_or_default();
        let cpu = Nanoseconds(cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64);
        Usage { cpu, user_ticks, system_ticks, run_queue: parse_schedstat(&schedstat) }
    }

    /// The exact total, split in the proportion of the ticks.
    pub(crate) fn split_since(&self, earlier: &Usage) -> (Nanoseconds, Nanoseconds) {
        let total = self.cpu.saturating_sub(earlier.cpu);
        let user = self.user_ticks.saturating_sub(earlier.user_ticks);
        let system = self.system_ticks.saturating_sub(earlier.system_ticks);
        // Without a tick in the phase, the thread's whole life has to do.
        let (user, system) =
            if user + system > 0 { (user, system) } else { (self.user_ticks, self.system_ticks) };
        let share = match user + system {
            0 => 0.0,
            all => system as f64 / all as f64,
        };
        let system = Nanoseconds((total.0 as f64 * share) as u64);
        (total.saturating_sub(system), system)
    }

    pub(crate) fn run_queue_since(&self, earlier: &Usage) -> Option<Nanoseconds> {
        Some(self.run_queue?.saturating_sub(earlier.run_queue?))
    }
}

/// From `/proc/…/stat` (proc(5), fields 14 and 15). The thread's name in parentheses may hold
/// anything, so counting starts after the last one.
fn parse_stat(stat: &str) -> Option<(u64, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// From `/proc/…/schedstat`, second field, in ns.
fn parse_schedstat(schedstat: &str) -> Option<Nanoseconds> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok().map(Nanoseconds)
}

#[cfg(test)]
mod usage {
    use super::*;

    #[test]
    fn stat_is_read_behind_the_name() {
        let stat = "7 (a) b (c) R 1 7 7 0 -1 4194304 95 0 0 0 120 34 0 0 20 0 1 0";
        assert_eq!(parse_stat(stat), Some((120, 34)));
        assert_eq!(parse_stat("nothing"), None);
    }

    #[test]
    fn schedstat_is_read() {
        assert_eq!(parse_schedstat("1000 250 3"), Some(Nanoseconds(250)));
        assert_eq!(parse_schedstat(""), None);
    }

    #[test]
    fn the_total_is_exact_and_split_as_the_ticks_are() {
        let usage = |cpu, user_ticks, system_ticks| Usage {
            cpu: Nanoseconds(cpu),
            user_ticks,
            system_ticks,
            run_queue: None,
        };
        let check = |from: Usage, to: Usage, user, system| {
            assert_eq!(to.split_since(&from), (Nanoseconds(user), Nanoseconds(system)));
        };
        check(usage(100, 0, 0), usage(1100, 3, 1), 750, 250);
        check(usage(100, 3, 1), usage(300, 3, 1), 150, 50);
        check(usage(0, 0, 0), usage(300, 0, 0), 300, 0);
    }

    #[test]
    fn this_thread_has_used_something() {
        assert!(Usage::of_this_thread().cpu > Nanoseconds::ZERO);
    }
}
