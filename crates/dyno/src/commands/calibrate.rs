//! `dyno calibrate`: the load generator's limits here, against a server that replies at once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use dyno_database::null::{Listen, NullServer, Script, Wire};
use dyno_load::{AbortFlag, Job, StepSpec, StepTotals, run_step};
use dyno_model::{Arrivals, Load, StepRequest};
use dyno_units::{Clock, Nanoseconds, Seed};
use dyno_workload::MadeWorkload;
use dyno_workload::catalog::Catalog;
use rustix::thread::CpuSet;

use crate::calibration::{
    Bound, Calibrated, ClockFacts, ClosedFacts, OpenFacts, ProtocolFacts, Whose,
};
use crate::clock::SystemClock;
use crate::commands::counted;
use crate::{End, lab, signals, terminal};

const CLIENTS: [u32; 3] = [1, 16, 64];
const OPEN_CLIENTS: u32 = 64;
/// Offered rate of the open load, if the worker can send it …
const OPEN_RATE: f64 = 20_000.0;
/// … else this share of its limit: beyond it, the worker would measure its own queue.
const OPEN_SHARE: f64 = 0.7;
const CLOCK_READS: u32 = 200_000;
/// A worker that waited for a CPU for more than this share of the time was disturbed.
const RUN_QUEUE_MOST: f64 = 0.05;
const WARM_UP_MOST: Nanoseconds = Nanoseconds::from_millis(500);

pub(crate) fn run(
    duration: Nanoseconds,
    keep_disturbed: bool,
    is_json: bool,
) -> anyhow::Result<End> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let abort = AbortFlag::new();
    signals::raise(&abort, "stopping …")?;
    let whose = Whose::ours(&lab::environment(&lab::data_root(None)?));
    let mut calibrated = Calibrated::new(whose, clock.unix_millis(), duration.as_secs_f64());
    calibrated.clock = clock_facts(clock.as_ref());
    let bound = bound();
    calibrated.bound_to = bound;
    let workload = Catalog::built_in()
        .find("oltp_point_select")
        .context("there is no workload to calibrate with")?
        .plan(&BTreeMap::new(), StepRequest::LEAST, Seed(1))?;
    let workload = MadeWorkload::new(workload);
    let folder = Folder::make()?;
    for wire in Wire::ALL {
        let (workload, clock, abort) = (&workload, &clock, &abort);
        let bench = Bench { wire, folder: &folder, bound, workload, clock, abort, duration };
        match bench.measure(wire.name())? {
            Some(facts) => calibrated.protocols.push(facts),
            None => return Ok(End::Interrupted),
        }
    }
    calibrated.disturbed = is_disturbed(&calibrated.protocols);
    if is_json {
        terminal::out(&serde_json::to_string_pretty(&calibrated)?);
    } else {
        terminal::out(&table(&calibrated));
    }
    keep(calibrated.disturbed, keep_disturbed, || calibrated.store())
}

fn keep(
    is_disturbed: bool,
    even_if_disturbed: bool,
    store: impl FnOnce() -> anyhow::Result<PathBuf>,
) -> anyhow::Result<End> {
    if is_disturbed && !even_if_disturbed {
        terminal::say(
            "NOT KEPT: the machine was busy, and other processes took the worker's CPU. Calibrate \
             again when it is idle (`dyno doctor` shows what is running); --keep-disturbed keeps \
             the result anyway. An earlier calibration remains in use.",
        );
        return Ok(End::Bad);
    }
    let path = store()?;
    let mark = if is_disturbed { ", marked as disturbed" } else { "" };
    terminal::say(&format!("kept in {}{mark}; later runs refer to it", path.display()));
    Ok(End::Good)
}

/// A worker that waited for a CPU could have sent more.
fn is_disturbed(protocols: &[ProtocolFacts]) -> bool {
    let waited =
        |closed: &ClosedFacts| closed.run_queue.is_some_and(|share| share > RUN_QUEUE_MOST);
    protocols.iter().flat_map(|facts| &facts.closed).any(waited)
}

/// Bound, as a system would put two threads that wake each other on one CPU, and halve the worker.
fn bound() -> Option<Bound> {
    let allowed = rustix::thread::sched_getaffinity(None).ok()?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).map(|cpu| cpu as u32);
    Some(Bound { worker_cpu: cpus.next()?, server_cpu: cpus.next_back()? })
}

/// Only this user may enter it; removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn make() -> anyhow::Result<Folder> {
        use std::os::unix::fs::DirBuilderExt;
        let path = std::env::temp_dir().join(format!("dyno-calibrate-{}", std::process::id()));
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("cannot create the folder {}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn clock_facts(clock: &dyn Clock) -> ClockFacts {
    let began = clock.now();
    let (mut before, mut resolution) = (began, u64::MAX);
    for _ in 0..CLOCK_READS {
        let now = clock.now();
        if now > before {
            resolution = resolution.min((now - before).0);
        }
        before = now;
    }
    let took = (before - began).0 as f64;
    ClockFacts { resolution_ns: resolution, read_ns: took / f64::from(CLOCK_READS) }
}

struct Bench<'a> {
    wire: Wire,
    folder: &'a Folder,
    bound: Option<Bound>,
    workload: &'a MadeWorkload,
    clock: &'a Arc<dyn Clock>,
    abort: &'a AbortFlag,
    duration: Nanoseconds,
}

impl Bench<'_> {
    /// None if the user stopped it.
    fn measure(&self, name: &str) -> anyhow::Result<Option<ProtocolFacts>> {
        let mut closed = Vec::new();
        for clients in CLIENTS {
            terminal::say(&format!("{name}, {} …", counted(clients as usize, "client")));
            let Some(totals) = self.step(Load::Closed { clients: clients as usize })? else {
                return Ok(None);
            };
            closed.push(closed_facts(clients, &totals));
        }
        let most = closed.last().map_or(0.0, |facts| facts.statements_per_s);
        let rate = OPEN_RATE.min((most * OPEN_SHARE).round()).max(1.0);
        terminal::say(&format!("{name}, {rate}/s …"));
        let clients = OPEN_CLIENTS as usize;
        let load = Load::Open { rate, arrivals: Arrivals::Constant, clients };
        let Some(totals) = self.step(load)? else { return Ok(None) };
        let open = open_facts(rate, &totals);
        Ok(Some(ProtocolFacts { protocol: name.to_owned(), closed, open }))
    }

    fn step(&self, load: Load) -> anyhow::Result<Option<StepTotals>> {
        // With one client, worker and server never run at once, and waking another CPU is most of
        // the cost: the system's own choice is what a run gets.
        let bound = self.bound.filter(|_| load.clients() > 1);
        let script = Script {
            cpus: bound.iter().map(|bound| bound.server_cpu).collect(),
            ..Script::default()
        };
        let place = Listen::Folder(self.folder.0.clone());
        let server = NullServer::start(self.wire, &place, script, Arc::clone(self.clock))
            .with_context(|| {
                format!("cannot start a null server in {}", self.folder.0.display())
            })?;
        let spec = StepSpec {
            load,
            step: 0,
            warm_up: Nanoseconds(self.duration.0 / 4).min(WARM_UP_MOST),
            duration: self.duration,
            until_steady: None,
            gone_limit: Some(dyno_load::GONE_LIMIT),
            // As in a bench: a time limit has a cost.
            statement_timeout: Nanoseconds::from_secs(60),
            retries: 3,
            workers: 1,
            cpus: bound.iter().map(|bound| bound.worker_cpu).collect(),
            seed: Seed(1),
        };
        let job = Job {
            workload: self.workload.clone(),
            connector: server.connector(),
            clock: Arc::clone(self.clock),
            abort: self.abort.clone(),
        };
        let totals = run_step(&spec, &job, &mut |_| {})?;
        Ok((!totals.aborted).then_some(totals))
    }
}

fn seconds(totals: &StepTotals) -> f64 {
    (totals.measure_ended - totals.measure_began).as_secs_f64().max(1e-9)
}

fn closed_facts(clients: u32, totals: &StepTotals) -> ClosedFacts {
    let tally = &totals.measured.tally;
    let statements = (tally.reads + tally.writes + tally.others) as f64;
    let per_statement = |cpu: Nanoseconds| cpu.as_micros_f64() / statements.max(1.0);
    ClosedFacts {
        clients,
        statements_per_s: statements / seconds(totals),
        cpu_user_us_per_statement: per_statement(totals.generator.cpu_user),
        cpu_system_us_per_statement: per_statement(totals.generator.cpu_system),
        busy: totals.generator.busiest_worker,
        run_queue: totals.generator.run_queue.map(|waited| waited.as_secs_f64() / seconds(totals)),
    }
}

fn open_facts(rate: f64, totals: &StepTotals) -> OpenFacts {
    let lag = |quantile: f64| totals.measured.lag.value_at_quantile(quantile) as f64 / 1e3;
    OpenFacts {
        clients: OPEN_CLIENTS,
        rate,
        sent_per_s: totals.measured.lag.len() as f64 / seconds(totals),
        missed: totals.measured.missed,
        lag_p50_us: lag(0.5),
        lag_p99_us: lag(0.99),
        lag_p999_us: lag(0.999),
        busy: totals.generator.busiest_worker,
    }
}

fn table(calibrated: &Calibrated) -> String {
    let Whose { machine, cpu_model, cpus, build, .. } = &calibrated.whose;
    let mut out = format!(
        "{machine}: {cpus} × {cpu_model}, {build} build\n\
         clock: steps of {} ns, a read costs {:.0} ns\n\n\
         One worker with closed load over a Unix socket, each statement a point select:\n\
         protocol    clients  statements/s  µs user  µs system  busy  waited for a CPU\n",
        calibrated.clock.resolution_ns, calibrated.clock.read_ns
    );
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    for facts in &calibrated.protocols {
        for closed in &facts.closed {
            let waited = closed.run_queue.map_or("not known".to_owned(), percent);
            out += &format!(
                "{:<10} {:>8} {:>13.0} {:>8.2} {:>10.2} {:>5} {waited:>17}\n",
                facts.protocol,
                closed.clients,
                closed.statements_per_s,
                closed.cpu_user_us_per_statement,
                closed.cpu_system_us_per_statement,
                percent(closed.busy),
            );
        }
    }
    out += "\nOne worker with open load, constant arrivals, 64 clients: lag, sent − due, in µs:\n\
            protocol     offered/s  sent/s    p50    p99  p99.9  missed  busy\n";
    for ProtocolFacts { protocol, open, .. } in &calibrated.protocols {
        out += &format!(
            "{protocol:<10} {:>11.0} {:>7.0} {:>6.0} {:>6.0} {:>6.0} {:>7} {:>5}\n",
            open.rate,
            open.sent_per_s,
            open.lag_p50_us,
            open.lag_p99_us,
            open.lag_p999_us,
            open.missed,
            percent(open.busy),
        );
    }
    out += "\nA worker that was less than 90 % busy waited for the server or for a CPU: its \
            statements/s are a lower bound.\n";
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_waited_for_a_cpu_was_disturbed() {
        let check = |run_queue: Option<f64>, expected: bool| {
            let closed = ClosedFacts {
                clients: 1,
                statements_per_s: 1.0,
                cpu_user_us_per_statement: 1.0,
                cpu_system_us_per_statement: 1.0,
                busy: 1.0,
                run_queue,
            };
            let open = OpenFacts {
                clients: 64,
                rate: 1.0,
                sent_per_s: 1.0,
                missed: 0,
                lag_p50_us: 1.0,
                lag_p99_us: 1.0,
                lag_p999_us: 1.0,
                busy: 1.0,
            };
            let facts = ProtocolFacts { protocol: "mysql".to_owned(), closed: vec![closed], open };
            assert_eq!(is_disturbed(&[facts]), expected, "{run_queue:?}");
        };
        check(None, false);
        check(Some(0.01), false);
        check(Some(0.2), true);
    }

    #[test]
    fn a_disturbed_calibration_is_kept_only_on_request() {
        let check = |is_disturbed: bool, even_if_disturbed: bool, is_kept: bool| {
            let mut was_stored = false;
            let store = || {
                was_stored = true;
                Ok(PathBuf::from("calibration.json"))
            };
            let end = keep(is_disturbed, even_if_disturbed, store).unwrap();
            assert_eq!(matches!(end, End::Good), is_kept);
            assert_eq!(was_stored, is_kept);
        };
        check(false, false, true);
        check(true, false, false);
        check(true, true, true);
    }
}
