//! Runs trials on hosts, a block per host, in parallel on different machines. A wave has as many blocks as there
//! are hosts. Each machine has a thread that runs its trials one after the other through agents; this thread
//! writes the record. Listeners see one trial after the other: events of others are held back until their turn.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anyhow::Context;
use dyno_load::AbortFlag;
use dyno_record::{Event, EventKind, TrialHost, TrialReceiver, TrialSummary, WriteError};
use dyno_study::PlannedTrial;
use dyno_units::Nanoseconds;

use super::Course;
use crate::agent::TrialOrder;
use crate::agent::message::EndThere;
use crate::hosts::{FromHost, TrialSite, trial_sites};
use crate::observe::Names;
use crate::trial::Results;
use crate::{Failure, Lab, Result, TrialEnd, TrialError};

/// What the threads have told and nobody has taken: then they wait, and with them the agents.
const INBOX: usize = 16;

enum Told {
    /// It begins now, on the host of this name.
    Began(String),
    From(FromHost),
    Ended(Result<(EndThere, TrialHost)>),
}

/// The trials of one machine, in their order.
type Lane<'a> = Vec<(&'a TrialSite<'a>, TrialOrder)>;

struct Running {
    /// None once it has ended.
    receiver: Option<TrialReceiver>,
    began: Nanoseconds,
    began_unix_ms: u64,
    kept_back: KeptBack,
    readings: Names,
}

/// The most bytes of events that are kept back of a trial: a host may send them without end.
const KEPT_BACK_MOST: usize = 1 << 20;

/// The most readings of a trial that are shown, by name, for the same reason.
const READINGS_MOST: usize = 16_384;

/// Events that wait until their trial is shown. What is too much is in the record alone.
#[derive(Default)]
struct KeptBack {
    events: Vec<Event>,
    bytes: usize,
    n_left_out: u64,
}

impl KeptBack {
    fn push(&mut self, event: Event) {
        let n_bytes = serde_json::to_vec(&event).map_or(usize::MAX, |json| json.len());
        let bytes = self.bytes.saturating_add(n_bytes);
        // The end of a trial is shown in any case: it is said here, and once.
        if bytes > KEPT_BACK_MOST && !is_end(&event.kind) {
            self.n_left_out += 1;
            return;
        }
        self.bytes = bytes;
        self.events.push(event);
    }

    /// All of them, and of how many the record alone knows.
    fn take(&mut self) -> (Vec<Event>, u64) {
        let KeptBack { events, n_left_out, .. } = std::mem::take(self);
        (events, n_left_out)
    }
}

fn is_end(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::TrialFinished { .. }
            | EventKind::TrialFailed { .. }
            | EventKind::TrialAbandoned { .. }
    )
}

/// Whether a host may send this event about its trial. It knows nothing of other trials or the run, and its report says
/// how its trial ended.
fn is_of_trial(kind: &EventKind, number: u32) -> bool {
    match kind {
        EventKind::TrialBegan { trial, .. } | EventKind::CleanUpFailed { trial, .. } => {
            *trial == number
        }
        EventKind::BlockVoided { .. }
        | EventKind::VariantSettled { .. }
        | EventKind::TrialSkipped { .. } => false,
        kind => !is_end(kind),
    }
}

impl<'a> Course<'a, '_> {
    pub(super) fn all_trials_on_hosts(&mut self) -> anyhow::Result<()> {
        let sites = match self.sites() {
            Ok(sites) => sites,
            Err(TrialError::Failed { message, .. }) => {
                self.end.stopped = Some(message);
                return Ok(());
            }
            Err(TrialError::Abandoned) => {
                self.end.interrupted = true;
                return Ok(());
            }
            Err(TrialError::Record(error)) => return Err(error.into()),
        };
        let mut used = BTreeSet::new();
        loop {
            let wave = self.next_wave(&sites)?;
            if wave.is_empty() {
                return Ok(());
            }
            if self.lab.abort.is_raised() {
                self.end.interrupted = true;
                return Ok(());
            }
            if self.wave(&sites, &wave, &mut used)? {
                return Ok(());
            }
            self.repeat_void_blocks()?;
        }
    }

    /// Reaches all hosts, and notes what they are. None are needed if all trials have ended.
    fn sites(&mut self) -> Result<Vec<TrialSite<'a>>> {
        let (lab, order) = (self.lab, self.order);
        let mut sites = Vec::new();
        if self.queue.iter().all(|planned| self.ended.contains(&planned.number)) {
            return Ok(sites);
        }
        for pool in &order.design.trial_hosts {
            let mut told = Ok(());
            let found = trial_sites(lab, pool, &mut |message| {
                let event = self.note(message);
                told = std::mem::replace(&mut told, Ok(())).and(event);
            });
            told?;
            let (found, words) = found?;
            self.note(format!("hosts of {}: {words}", pool.name))?;
            sites.extend(found);
        }
        let machines: BTreeSet<&str> = sites.iter().map(|site| site.machine.as_str()).collect();
        if machines.len() < sites.len() {
            let message =
                "some of these hosts are the same machine: their trials run one after the other";
            self.note(message.to_owned())?;
        }
        Ok(sites)
    }

    /// A block for each host of each pool; a single block if the trials needed depend on earlier blocks.
    fn next_wave(&mut self, sites: &[TrialSite<'_>]) -> anyhow::Result<Vec<&'a PlannedTrial>> {
        let n_hosts = |pool: &str| {
            sites.iter().filter(|site| site.pool.name == pool && site.is_used()).count()
        };
        let pools = &self.order.design.trial_hosts;
        let most = match self.order.plan.repetitions_min {
            Some(_) => 1,
            None => pools.iter().map(|pool| n_hosts(&pool.name)).min().unwrap_or(1).max(1),
        };
        let mut blocks = BTreeSet::new();
        let mut wave: Vec<&PlannedTrial> = Vec::new();
        while let Some(planned) = self.queue.front().copied() {
            if blocks.len() == most && !blocks.contains(&planned.block) {
                break;
            }
            self.queue.pop_front();
            if !self.is_left_out(planned)? {
                blocks.insert(planned.block);
                wave.push(planned);
            }
        }
        Ok(wave)
    }

    /// `used` collects the machines that had a trial. Returns whether the run must end.
    fn wave(
        &mut self,
        sites: &[TrialSite<'_>],
        wave: &[&'a PlannedTrial],
        used: &mut BTreeSet<String>,
    ) -> anyhow::Result<bool> {
        let (lab, rest) = (self.lab, self.order.plan.rest);
        let mut lanes: BTreeMap<&str, Lane<'_>> = BTreeMap::new();
        for planned in wave {
            let variant = &self.order.plan.variants[planned.variant];
            let site = site_of(sites, variant.database.trials_on.as_deref(), planned.block);
            let site = site.context("the study has trials without a host")?;
            lanes.entry(&site.machine).or_default().push((site, self.order_of(planned, site)));
        }
        let stop = AbortFlag::new();
        let (tell, told) = sync_channel(INBOX);
        thread::scope(|scope| {
            for (machine, lane) in lanes {
                // The first trial of all on a machine follows nothing.
                let rests = !used.insert(machine.to_owned());
                let (tell, stop) = (tell.clone(), &stop);
                scope.spawn(move || run_lane(lab, &lane, (rests, rest), (&tell, stop)));
            }
            drop(tell);
            let result = self.take_in(wave, &told);
            if result.is_err() {
                stop.raise();
            }
            // Threads that still tell something find nobody, and stop.
            drop(told);
            result
        })?;
        Ok(self.note_stop() || self.end.interrupted)
    }

    fn order_of(&self, planned: &PlannedTrial, site: &TrialSite<'_>) -> TrialOrder {
        let (lab, order) = (self.lab, self.order);
        let study = order.text.cloned().unwrap_or_default();
        // That of the command line is known to be of this machine.
        let here = || lab.keeper.root().to_str().filter(|_| site.pool.is_local());
        let data_folder = order.design.data_folder.clone();
        TrialOrder {
            study: study.source,
            files: study.files,
            seed: order.plan.seed.0,
            number: planned.number,
            variant: order.plan.variants[planned.variant].name.clone(),
            data_folder: data_folder.or_else(|| here().map(str::to_owned)),
            reuse: order.design.reuse,
            fetch: study.fetch,
            keep_bytes: lab.data_sets.bytes.0,
            keep_for: lab.data_sets.unused,
        }
    }

    fn take_in(
        &mut self,
        wave: &[&'a PlannedTrial],
        told: &Receiver<(u32, Told)>,
    ) -> anyhow::Result<()> {
        let mut running: BTreeMap<u32, Running> = BTreeMap::new();
        // In the order in which they began: the first one is shown.
        let mut shown: VecDeque<u32> = VecDeque::new();
        for (number, told) in told {
            let plan = wave.iter().find(|planned| planned.number == number);
            let plan = plan.context("a trial began that is not of this wave")?;
            if let Told::Began(_) = &told {
                running.insert(number, self.begin(plan)?);
                shown.push_back(number);
            }
            let Some(one) = running.get_mut(&number) else { continue };
            let kinds = match told {
                Told::Began(host) => {
                    let message = format!("trial {number} runs on host {host}");
                    vec![EventKind::Noted { message }]
                }
                Told::From(FromHost::Event(mut kind)) => {
                    if let EventKind::ReadingsTaken { values } = &mut *kind {
                        one.readings.keep(values);
                    }
                    Vec::from_iter(Some(*kind).filter(|kind| is_of_trial(kind, number)))
                }
                Told::From(FromHost::Part { name, bytes }) => {
                    // If it is refused, a file is missing at the end.
                    if let Some(receiver) = &mut one.receiver {
                        let _ = receiver.part(&name, &bytes)?;
                    }
                    Vec::new()
                }
                Told::Ended(result) => {
                    let (end, last) = self.end_of(plan, one, result)?;
                    let took = self.lab.clock.now().saturating_sub(one.began);
                    self.longest = self.longest.max(took);
                    self.count(plan.variant, &end);
                    last
                }
            };
            for kind in kinds {
                let event = self.events.stamp(kind);
                if let Some(receiver) = &mut one.receiver {
                    receiver.event(&event)?;
                }
                // What is only of interest while it goes on would fill the memory.
                if shown.front() == Some(&number) || !event.kind.is_passing() {
                    one.kept_back.push(event);
                }
            }
            while let Some(first) = shown.front().and_then(|first| running.get_mut(first)) {
                let (events, n_left_out) = first.kept_back.take();
                events.iter().for_each(|event| (self.events.listener)(event));
                if n_left_out > 0 {
                    let message =
                        format!("{n_left_out} messages of this trial are only in its record");
                    let note = self.events.stamp(EventKind::Noted { message });
                    (self.events.listener)(&note);
                }
                if first.receiver.is_some() {
                    break;
                }
                shown.pop_front();
            }
        }
        Ok(())
    }

    fn begin(&mut self, planned: &PlannedTrial) -> Result<Running, WriteError> {
        let variant = &self.order.plan.variants[planned.variant].name;
        Ok(Running {
            receiver: Some(self.record.receive_trial(planned, variant)?),
            began: self.lab.clock.now(),
            began_unix_ms: self.lab.clock.unix_millis(),
            kept_back: KeptBack::default(),
            readings: Names::new(READINGS_MOST),
        })
    }

    fn end_of(
        &mut self,
        planned: &PlannedTrial,
        one: &mut Running,
        result: Result<(EndThere, TrialHost)>,
    ) -> Result<(TrialEnd, Vec<EventKind>), WriteError> {
        let Some(mut receiver) = one.receiver.take() else {
            return Ok((TrialEnd::Abandoned, Vec::new()));
        };
        let ended = |end: TrialEnd| {
            let last = end.event(planned.number);
            Ok((end, vec![last]))
        };
        let (why, host) = match result {
            Err(TrialError::Record(error)) => return Err(error),
            Ok((Ok(TrialEnd::Abandoned), _)) | Err(TrialError::Abandoned) => {
                return ended(TrialEnd::Abandoned);
            }
            // What was cut off by the user fails for no other reason.
            Err(_) if self.lab.abort.is_raised() => return ended(TrialEnd::Abandoned),
            Err(TrialError::Failed { message, .. }) => (message, None),
            Ok((Err(why), host)) => (format!("host {}: {why}", host.name), Some(host)),
            Ok((Ok(end), host)) => match receiver.finish(host.clone())? {
                Ok(_) => return ended(end),
                Err((back, why)) => {
                    receiver = *back;
                    (format!("host {}: {why}", host.name), Some(host))
                }
            },
        };
        // It says nothing of the variant's server.
        let (message, log) = (why, Vec::new());
        let end = TrialEnd::Failed(Failure { message, log, was_deployed: true, may_go_well: true });
        let Some(outcome) = end.outcome() else { return ended(end) };
        let times = (one.began_unix_ms, self.lab.clock.unix_millis());
        let summary = Results::default().into_summary(planned, outcome, times, None);
        receiver.event(&self.events.stamp(end.event(planned.number)))?;
        receiver.finish_without(TrialSummary { host, ..summary })?;
        ended(end)
    }
}

/// The host of a block: one after the other of those of the pool that are still used, round and round.
fn site_of<'a>(
    sites: &'a [TrialSite<'a>],
    pool: Option<&str>,
    block: u32,
) -> Option<&'a TrialSite<'a>> {
    let is_its = |site: &&TrialSite<'_>| pool == Some(site.pool.name.as_str()) && site.is_used();
    let own: Vec<&TrialSite<'_>> = sites.iter().filter(is_its).collect();
    own.get((block.max(1) as usize - 1).checked_rem(own.len())?).copied()
}

fn run_lane(
    lab: &Lab,
    lane: &[(&TrialSite<'_>, TrialOrder)],
    (mut rests, rest): (bool, Nanoseconds),
    (tell, stop): (&SyncSender<(u32, Told)>, &AbortFlag),
) {
    for (site, order) in lane {
        if std::mem::replace(&mut rests, true) {
            lab.sleep(rest);
        }
        if lab.abort.is_raised() || stop.is_raised() || lab.hosts.lost().is_some() {
            return;
        }
        let told = |told| match tell.send((order.number, told)) {
            Ok(()) if !stop.is_raised() => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        };
        if told(Told::Began(site.name().to_owned())).is_break() {
            return;
        }
        let result = site.run(lab, order, &mut |from| told(Told::From(from)));
        if told(Told::Ended(result)).is_break() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_back_of_a_trial_is_bounded_and_has_its_end() {
        let event = |kind| Event { at_ns: 1, unix_ms: 1, kind };
        let noted = |n: usize| event(EventKind::Noted { message: "x".repeat(n) });
        let mut kept = KeptBack::default();
        (0..2000).for_each(|_| kept.push(noted(1000)));
        kept.push(noted(KEPT_BACK_MOST));
        let finished = event(EventKind::TrialFinished { trial: 1 });
        kept.push(finished.clone());
        let (events, n_left_out) = kept.take();
        assert!((900..1050).contains(&events.len()), "{}", events.len());
        assert_eq!(events.len() as u64 + n_left_out, 2002);
        assert_eq!(events.last(), Some(&finished));
        kept.push(noted(1000));
        assert_eq!(kept.take(), (vec![noted(1000)], 0));
    }

    #[test]
    fn a_host_speaks_of_its_own_trial_alone_and_does_not_say_that_it_has_ended() {
        let text = String::new;
        let began = |trial| EventKind::TrialBegan { trial, variant: text(), repetition: 1 };
        let log = Vec::new;
        let refused = [
            began(2),
            EventKind::CleanUpFailed { trial: 2, message: text() },
            EventKind::TrialFinished { trial: 1 },
            EventKind::TrialFailed { trial: 1, message: text(), server_log: log() },
            EventKind::TrialAbandoned { trial: 1 },
            EventKind::BlockVoided { block: 1, why: text() },
            EventKind::VariantSettled { variant: text(), repetitions: 1, why: text() },
            EventKind::TrialSkipped { trial: 1, variant: text(), repetition: 1, why: text() },
        ];
        refused.iter().for_each(|kind| assert!(!is_of_trial(kind, 1), "{kind:?}"));
        let taken = [
            began(1),
            EventKind::CleanUpFailed { trial: 1, message: text() },
            EventKind::Noted { message: text() },
            EventKind::LeftoverEnded { what: text() },
        ];
        taken.iter().for_each(|kind| assert!(is_of_trial(kind, 1), "{kind:?}"));
    }
}
