//! Makes and fills the tables, unless they came with the server.
//!
//! A private server is measured only after a start on complete data: the populated server is
//! stopped, its data are kept, and a server starts on a copy. So trials that populate and trials
//! that reuse measure the same.

use dyno_database::{Access, ServerSpec};
use dyno_host::{CopyError, Place};
use dyno_record::{Entry, EventKind};
use dyno_workload::{Connector, Dialect, Tried};

use super::audit::ask;
use super::deploy::Wanted;
use crate::datasets::{DataSets, Description, Kept, Staging};
use crate::prepare::Population;
use crate::trial::{foreign, log_bytes};
use crate::{Context, Lab, Result, Source, Trial, TrialError, fail};

pub(super) fn fill(trial: &mut Trial<'_, '_>) -> Result {
    let mut members = trial.deployment.members.iter();
    if let Some(member) = members.position(|member| member.serves(Entry::Admin))
        && !trial.results.summary.data.reused
    {
        trial.populate()?;
        trial.keep_and_restart(member)?;
        trial.restart_there()?;
    }
    if let Some(server) = trial.deployment.server() {
        trial.results.summary.data.bytes = server.data_bytes();
        trial.results.summary.data.log_bytes = log_bytes(server);
    }
    trial.check_rows()?;
    trial.begin()?;
    trial.try_kinds()
}

impl Trial<'_, '_> {
    fn check_rows(&self) -> Result {
        let tables = self.deployment.tables();
        if let Some(server) = tables {
            // Again, because a copy of data that is kept was populated by another workload.
            self.workload.check(server.dialect()).map_err(TrialError::new)?;
        }
        if self.workload.outline().needs_rows && !tables.is_some_and(|server| server.stores_data())
        {
            return fail(
                "the workload needs the rows that it reads, and this server stores none; use a \
                 database, or the simulated one with a `store`",
            );
        }
        Ok(())
    }

    /// Asks what clients have to know of the tables before they begin.
    fn begin(&self) -> Result {
        let tables = self.deployment.tables().filter(|server| server.stores_data());
        let Some(server) = tables else { return Ok(()) };
        let answers = ask(&server.connector(), &self.workload.first_queries());
        answers.and_then(|answers| self.workload.clients.begin(&answers)).map_err(TrialError::new)
    }

    /// Runs each kind of transaction of a declared workload once and rolls it back: an impossible one ends the
    /// trial before its load.
    fn try_kinds(&mut self) -> Result {
        // A study that begins with empty caches keeps them so.
        if self.deployment.is_simulated() || self.order.plan.drop_caches {
            return Ok(());
        }
        let tables = self.deployment.tables().filter(|server| server.stores_data());
        let Some(server) = tables else { return Ok(()) };
        let dialect = server.dialect();
        if self.workload.declared_at(dialect).is_none() {
            return Ok(());
        }
        let statements = self.workload.statements(dialect);
        let all: Vec<&str> = statements.iter().map(|statement| &*statement.sql).collect();
        // Tables of engines without transactions, and what else a rollback leaves.
        let source = server.cost_source(Access::RolledBack, &self.lab.clock);
        if let Err(why) = source.and_then(|mut source| source.check(&all.join(" "))) {
            return self.note(foreign(&format!("no transaction was tried before the load: {why}")));
        }
        let connection = server.connector()()?;
        let tried = self.workload.clients.try_kinds(connection)?;
        let mut refused = Vec::new();
        let kinds: Vec<_> = self.workload.kinds().iter().cloned().zip(tried).collect();
        for (kind, tried) in kinds {
            match tried {
                Tried::Done => {}
                Tried::Not(why) => {
                    let message =
                        format!("transaction `{kind}` was not tried before the load: {why}");
                    self.note(foreign(&message))?;
                }
                Tried::Refused(error) => refused.push(format!("transaction `{kind}`: {error}")),
            }
        }
        match refused.is_empty() {
            true => Ok(()),
            false => fail(format!(
                "the server refuses what the study declares; tried before the load and rolled back: {}",
                refused.join("; ")
            )),
        }
    }

    fn populate(&mut self) -> Result {
        let Some(server) = self.deployment.tables() else { return Ok(()) };
        let of_server = (server.connector(), server.dialect(), server.blocks_worker());
        self.populate_on(of_server)
    }

    fn populate_on(
        &mut self,
        (connector, dialect, blocks_worker): (Connector, Dialect, bool),
    ) -> Result {
        let (lab, workload) = (self.lab, self.workload.clone());
        workload.check(dialect).map_err(TrialError::new)?;
        let began = lab.clock.now();
        let population = Population {
            connector,
            dialect,
            workload: &*workload,
            loaders: if blocks_worker { 1 } else { lab.environment.cpus.clamp(1, 16) as usize },
            abort: &lab.abort,
        };
        let rows = population.populate(&mut |rows, rows_total| {
            self.event(EventKind::PopulateProgressed { rows, rows_total })
        })?;
        self.results.summary.data.rows = rows;
        // Before anything else: half a data set must not be kept.
        self.check_abort()?;
        let took_s = lab.clock.now().saturating_sub(began).as_secs_f64();
        self.results.summary.data.populate_s = took_s;
        self.event(EventKind::Populated { rows, took_s })
    }

    /// Fills independent servers on further hosts like the first one, and restarts all on their data in their final
    /// parts: as on this machine, measurements begin with nothing in their memory. Members that join get copies.
    fn restart_there(&mut self) -> Result {
        let Some(hosts) = self.deployment.hosts.clone() else { return Ok(()) };
        let there = self.deployment.beginning_there();
        let server = |member: usize| self.deployment.members[member].server();
        let further: Vec<_> = (there.iter().skip(1).filter_map(|(member, ..)| server(*member)))
            .map(|server| (server.connector(), server.dialect(), server.blocks_worker()))
            .collect();
        further.into_iter().try_for_each(|server| self.populate_on(server))?;
        for (member, ..) in &there {
            // Its connections end; the server goes on.
            self.deployment.members[*member].instance = None;
        }
        let filled: Vec<usize> = there.iter().map(|(_, idx, _)| *idx).collect();
        hosts.halt(&filled)?;
        let joining = self.deployment.joining_there();
        if let Some((_, from, spec)) = there.first()
            && !joining.is_empty()
            && self.joins_on_copies(spec)?
        {
            hosts.copy(*from, &joining)?;
        }
        self.start_there(ServerSpec::clone)
    }

    fn keep_and_restart(&mut self, member: usize) -> Result {
        let lab = self.lab;
        let Source::Start(spec) = self.deployment.members[member].source.clone() else {
            return Ok(());
        };
        if self.deployment.members[member].host.is_some() {
            return Ok(());
        }
        if !self.deployment.tables().is_some_and(|server| server.can_keep_data()) {
            return Ok(());
        }
        let place = self.place(member)?;
        let wanted = self.wanted(&spec, &place);
        let staging = match wanted {
            Wanted::Nothing => Staging::beside(&lab.keeper, &place, "dataset")?,
            _ => Staging::make(&lab.keeper, "dataset")?,
        };
        let Some(instance) = self.deployment.members[member].instance.take() else { return Ok(()) };
        instance.stop_and_keep_data(&staging.data())?;
        match self.keep(&staging, &wanted)? {
            Some(kept) => {
                let copy = copy(lab, &kept, &place)?;
                self.results.summary.data.key = Some(kept.key());
                drop(kept);
                self.start_on(member, &copy, &spec)
            }
            None => self.start_on(member, &staging, &spec),
        }
    }

    /// None if data are not wanted, or cannot be kept, which is noted.
    fn keep(&mut self, staging: &Staging, wanted: &Wanted) -> Result<Option<Kept>> {
        let result = match wanted {
            Wanted::Nothing => return Ok(None),
            Wanted::Refused(why) => Err(why.clone()),
            Wanted::Data(contents) => {
                let bytes = dyno_host::folder_bytes(&staging.data());
                let bytes = bytes.context("the size of the data cannot be read")?;
                let mut description = Description::new(contents, self.workload.name());
                description.rows = self.results.summary.data.rows;
                description.bytes = bytes;
                description.populate_s = self.results.summary.data.populate_s;
                description.created_unix_ms = self.lab.clock.unix_millis();
                DataSets::of(&self.lab.keeper)
                    .keep(staging, &description, &self.lab.data_sets)
                    .map_err(|error| format!("{error:#}"))
            }
        };
        let (kept, kind) = match result {
            Ok(kept) => {
                let bytes = kept.description.bytes;
                let key = kept.key();
                (Some(kept), EventKind::DataSetKept { key, bytes })
            }
            Err(why) => {
                (None, EventKind::Noted { message: format!("the data set is not kept: {why}") })
            }
        };
        self.event(kind)?;
        Ok(kept)
    }
}

pub(super) fn copy(lab: &Lab, kept: &Kept, place: &Place) -> Result<Staging> {
    let staging = Staging::make(&lab.keeper, "data")?;
    let now = lab.clock.unix_millis();
    match kept.copy(&staging, place.copies(), now, &|| lab.abort.is_raised()) {
        Ok(()) => Ok(staging),
        Err(CopyError::Stopped) => Err(TrialError::Abandoned),
        Err(CopyError::Failed(why)) => fail(why),
    }
}
