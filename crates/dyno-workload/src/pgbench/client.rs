//! A client's loop: transactions, retries and failures, as in pgbench.

use std::future::poll_fn;

use dyno_pgbench::{Prng, Seeds, Value, Variables};

use crate::prelude::*;

use super::commands::{Pipeline, Place, Stop};
use super::statistics::{ClientCells, Failure};
use super::{Host, LogEntry, LogOutcome, Protocol, Settings};

pub(super) struct Shared {
    pub(super) settings: Arc<Settings>,
    pub(super) host: Arc<dyn Host>,
    /// Of each script, by its commands: the statement that is prepared for it, and its class.
    pub(super) statements: Vec<Vec<Option<(usize, StatementClass)>>>,
    total_weight: u64,
    is_measuring: bool,
}

impl Shared {
    pub(super) fn of(settings: Arc<Settings>, host: Arc<dyn Host>) -> Shared {
        let mut next = 0;
        let mut statements = Vec::new();
        for script in &settings.scripts {
            let of_script = script.script.commands.iter().map(|command| match &command.action {
                dyno_pgbench::Action::Sql(sql) => {
                    next += 1;
                    Some((next - 1, super::class_of(sql)))
                }
                _ => None,
            });
            statements.push(of_script.collect());
        }
        let total_weight = settings.scripts.iter().map(|script| u64::from(script.weight)).sum();
        let is_measuring = settings.measures || host.logs();
        Shared { settings, host, statements, total_weight, is_measuring }
    }
}

pub(super) struct Client {
    pub(super) shared: Arc<Shared>,
    pub(super) cells: Arc<ClientCells>,
    pub(super) id: usize,
    n_clients: usize,
    pub(super) variables: Variables,
    pub(super) random: Prng,
    choosing: Prng,
    /// Statements of which it was shown that they are prepared.
    pub(super) told_prepared: Vec<usize>,
    /// Transactions that have ended in any way.
    n_ended: u64,
    /// Used again for each statement.
    pub(super) buffer: Vec<u8>,
    pub(super) ends: Vec<usize>,
    /// The command that runs.
    pub(super) place: Place,
    pub(super) pipeline: Pipeline,
}

enum Outcome {
    Done,
    Failed(Failure, StatementError),
    /// The time was over when it failed.
    Cut(StatementError),
    Aborted(StatementError),
}

impl Client {
    pub(super) fn new(shared: Arc<Shared>, context: &ClientContext) -> Client {
        let settings = &shared.settings;
        let (id, n_clients) = (context.client_idx, context.n_clients);
        // The streams of all clients come first, then a number, then those of the threads.
        let seed = settings.seed.unwrap_or_else(|| context.random.clone().next_u64());
        let mut seeds = Seeds::new(seed);
        let streams: Vec<Prng> = (0..n_clients).map(|_| seeds.stream()).collect();
        let random = streams[id].clone();
        let is_seeded = settings.defines.iter().any(|(name, _)| name == "default_seed");
        let default_seed = if is_seeded { 0 } else { seeds.number() };
        let choosing = (0..=id).fold(random.clone(), |_, _| {
            let chooses = seeds.stream();
            // Those of the thread's pauses and of its log.
            let _ = (seeds.stream(), seeds.stream());
            chooses
        });
        let mut variables = Variables::new(&settings.names);
        let own = [
            ("scale", settings.scale),
            ("client_id", id as i64),
            ("default_seed", default_seed),
            ("random_seed", seed as i64),
        ];
        for (slot, value) in own.map(|(name, value)| (settings.names.find(name), value)) {
            slot.into_iter().for_each(|slot| variables.set(slot, Value::Integer(value)));
        }
        for (name, text) in &settings.defines {
            let slot = settings.names.find(name);
            slot.into_iter().for_each(|slot| variables.set_text(slot, text.as_bytes()));
        }
        let measures = usize::from(settings.measures_commands);
        let n_commands = |one: &super::WeightedScript| measures * one.script.commands.len();
        let commands: Vec<usize> = settings.scripts.iter().map(n_commands).collect();
        let cells = settings.statistics.client(&commands);
        Client {
            cells,
            id,
            n_clients,
            variables,
            random,
            choosing,
            told_prepared: Vec::new(),
            n_ended: 0,
            buffer: Vec::with_capacity(512),
            ends: Vec::with_capacity(16),
            place: Place::default(),
            pipeline: Pipeline::default(),
            shared,
        }
    }

    /// Does transactions until the step ends, or the client has done its number of them.
    pub(super) async fn run(mut self, context: ClientContext) {
        let ClientContext { mut session, statements, pace, .. } = context;
        let pace: &dyn Pace = pace.as_ref();
        let settings = Arc::clone(&self.shared.settings);
        let quota = settings.transactions.unwrap_or(u64::MAX);
        let mut is_first = true;
        while poll_fn(|_| pace.poll_due()).await {
            if is_first {
                self.cells.began(pace.now());
            }
            let script = self.choose();
            if settings.is_paced && settings.latency_limit_us > 0 && self.is_too_late(pace) {
                self.skip(script, pace);
            } else {
                if settings.connects && !std::mem::take(&mut is_first) {
                    let began = pace.now();
                    if let Err(error) = session.reconnect(&statements).await {
                        self.report(&error.to_string());
                        let id = self.id;
                        self.report(&format!("client {id} aborted while establishing connection"));
                        return self.abort(pace);
                    }
                    self.cells.connected(pace.now().saturating_sub(began));
                }
                is_first = false;
                match self.transaction(script, &mut session, pace).await {
                    Flow::GoOn => {}
                    Flow::End => return pace.finished(),
                    Flow::Abort => return self.abort(pace),
                }
            }
            if self.n_ended >= quota {
                return pace.finished();
            }
        }
    }

    fn choose(&mut self) -> usize {
        let scripts = &self.shared.settings.scripts;
        if scripts.len() == 1 {
            return 0;
        }
        let mut rest = self.choosing.up_to(self.shared.total_weight.saturating_sub(1));
        for (idx, script) in scripts.iter().enumerate() {
            let weight = u64::from(script.weight);
            if rest < weight {
                return idx;
            }
            rest -= weight;
        }
        0
    }

    /// Whether a transaction would miss the latency limit even if it took no time.
    fn is_too_late(&self, pace: &dyn Pace) -> bool {
        let limit = Nanoseconds(self.shared.settings.latency_limit_us * 1000);
        pace.now().saturating_sub(pace.due()) > limit
    }

    fn skip(&mut self, script: usize, pace: &dyn Pace) {
        self.n_ended += 1;
        self.cells.skipped(script);
        self.cells.active(pace.latest());
        pace.skipped();
        self.log(script, (LogOutcome::Skipped, 0), 0, pace.latest());
    }

    async fn transaction(&mut self, script: usize, session: &mut Session, pace: &dyn Pace) -> Flow {
        pace.sent();
        let due = pace.due();
        let is_lagging = self.shared.settings.is_paced && self.shared.is_measuring;
        let begun = if is_lagging { pace.now() } else { due };
        let (outcome, tries) = self.attempts(script, session, due, pace).await;
        let tally = session.take_tally();
        let next = match &outcome {
            Outcome::Done => pace.done(script, tally, Ok(Ended::Committed)),
            Outcome::Failed(_, error) | Outcome::Cut(error) | Outcome::Aborted(error) => {
                pace.done(script, tally, Err(error))
            }
        };
        let now = pace.latest();
        self.cells.active(now);
        match outcome {
            Outcome::Cut(_) => return Flow::End,
            Outcome::Aborted(_) => return Flow::Abort,
            Outcome::Done | Outcome::Failed(..) => self.n_ended += 1,
        }
        if tries > 1 {
            self.cells.retried(script, u64::from(tries - 1));
        }
        let us = |from: Nanoseconds, to: Nanoseconds| to.saturating_sub(from).0 / 1000;
        let lag_us = us(due, begun);
        let log = match outcome {
            Outcome::Failed(failure, _) => {
                self.cells.failed(script, failure);
                LogOutcome::Failed(failure)
            }
            _ => {
                self.cells.committed(script);
                let latency_us = us(due, now);
                if self.shared.is_measuring {
                    let lag_us = self.shared.settings.is_paced.then_some(lag_us);
                    self.cells.measured(script, latency_us, lag_us);
                    let limit = self.shared.settings.latency_limit_us;
                    if limit > 0 && latency_us > limit {
                        self.cells.late(script);
                    }
                }
                LogOutcome::Done(latency_us)
            }
        };
        self.log(script, (log, tries - 1), lag_us, now);
        if session.is_in_transaction() == Some(true) {
            let why = "end of script reached without completing the last transaction";
            self.report(&format!("client {} aborted: {why}", self.id));
            return Flow::Abort;
        }
        if next == crate::Next::Stop { Flow::End } else { Flow::GoOn }
    }

    /// Tries until it is done, or is not to be tried again. Returns the number of tries.
    async fn attempts(
        &mut self,
        script: usize,
        session: &mut Session,
        due: Nanoseconds,
        pace: &dyn Pace,
    ) -> (Outcome, u32) {
        let before = self.random.clone();
        let mut tries = 1;
        loop {
            let (error, command) = match self.commands(script, session, pace).await {
                Ok(()) => return (Outcome::Done, tries),
                Err(Stop::Aborted(error)) => return (Outcome::Aborted(error), tries),
                Err(Stop::Failed { error, command }) => (error, command),
            };
            let failure = failure_of(&error);
            if session.is_in_transaction() == Some(true)
                && let Err(error) = session.rollback().await
            {
                let (id, said) = (self.id, super::server_message(&error, None));
                let when = "while rolling back the transaction after an error";
                self.report(&format!("client {id} aborted {when}; {said}"));
                return (Outcome::Aborted(error), tries);
            }
            // True as long as the step goes on.
            if !pace.begin_pause(Nanoseconds::ZERO) {
                return (Outcome::Cut(error), tries);
            }
            let is_retried = failure != Failure::Other && self.may_retry(tries, due, pace);
            self.tell_of_try(tries, due, is_retried, pace);
            self.cells.command_failed(script, command, is_retried);
            if !is_retried {
                return (Outcome::Failed(failure, error), tries);
            }
            pace.retried_at_once(script, session.take_tally(), &error);
            tries += 1;
            self.random = before.clone();
        }
    }

    fn may_retry(&self, tries: u32, due: Nanoseconds, pace: &dyn Pace) -> bool {
        let Settings { max_tries, latency_limit_us, .. } = *self.shared.settings;
        let is_slow = || pace.now().saturating_sub(due) > Nanoseconds(latency_limit_us * 1000);
        (max_tries == 0 || tries < max_tries) && !(latency_limit_us > 0 && is_slow())
    }

    fn tell_of_try(&self, tries: u32, due: Nanoseconds, is_retried: bool, pace: &dyn Pace) {
        let settings = &self.shared.settings;
        if !settings.is_verbose {
            return;
        }
        let repeats = "repeats the transaction after the error";
        let what = if is_retried { repeats } else { "ends the failed transaction" };
        let Settings { max_tries, latency_limit_us: limit_us, .. } = **settings;
        let most = if max_tries > 0 { format!("/{max_tries}") } else { String::new() };
        let mut used = String::new();
        if limit_us > 0 {
            let us = pace.now().saturating_sub(due).0 as f64 / 1e3;
            let percent = 100.0 * us / limit_us as f64;
            used = format!(", {percent:.3}% of the maximum time of tries was used");
        }
        self.note(&format!("client {} {what} (try {tries}{most}{used})", self.id));
    }

    pub(super) fn report(&self, message: &str) {
        self.note(&format!("error: {message}"));
    }

    pub(super) fn note(&self, message: &str) {
        self.shared.host.say(&format!("pgbench: {message}"));
    }

    fn log(&self, script: usize, (outcome, retries): (LogOutcome, u32), lag: u64, at: Nanoseconds) {
        if self.shared.host.logs() {
            let (client, number) = (self.id, self.n_ended);
            let entry = LogEntry { client, number, script, outcome, lag_us: lag, retries, at };
            self.shared.host.ended(&entry);
        }
    }

    /// Ends the client. The last to end also ends a step that would last until its time is over.
    fn abort(&self, pace: &dyn Pace) {
        let settings = &self.shared.settings;
        let is_last = settings.statistics.aborted() == self.n_clients as u64;
        self.shared.host.aborted(self.id);
        if !is_last || settings.transactions.is_some() {
            pace.finished();
        }
    }

    pub(super) fn has_parameters(&self) -> bool {
        self.shared.settings.protocol != Protocol::Simple
    }

    pub(super) fn survives(&self, error: &StatementError) -> bool {
        let may = self.shared.settings.continues_on_error && !error.class.loses_connection();
        may || failure_of(error) != Failure::Other
    }
}

enum Flow {
    GoOn,
    End,
    Abort,
}

fn failure_of(error: &StatementError) -> Failure {
    match error.class {
        ErrorClass::Serialization => Failure::Serialization,
        ErrorClass::Deadlock => Failure::Deadlock,
        _ => Failure::Other,
    }
}
