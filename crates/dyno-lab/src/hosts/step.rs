//! A step of load by several generators.

use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::Duration;

use dyno_database::Endpoint;
use dyno_load::{
    AbortFlag, COUNT_MOST, IntervalPart, LoadError, StepEvent, StepMerge, StepSpec, StepTotals,
};
use dyno_model::Name;
use dyno_record::{EncodedHistogram, GeneratorSummary, HostSummary, KindSummary, new_histogram};
use dyno_study::{Plan, Variant};
use dyno_units::Nanoseconds;
use dyno_workload::{AuditTotals, MadeWorkload};

use super::channel::{Channel, Said};
use super::clock::{self, RoundTrip};
use super::{Agents, POLL};
use crate::agent::message::{Answer, LoadEnd, LoadOrder, Order, Step, Work};
use crate::observe::six_digits;
use crate::totals::{DoneThere, generator, outcomes, totals};

/// Round trips by which a clock is measured, before and after a load.
const ROUND_TRIPS: usize = 8;
/// How long each of them may take, in looks …
const LOOKS: usize = 5000;
/// … with this time between them.
const LOOK: Duration = Duration::from_micros(200);
/// Minimum time between the order and the start, in time and in slowest round trips. An agent that gets the order too
/// late cannot start with the others; on a busy machine it may wait for a CPU.
const LEAD: Nanoseconds = Nanoseconds::from_millis(500);
const LEAD_TRIPS: u64 = 10;
/// … and at most, which is longer than a measurement of clocks waits for an answer tenfold.
const LEAD_MOST: Nanoseconds = Nanoseconds::from_secs(15);
/// How long generators may take to open their connections: thousands of logins, each with a key to be derived.
const CONNECT_LIMIT: Nanoseconds = Nanoseconds::from_secs(1800);
/// How long generators may take to end after the last statement must have ended.
const END_LIMIT: Nanoseconds = Nanoseconds::from_secs(30);
/// Time limit of statements that have none.
const STATEMENT_LIMIT: Nanoseconds = Nanoseconds::from_secs(5);
/// How often somebody looks whether generators have stopped, and how often at most.
const STOP_LOOKS: usize = 100;

pub(crate) struct LoadRequest<'a> {
    /// The servers, of which each generator gets one, in turn.
    pub(crate) endpoints: &'a [Endpoint],
    pub(crate) supports_named_statements: bool,
    pub(crate) work: Work,
    pub(crate) workload: &'a MadeWorkload,
    /// Threads of each generator, if the study says how many.
    pub(crate) workers: Option<u32>,
    pub(crate) measures_network: bool,
    pub(crate) abort: &'a AbortFlag,
}

impl LoadRequest<'_> {
    fn endpoint(&self, generator: usize) -> &Endpoint {
        &self.endpoints[generator % self.endpoints.len()]
    }
}

pub(crate) struct Generated {
    pub(crate) totals: StepTotals,
    pub(crate) hosts: Vec<HostSummary>,
    /// User and system CPU seconds of all agents in the measure phase; none if one could not tell.
    pub(crate) process_cpu: Option<(f64, f64)>,
    pub(crate) done_there: Vec<DoneThere>,
}

/// The workload of a variant as agents plan it; the same as [`crate::manifest::plan_workload`] does.
pub(crate) fn work_of(plan: &Plan, variant: &Variant) -> Work {
    let request = plan.step_request();
    Work {
        workload: variant.workload.workload.clone(),
        options: variant.workload.options.clone(),
        clients: request.clients,
        duration: request.duration,
        seed: plan.seed.derive("data", 0).0,
    }
}

impl Agents {
    /// [`dyno_load::run_step`] in slices. Fails, with the host's name, as that or an agent does.
    pub(crate) fn run_load(
        &self,
        spec: &StepSpec,
        request: &LoadRequest<'_>,
        observe: &mut dyn FnMut(StepEvent<'_>),
    ) -> Result<Generated, LoadError> {
        let load = self.n_loads.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(why) = self.lost() {
            return Err(LoadError(why));
        }
        request.endpoints.iter().try_for_each(|endpoint| self.check_address(endpoint))?;
        let (n, servers) = (self.channels.0.len(), request.endpoints.len());
        if n < servers || n > spec.load.clients() {
            // Of those that the study names, some are lost.
            return Err(LoadError(format!(
                "the {n} hosts that are left are too few for {servers} servers, or too many for {} \
                 clients",
                spec.load.clients()
            )));
        }
        let mut course = Course {
            generators: self,
            load,
            spec,
            request,
            stages: vec![Stage::Asked; self.channels.0.len()],
        };
        let result = course.run(observe);
        if result.is_err() {
            course.stop();
        }
        result
    }

    /// Refuses a server that agents on other machines cannot reach.
    fn check_address(&self, endpoint: &Endpoint) -> Result<(), LoadError> {
        if self.is_local || matches!(endpoint.address, dyno_database::Address::Tcp { .. }) {
            return Ok(());
        }
        let why = "the server listens on a Unix socket of this machine, which generators on other \
             hosts cannot reach: give a server by a URL with a host and port, or use local \
             generators";
        Err(LoadError(why.to_owned()))
    }

    fn measure_clocks(&self) -> Vec<Vec<RoundTrip>> {
        let channels = &self.channels.0;
        let before: Vec<usize> = channels.iter().map(|channel| channel.n_trips()).collect();
        for nth in 1..=ROUND_TRIPS {
            channels.iter().for_each(|channel| channel.ping());
            for _ in 0..LOOKS {
                let mut trips = channels.iter().zip(&before);
                if trips.all(|(channel, n)| channel.n_trips() >= n + nth) {
                    break;
                }
                if self.lost().is_some() {
                    break;
                }
                thread::sleep(LOOK);
            }
        }
        channels.iter().map(|channel| channel.take_trips()).collect()
    }
}

struct Course<'a> {
    generators: &'a Agents,
    load: u64,
    spec: &'a StepSpec,
    request: &'a LoadRequest<'a>,
    stages: Vec<Stage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Asked,
    Connected,
    Running,
    Ended,
}

impl Stage {
    /// None if the answer is not due: a second one would count for another generator.
    fn after(self, answer: &Answer) -> Option<Stage> {
        match (self, answer) {
            (Stage::Asked, Answer::Connected { .. }) => Some(Stage::Connected),
            (Stage::Running, Answer::Interval { .. }) => Some(Stage::Running),
            (Stage::Running, Answer::Ended(_)) => Some(Stage::Ended),
            (Stage::Ended, _) => None,
            (_, Answer::Failed { .. }) => Some(Stage::Ended),
            _ => None,
        }
    }
}

#[derive(Default)]
struct Share {
    committed: Vec<u64>,
    lag_p99_us: Vec<f64>,
    did: AuditTotals,
    end: Option<LoadEnd>,
}

impl Course<'_> {
    fn run(&mut self, observe: &mut dyn FnMut(StepEvent<'_>)) -> Result<Generated, LoadError> {
        let asked = self.generators.clock.now();
        self.order()?;
        self.await_connections()?;
        let clients = self.spec.load.clients();
        let took = self.generators.clock.now().saturating_sub(asked);
        observe(StepEvent::Connected { clients, took });
        // Round trips of before the connections were open say less.
        self.channels().iter().for_each(|channel| drop(channel.take_trips()));
        let before = self.generators.measure_clocks();
        let began = self.begin(&before)?;
        let (totals, shares) = self.collect(began, observe)?;
        let during: Vec<_> = self.channels().iter().map(|channel| channel.take_trips()).collect();
        let after = self.generators.measure_clocks();
        let facts = before.iter().zip(&during).zip(&after);
        let clocks = facts.map(|((before, during), after)| clock::facts([before, during, after]));
        let names = self.request.workload.kinds();
        let mut hosts = Vec::new();
        let mut process_cpu = Some((0.0, 0.0));
        let mut done_there: Vec<DoneThere> =
            self.request.endpoints.iter().map(|_| DoneThere::default()).collect();
        for (idx, (mut share, clock)) in shares.into_iter().zip(clocks).enumerate() {
            let hello = &self.generators.hellos[idx];
            let Some(end) = &share.end else { continue };
            share.did.in_flight = end.end.in_flight_at_end;
            let server = idx % done_there.len();
            let (did, counts) = (std::mem::take(&mut share.did), end.counts.clone());
            done_there[server].add(&DoneThere { did, counts });
            self.request.workload.clients.add_counts(&end.counts);
            process_cpu =
                process_cpu.zip(end.process_cpu).map(|(all, own)| (all.0 + own.0, all.1 + own.1));
            hosts.push(HostSummary {
                name: self.generators.hosts[idx].0.clone(),
                server: (self.request.endpoints.len() > 1)
                    .then(|| self.request.endpoint(idx).to_string()),
                machine: match &self.generators.hosts[idx].1 {
                    Some(place) => format!("{}, {place}", hello.machine),
                    None => hello.machine.clone(),
                },
                facts: hello.facts.clone(),
                clock,
                ..summary(names, share)
            });
        }
        Ok(Generated { totals, hosts, process_cpu, done_there })
    }

    fn channels(&self) -> &[std::sync::Arc<Channel>] {
        &self.generators.channels.0
    }

    fn order(&self) -> Result<(), LoadError> {
        let Agents { channels, is_local, .. } = self.generators;
        let (count, cpus) = (channels.0.len(), &self.spec.cpus);
        for (index, channel) in channels.0.iter().enumerate() {
            // Worker k of generator i of a machine is worker i + n·k of all.
            let own_cpus = (0..cpus.len()).map(|nth| match is_local {
                true => cpus[(index + count * nth) % cpus.len()],
                false => cpus[nth],
            });
            let other = "several generators can only run steps that end by time and have no roles";
            let step = Step::of(self.spec, own_cpus.collect());
            let step = step.ok_or_else(|| LoadError(other.to_owned()))?;
            channel.say(&Order::Load(Box::new(LoadOrder {
                load: self.load,
                server: self.request.endpoint(index).into(),
                supports_named_statements: self.request.supports_named_statements,
                work: self.request.work.clone(),
                step,
                index,
                count,
                workers: self.request.workers.map(|workers| workers as usize),
                sharing: if *is_local { count } else { 1 },
                measures_network: self.request.measures_network && self.load == 1,
            })));
        }
        Ok(())
    }

    fn await_connections(&mut self) -> Result<(), LoadError> {
        let limit = self.generators.clock.now() + CONNECT_LIMIT;
        while let Some(idx) = self.stages.iter().position(|stage| *stage == Stage::Asked) {
            if self.generators.clock.now() > limit {
                let why = format!("its clients are not connected after {CONNECT_LIMIT}");
                return Err(LoadError(self.channels()[idx].lose(&why)));
            }
            if self.request.abort.is_raised() {
                return Err(LoadError("stopped while the connections were opened".to_owned()));
            }
            self.next(None)?;
        }
        Ok(())
    }

    /// Orders all to begin at one time; returns it by the controller's clock.
    fn begin(&mut self, clocks: &[Vec<RoundTrip>]) -> Result<Nanoseconds, LoadError> {
        let mut best = Vec::new();
        for (trips, channel) in clocks.iter().zip(self.channels()) {
            let trip = clock::best(trips).ok_or_else(|| {
                LoadError(channel.lose("its agent did not answer when its clock was measured"))
            })?;
            best.push(trip);
        }
        let slowest = clocks.iter().flatten().map(|trip| trip.took).max().unwrap_or_default();
        let at = self.generators.clock.now() + lead(slowest);
        for (trip, channel) in best.iter().zip(self.channels()) {
            channel.say(&Order::Begin { load: self.load, at: trip.to_agent(at) });
        }
        self.stages.fill(Stage::Running);
        Ok(at)
    }

    fn collect(
        &mut self,
        began: Nanoseconds,
        observe: &mut dyn FnMut(StepEvent<'_>),
    ) -> Result<(StepTotals, Vec<Share>), LoadError> {
        let n = self.channels().len();
        let n_kinds = self.request.workload.kinds().len();
        let mut merge = StepMerge::new(self.spec, began, n, n_kinds);
        let mut shares: Vec<Share> = (0..n).map(|_| Share::default()).collect();
        let statement = match self.spec.statement_timeout {
            Nanoseconds::ZERO => STATEMENT_LIMIT,
            limit => limit,
        };
        let limit = began + self.spec.warm_up + self.spec.duration + statement + END_LIMIT;
        let mut is_stopped = false;
        while !merge.is_complete() {
            if self.request.abort.is_raised() && !is_stopped {
                self.channels().iter().for_each(|channel| channel.say(&Order::Stop));
                is_stopped = true;
            }
            let until = merge.announce(self.generators.clock.now(), observe);
            match self.next(until)? {
                Some((of, Answer::Interval { idx, part, .. })) => {
                    let now = self.generators.clock.now();
                    let added = shares[of].add((of, now), (idx, &part), &mut merge, observe);
                    added.map_err(|error| self.invalid(of, &error))?;
                }
                Some((idx, Answer::Ended(end))) => {
                    let ended = shares[idx].end(*end, &mut merge);
                    ended.map_err(|error| self.invalid(idx, &error))?;
                }
                None if self.generators.clock.now() > limit => return Err(self.overdue()),
                _ => {}
            }
        }
        Ok((merge.finish()?, shares))
    }

    fn invalid(&self, idx: usize, error: &LoadError) -> LoadError {
        LoadError(self.channels()[idx].lose(&format!("its agent sent invalid results: {error}")))
    }

    fn overdue(&self) -> LoadError {
        let mut all = self.stages.iter().zip(self.channels());
        let late = all.find(|(stage, _)| **stage != Stage::Ended);
        LoadError(late.map_or_else(String::new, |(_, channel)| {
            channel.lose(&format!("its load was still running {END_LIMIT} after it was due to end"))
        }))
    }

    /// The next answer of this load, which is due; none if there is none for a while, or until a time.
    fn next(&mut self, until: Option<Nanoseconds>) -> Result<Option<(usize, Answer)>, LoadError> {
        let now = self.generators.clock.now();
        let wait = until.map_or(POLL, |until| until.saturating_sub(now).to_duration().min(POLL));
        let (idx, said) = match self.generators.answers.recv_timeout(wait) {
            Ok(said) => said,
            Err(RecvTimeoutError::Timeout) => {
                return self.generators.lost().map_or(Ok(None), |why| Err(LoadError(why)));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(LoadError("all generators have ended".to_owned()));
            }
        };
        match said {
            Said::Lost(why) => Err(LoadError(why)),
            Said::Answer(answer) if load_of(&answer) == Some(self.load) => {
                let Some(stage) = self.stages[idx].after(&answer) else {
                    let why = self.channels()[idx].lose("its agent answered out of turn");
                    return Err(LoadError(why));
                };
                self.stages[idx] = stage;
                match *answer {
                    Answer::Failed { message, .. } => {
                        Err(LoadError(format!("host {}: {message}", self.channels()[idx].name)))
                    }
                    answer => Ok(Some((idx, answer))),
                }
            }
            // Of a load that was stopped before.
            Said::Answer(_) => Ok(None),
        }
    }

    /// Stops what goes on, and waits until it has ended everywhere.
    fn stop(&mut self) {
        self.channels().iter().for_each(|channel| channel.say(&Order::Stop));
        for _ in 0..STOP_LOOKS {
            let mut all = self.stages.iter().zip(self.channels());
            if all.all(|(stage, channel)| *stage == Stage::Ended || channel.lost().is_some()) {
                return;
            }
            let Ok((idx, said)) = self.generators.answers.recv_timeout(POLL) else { continue };
            let has_ended = match &said {
                Said::Lost(_) => true,
                Said::Answer(answer) => {
                    load_of(answer) == Some(self.load)
                        && matches!(**answer, Answer::Ended(_) | Answer::Failed { .. })
                }
            };
            if has_ended {
                self.stages[idx] = Stage::Ended;
            }
        }
    }
}

fn lead(slowest: Nanoseconds) -> Nanoseconds {
    LEAD + Nanoseconds(slowest.0.saturating_mul(LEAD_TRIPS)).min(LEAD_MOST)
}

/// Which load an answer belongs to; none if to none.
fn load_of(answer: &Answer) -> Option<u64> {
    match answer {
        Answer::Connected { load, .. }
        | Answer::Interval { load, .. }
        | Answer::Failed { load, .. } => Some(*load),
        Answer::Ended(end) => Some(end.load),
        _ => None,
    }
}

impl Share {
    fn add(
        &mut self,
        (of, now): (usize, Nanoseconds),
        (idx, part): (u64, &IntervalPart),
        merge: &mut StepMerge,
        observe: &mut dyn FnMut(StepEvent<'_>),
    ) -> Result<(), LoadError> {
        merge.add((of, now), (idx, part), observe)?;
        self.did.add(&totals(part));
        self.committed.push(part.committed());
        self.lag_p99_us.push(six_digits(part.lag.quantile(0.99).as_micros_f64()));
        Ok(())
    }

    fn end(&mut self, end: LoadEnd, merge: &mut StepMerge) -> Result<(), LoadError> {
        merge.end(&end.end)?;
        if end.counts.iter().any(|count| *count > COUNT_MOST) {
            return Err(LoadError("its end is damaged, or its counts are impossible".to_owned()));
        }
        self.end = Some(end);
        Ok(())
    }
}

fn summary(names: &[Name], share: Share) -> HostSummary {
    let Some(LoadEnd { end, process_cpu, rss_bytes, network, .. }) = share.end else {
        return HostSummary::default();
    };
    let encoded = |times: &dyno_load::TimesPart| {
        EncodedHistogram::encode(&times.histogram().unwrap_or_else(new_histogram))
    };
    let kinds = names.iter().zip(&end.measured.kinds).map(|(name, kind)| KindSummary {
        name: name.clone().into_owned(),
        outcomes: outcomes(kind.outcomes.0),
        response: encoded(&kind.response),
        service: encoded(&kind.service),
        commits_100ms: None,
    });
    HostSummary {
        clients: end.clients as u64,
        kinds: kinds.collect(),
        due: end.measured.due,
        missed: end.measured.missed,
        lag: encoded(&end.measured.lag),
        committed: share.committed,
        lag_p99_us: share.lag_p99_us,
        network,
        generator: GeneratorSummary {
            process_cpu_user_s: process_cpu.map(|(user, _)| user),
            process_cpu_system_s: process_cpu.map(|(_, system)| system),
            rss_bytes,
            ..generator(&end.generator)
        },
        ..HostSummary::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_answer_does_not_delay_the_start_for_long() {
        assert_eq!(lead(Nanoseconds::from_millis(20)), Nanoseconds::from_millis(700));
        assert_eq!(lead(Nanoseconds::from_secs(60)), Nanoseconds::from_millis(15_500));
        assert_eq!(lead(Nanoseconds(u64::MAX)), Nanoseconds::from_millis(15_500));
    }
}

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz {
    use dyno_model::Load;
    use dyno_units::Seed;

    use super::*;
    use crate::agent::read_frame;

    /// Orders and answers, as frames and as JSON lines; answers about a load are summed up.
    pub fn agent_messages(input: &[u8]) {
        let mut frames = input;
        while let Ok(order) = read_frame::<Order>(&mut frames) {
            take_order(order);
        }
        let mut frames = input;
        while read_frame::<Answer>(&mut frames).is_ok() {}
        let lines = || input.split(|byte| *byte == b'\n');
        lines().filter_map(|line| serde_json::from_slice(line).ok()).for_each(take_order);
        take_answers(lines().filter_map(|line| serde_json::from_slice(line).ok()));
    }

    fn take_order(order: Order) {
        if let Order::Load(order) = order {
            let _ = (order.step.spec(1), order.server.endpoint());
        }
    }

    fn take_answers(answers: impl Iterator<Item = Answer>) {
        let spec = StepSpec {
            load: Load::Closed { clients: 2 },
            step: 0,
            warm_up: Nanoseconds::ZERO,
            duration: Nanoseconds::from_secs(3),
            until_steady: None,
            gone_limit: None,
            statement_timeout: Nanoseconds::ZERO,
            retries: 0,
            workers: 1,
            cpus: Vec::new(),
            seed: Seed(1),
        };
        let names = [Name::Borrowed("kind")];
        let (mut share, mut merge) =
            (Share::default(), StepMerge::new(&spec, Nanoseconds::ZERO, 1, 1));
        for answer in answers {
            match answer {
                Answer::Interval { idx, part, .. } => {
                    let _ = share.add(
                        (0, Nanoseconds(u64::MAX)),
                        (idx, &part),
                        &mut merge,
                        &mut |_| {},
                    );
                }
                Answer::Ended(end) => {
                    let _ = share.end(*end, &mut merge);
                }
                Answer::TrialEvent(event) => {
                    let _ = dyno_record::cleaned(&*event);
                }
                _ => {}
            }
        }
        let _ = merge.finish();
        let _ = summary(&names, share);
    }
}
