//! Tests of sysbench that measure the machine and use no database: cpu, memory, threads, mutex and
//! fileio. Each client is a thread of its own, as there, since what is measured is what threads do to
//! each other. They leave no record: a study compares volumes with the workloads `file-io` and `fsync`.

mod cpu;
mod fileio;
mod locks;
mod memory;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Barrier, Mutex};

use dyno_load::AbortFlag;
use dyno_units::{Clock, Nanoseconds, RandomStream, Seed, locked};
use dyno_workload::lua::{ClientCells, Statistics};

use super::commands;
use super::host::{Stop, Terminal};
use super::options::Options;
use super::output::{self, Mark, Stretch};
use crate::clock::SystemClock;
use crate::commands::beside::Interruption;
use crate::{End, terminal};

/// A test, once its options are read.
trait Test: Sync {
    /// What is printed about its options before it begins.
    fn mode(&self) -> String {
        String::new()
    }

    /// Makes ready what all clients share.
    fn begin(&self) -> Result<(), String> {
        Ok(())
    }

    /// What the client of this number does, with random numbers of its own.
    fn client(&self, tid: usize, random: RandomStream) -> Client<'_>;

    fn finish(&self, _cells: &ClientCells) -> Result<(), String> {
        Ok(())
    }

    /// The line of an interval, without its time.
    fn interval(&self, _options: &Options, _stretch: &Stretch) -> Option<String> {
        None
    }

    /// The first part of the report.
    fn summary(&self, _stretch: &Stretch) -> String {
        String::new()
    }
}

/// Does the next event of a thread, and counts it, events excepted; false if there is none left.
type Client<'a> = Box<dyn FnMut(&ClientCells) -> Result<bool, String> + 'a>;

/// A command of a test besides `run` and `help`.
type Command = fn(&Options, &Terminal) -> Result<(), String>;

struct Spec {
    name: &'static str,
    /// Its options, as its help declares them.
    options: &'static str,
    make: fn(&Options) -> Result<Box<dyn Test>, String>,
    commands: &'static [(&'static str, Command)],
}

const TESTS: [Spec; 5] = [cpu::SPEC, memory::SPEC, locks::THREADS, locks::MUTEX, fileio::SPEC];

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TESTS.iter().map(|test| test.name)
}

impl Spec {
    fn help(&self) -> String {
        format!("{} options:\n{}\n", self.name, self.options)
    }
}

/// Does the command of a test of the machine; none if the command line names no such test.
pub(super) fn perform(options: &Options, verbosity: u64) -> Option<Result<End, Stop>> {
    let spec = TESTS.iter().find(|test| Some(test.name) == options.test.as_deref())?;
    Some(dispatch(spec, options, verbosity))
}

fn dispatch(spec: &Spec, options: &Options, verbosity: u64) -> Result<End, Stop> {
    let name = spec.name;
    let Some(command) = options.command.as_deref() else {
        terminal::say(&format!(
            "The '{name}' test requires a command argument. See 'dyno sysbench {name} help'"
        ));
        return Ok(End::Bad);
    };
    if command == "help" {
        terminal::out(&spec.help());
        return Ok(End::Good);
    }
    let options = &options.of_test(spec.options).map_err(|word| {
        terminal::say(&format!("invalid option: {word}"));
        Stop::Said
    })?;
    if options.record.is_some() {
        terminal::say(&format!(
            "dyno sysbench {name} keeps no record: leave --record out. For files, a study with the \
             workload file-io or fsync does."
        ));
        return Err(Stop::Said);
    }
    let abort = AbortFlag::new();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let interruption = Interruption::listen(&abort, &clock)?;
    let host = Terminal::new(verbosity, abort, None, &terminal::variable);
    if command == "run" {
        let test = (spec.make)(options).map_err(|text| host.fatal(&text))?;
        return run(&*test, options, &host, (clock.as_ref(), &interruption));
    }
    let Some((_, perform)) = spec.commands.iter().find(|(known, _)| *known == command) else {
        return Ok(commands::refuse(name, command));
    };
    perform(options, &host).map(|()| End::Good).map_err(|text| host.fatal(&text))
}

struct Shared<'a> {
    clock: &'a dyn Clock,
    abort: &'a AbortFlag,
    /// Events that were begun, and how many there may be.
    taken: AtomicU64,
    most: Option<u64>,
    /// When the last event may begin, by the clock; 0 before the threads begin.
    deadline: AtomicU64,
    arrivals: Option<Mutex<Arrivals>>,
    has_failed: AtomicBool,
}

/// When events are due: at random times, as many a second as are wanted.
struct Arrivals {
    next: Nanoseconds,
    mean_ns: f64,
    random: RandomStream,
}

impl Shared<'_> {
    fn is_over(&self, now: Nanoseconds) -> bool {
        self.abort.is_raised()
            || self.has_failed.load(Relaxed)
            || now.0 >= self.deadline.load(Relaxed)
            || self.most.is_some_and(|most| self.taken.fetch_add(1, Relaxed) >= most)
    }

    /// Waits until the next event is due; none if the run ends before.
    fn arrival(&self, arrivals: &Mutex<Arrivals>) -> Option<Nanoseconds> {
        let mut arrivals = locked(arrivals);
        let (due, mean) = (arrivals.next, arrivals.mean_ns);
        let gap = arrivals.random.exponential(mean) as u64;
        arrivals.next = Nanoseconds(due.0.saturating_add(gap));
        drop(arrivals);
        if due.0 >= self.deadline.load(Relaxed) {
            return None;
        }
        // In pieces, so that Ctrl-C is noticed.
        let mut now = self.clock.now();
        while now < due {
            if self.abort.is_raised() {
                return None;
            }
            self.clock.sleep_until(due.min(now + Nanoseconds::from_millis(100)));
            now = self.clock.now();
        }
        Some(due)
    }

    fn work(&self, mut client: Client<'_>, cells: &ClientCells) -> Result<(), String> {
        let mut now = self.clock.now();
        cells.began(now);
        while !self.is_over(now) {
            let due = self.arrivals.as_ref().map(|arrivals| self.arrival(arrivals));
            let Some(start) = due.unwrap_or(Some(now)) else { break };
            cells.event_began();
            if !client(cells)? {
                break;
            }
            now = self.clock.now();
            cells.event_ended(now, now.saturating_sub(start));
        }
        Ok(())
    }
}

fn run(
    test: &dyn Test,
    options: &Options,
    host: &Terminal,
    (clock, interruption): (&dyn Clock, &Interruption),
) -> Result<End, Stop> {
    host.notice(&output::header(options));
    host.notice(&test.mode());
    test.begin().map_err(|text| host.fatal(&text))?;
    host.notice(output::INITIALIZING);
    host.notice("\n");
    let seed = Seed(options.seed(clock));
    let rate = options.number("rate");
    let arrivals = (rate > 0.0).then(|| {
        let random = seed.derive("arrivals", 0).stream();
        Mutex::new(Arrivals { next: Nanoseconds::ZERO, mean_ns: 1e9 / rate, random })
    });
    let most = Some(options.count("events")).filter(|events| *events > 0);
    let (abort, (taken, deadline, has_failed)) = (&host.abort, Default::default());
    let shared = Shared { clock, abort, taken, most, deadline, arrivals, has_failed };
    let statistics = &Statistics::default();
    let threads = options.count("threads") as usize;
    let barrier = Barrier::new(threads + 1);
    let (ended, ends) = channel();
    let (base, last) = Default::default();
    let mut reports = Reports { test, options, host, statistics, base, last };
    let outcome = std::thread::scope(|scope| {
        for tid in 0..threads {
            let (cells, ended) = (statistics.client(), ended.clone());
            let random = seed.derive("thread", tid as u64).stream();
            let (shared, barrier) = (&shared, &barrier);
            scope.spawn(move || {
                let client = test.client(tid, random);
                barrier.wait();
                let outcome = shared.work(client, &cells).and_then(|()| test.finish(&cells));
                cells.ended(shared.clock.now());
                shared.has_failed.fetch_or(outcome.is_err(), Relaxed);
                // Nobody listens any more if another thread has failed.
                let _ = ended.send(outcome);
            });
        }
        drop(ended);
        let began = clock.now();
        let (warm_up, time) = (options.count("warmup_time"), options.count("time"));
        let end = if time == 0 { u64::MAX } else { began.0 + (warm_up + time) * 1_000_000_000 };
        shared.deadline.store(end, Relaxed);
        if let Some(arrivals) = &shared.arrivals {
            locked(arrivals).next = began;
        }
        host.notice("Threads started!\n\n");
        barrier.wait();
        reports.follow(clock, began, &ends)
    });
    outcome.map_err(|text| host.fatal(&text))?;
    let (began, now) = statistics.span().unwrap_or_else(|| (clock.now(), clock.now()));
    if interruption.at().is_some() {
        let heading = Interruption::heading(now.saturating_sub(began));
        host.notice(&format!("{heading}\n\n"));
    }
    reports.finish(now);
    Ok(End::Good)
}

struct Reports<'a> {
    test: &'a dyn Test,
    options: &'a Options,
    host: &'a Terminal,
    statistics: &'a Statistics,
    /// The beginning, or the last checkpoint.
    base: Mark,
    last: Mark,
}

impl Reports<'_> {
    fn mark(&self, at: Nanoseconds) -> Mark {
        Mark::now(self.statistics, at)
    }

    /// Prints what is due each second, until all threads have ended; the first failure of one is the error.
    fn follow(
        &mut self,
        clock: &dyn Clock,
        began: Nanoseconds,
        ends: &std::sync::mpsc::Receiver<Result<(), String>>,
    ) -> Result<(), String> {
        let second = Nanoseconds::SECOND;
        let warm_up = Nanoseconds::from_secs(self.options.count("warmup_time"));
        let start = began + warm_up;
        (self.base.at, self.last.at) = (began, began);
        let mut checkpoints = self.options.checkpoints();
        let every = self.options.count("report_interval");
        let (mut running, mut tick, mut failure) = (self.options.count("threads"), 1, Ok(()));
        while running > 0 {
            let due = began + Nanoseconds(second.0 * tick);
            let wait = due.saturating_sub(clock.now()).to_duration();
            match ends.recv_timeout(wait) {
                Ok(outcome) => {
                    running -= 1;
                    failure = failure.and(outcome);
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => tick += 1,
            }
            let now = clock.now();
            if now < start + Nanoseconds(second.0 / 2) {
                if warm_up > Nanoseconds::ZERO {
                    self.base = self.mark(now);
                    self.last = self.base.clone();
                }
                continue;
            }
            let passed = now.saturating_sub(start).0.saturating_add(second.0 / 2) / second.0;
            if every > 0 && passed.is_multiple_of(every) {
                self.interval(start, now);
            }
            if checkpoints.last().is_some_and(|at| *at <= passed) {
                checkpoints.pop();
                self.host.notice(&format!("[ {passed}s ] Checkpoint report:\n"));
                self.finish(now);
            }
        }
        failure
    }

    fn interval(&mut self, start: Nanoseconds, now: Nanoseconds) {
        let mark = self.mark(now);
        let stretch = mark.since(&self.last, start);
        let line = match self.test.interval(self.options, &stretch) {
            Some(own) => format!("[ {:.0}s ] {own}\n", stretch.at),
            None => output::interval(self.options, &stretch, false),
        };
        self.host.notice(&line);
        self.last = mark;
    }

    fn finish(&mut self, now: Nanoseconds) {
        let mark = self.mark(now);
        let stretch = mark.since(&self.base, self.base.at);
        let report = output::report_with(self.options, &stretch, &self.test.summary(&stretch));
        self.host.notice(&report);
        self.base = mark;
    }
}

#[cfg(test)]
mod tests {
    use dyno_sysbench::{declared, options_text};

    use super::TESTS;

    #[test]
    fn the_help_of_each_test_declares_all_of_its_options() {
        for test in &TESTS {
            let shown = options_text(&declared(test.options)).replace('_', "-");
            assert_eq!(shown, test.options.replace('_', "-"), "{}", test.name);
        }
    }
}
