//! Brings up the variant's database with a complete data set, populated now or earlier.
//!
//! A private server is measured only after it was started on data that were complete before: the
//! server that was populated is stopped, its data are kept, and a server is started on a copy of
//! them. So a trial that populates and one that reuses measure the same thing.

use dyno_database::{Server, ServerSpec};
use dyno_host::CopyError;
use dyno_record::EventKind;
use dyno_units::Nanoseconds;
use dyno_workload::Workload;

use crate::datasets::{Contents, DataSets, Description, Holder, Kept};
use crate::deploy::{Site, Target, facts, target};
use crate::prepare::Population;
use crate::run::Lab;
use crate::simulated::{Simulated, SimulatedSite};
use crate::trial::{Progress, Stage, TrialError, explain};

/// What a trial would like to reuse.
enum Wanted {
    /// Nothing: the study says so.
    Nothing,
    /// Nothing, because these data cannot be kept.
    Refused(String),
    /// Data of these contents.
    Data(Box<Contents>),
}

impl Stage<'_, '_> {
    /// Brings up the variant's database, its tables filled.
    pub(crate) fn deploy(
        &mut self,
        workload: &dyn Workload,
        progress: &mut Progress,
    ) -> Result<Site, TrialError> {
        let began = self.lab.clock.now();
        match target(self.lab, self.order.design, self.variant)? {
            Target::Simulated(Simulated { server, store: None }) => {
                let mut site = Site::Simulated(SimulatedSite { server, store: None });
                self.tell_ready(&mut site, began, progress)?;
                Ok(site)
            }
            Target::Simulated(Simulated { server, store: Some(spec) }) => {
                match self.private(&spec, workload, progress)? {
                    Site::Real(store) => {
                        // What its rows take on a disk is none of what is simulated.
                        progress.data.bytes = None;
                        let site = SimulatedSite { server, store: Some(store) };
                        self.guarded(Site::Simulated(site), |stage, site| {
                            stage.tell_ready(site, stage.lab.clock.now(), progress)
                        })
                    }
                    site => Ok(site),
                }
            }
            Target::Attached(server) => self.populated(server, began, workload, progress),
            Target::Private(spec) => self.private(&spec, workload, progress),
        }
    }

    fn private(
        &mut self,
        spec: &ServerSpec,
        workload: &dyn Workload,
        progress: &mut Progress,
    ) -> Result<Site, TrialError> {
        let lab = self.lab;
        let store = DataSets::of(&lab.keeper);
        let wanted = self.wanted(spec, workload);
        if let Wanted::Data(contents) = &wanted
            && let Some(kept) = store.find(contents)
        {
            return self.reused(kept, spec, progress);
        }
        let began = lab.clock.now();
        let server = lab.products.start(spec, &lab.place(), &lab.clock)?;
        let server = match self.populated(server, began, workload, progress)? {
            Site::Real(server) if server.can_keep_data() => server,
            site => return Ok(site),
        };
        let holder = Holder::make(&lab.keeper, "dataset").map_err(told)?;
        server.stop_and_keep_data(&holder.data())?;
        match self.keep(&store, &holder, &wanted, (workload.name(), progress))? {
            Some(kept) => {
                let copy = copy(lab, &kept)?;
                progress.data.key = Some(kept.key());
                drop(kept);
                self.started_on(&copy, spec, lab.clock.now(), progress)
            }
            None => self.started_on(&holder, spec, lab.clock.now(), progress),
        }
    }

    fn wanted(&self, spec: &ServerSpec, workload: &dyn Workload) -> Wanted {
        if !self.order.design.reuse {
            return Wanted::Nothing;
        }
        let products = &self.lab.products;
        let dialect = products.spec(&spec.product).and_then(|product| product.dialect);
        match products.data_shape(spec, &self.lab.place()) {
            Ok(shape) => {
                let Some(dialect) = dialect else {
                    return Wanted::Refused(format!("{} speaks no SQL", spec.product));
                };
                let seed = self.order.plan.seed.0;
                Wanted::Data(Box::new(Contents::new(shape, dialect, workload, seed)))
            }
            Err(error) => Wanted::Refused(error.message),
        }
    }

    /// Starts a server on a copy of a data set that was kept earlier.
    fn reused(
        &mut self,
        kept: Kept,
        spec: &ServerSpec,
        progress: &mut Progress,
    ) -> Result<Site, TrialError> {
        let lab = self.lab;
        let began = lab.clock.now();
        let copy = copy(lab, &kept)?;
        let Description { rows, populate_s, created_unix_ms, .. } = kept.description;
        let key = kept.key();
        drop(kept);
        progress.data.rows = rows;
        progress.data.populate_s = populate_s;
        progress.data.reused = true;
        progress.data.key = Some(key.clone());
        let now = lab.clock.now();
        let kind = EventKind::DataSetReused {
            key,
            rows,
            populate_s,
            populated_unix_ms: created_unix_ms,
            took_s: now.saturating_sub(began).as_secs_f64(),
        };
        self.telling.of_trial(self.writer, kind)?;
        self.started_on(&copy, spec, now, progress)
    }

    /// Keeps the data in the holder; none where that is not wanted or not possible, which is told.
    fn keep(
        &mut self,
        store: &DataSets<'_>,
        holder: &Holder<'_>,
        wanted: &Wanted,
        (workload, progress): (&str, &Progress),
    ) -> Result<Option<Kept>, TrialError> {
        let result = match wanted {
            Wanted::Nothing => return Ok(None),
            Wanted::Refused(why) => Err(why.clone()),
            Wanted::Data(contents) => {
                let bytes = dyno_host::folder_bytes(&holder.data())
                    .map_err(|error| TrialError::new(format!("cannot see the data: {error}")))?;
                let mut description = Description::new(contents, workload);
                description.rows = progress.data.rows;
                description.bytes = bytes;
                description.populate_s = progress.data.populate_s;
                description.created_unix_ms = self.lab.clock.unix_millis();
                store
                    .keep(holder, &description, &self.lab.data_sets)
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
        self.telling.of_trial(self.writer, kind)?;
        Ok(kept)
    }

    fn started_on(
        &mut self,
        holder: &Holder<'_>,
        spec: &ServerSpec,
        began: Nanoseconds,
        progress: &mut Progress,
    ) -> Result<Site, TrialError> {
        let lab = self.lab;
        let server = lab
            .products
            .start_on(&holder.data(), spec, &lab.place(), &lab.clock)
            .map_err(TrialError::from)
            .map_err(|error| of_copy(error, progress.data.key.as_deref()))?;
        self.guarded(Site::Real(server), |stage, site| {
            if stage.lab.abort.is_raised() {
                return Err(TrialError::Abandoned);
            }
            stage.tell_ready(site, began, progress)?;
            if let Site::Real(server) = site {
                progress.data.bytes = server.data_bytes();
                progress.data.log_bytes = log_bytes(server.as_ref());
            }
            Ok(())
        })
    }

    /// A server that has just come up, its tables filled.
    fn populated(
        &mut self,
        server: Box<dyn Server>,
        began: Nanoseconds,
        workload: &dyn Workload,
        progress: &mut Progress,
    ) -> Result<Site, TrialError> {
        self.guarded(Site::Real(server), |stage, site| {
            stage.tell_ready(site, began, progress)?;
            match site {
                Site::Real(server) => stage.populate(server.as_ref(), workload, progress),
                Site::Simulated(_) => Ok(()),
            }
        })
    }

    /// Does something with a site. If that fails, asks the server what it says, and stops it.
    fn guarded(
        &mut self,
        mut site: Site,
        job: impl FnOnce(&mut Self, &mut Site) -> Result<(), TrialError>,
    ) -> Result<Site, TrialError> {
        let Err(error) = job(self, &mut site) else { return Ok(site) };
        let error = explain(error, &mut site);
        // The first error is the one to tell; what stays is found as a leftover.
        let _ = site.stop();
        Err(error)
    }

    fn tell_ready(
        &mut self,
        site: &mut Site,
        began: Nanoseconds,
        progress: &mut Progress,
    ) -> Result<(), TrialError> {
        progress.server = facts(site)?;
        let ready = EventKind::ServerReady {
            server: format!("{} {}", progress.server.product, progress.server.version),
            took_s: self.lab.clock.now().saturating_sub(began).as_secs_f64(),
            pid: match site {
                Site::Real(server) => server.processes().first().copied(),
                Site::Simulated(_) => None,
            },
        };
        Ok(self.telling.of_trial(self.writer, ready)?)
    }

    fn populate(
        &mut self,
        server: &dyn Server,
        workload: &dyn Workload,
        progress: &mut Progress,
    ) -> Result<(), TrialError> {
        workload.check(server.dialect()).map_err(TrialError::new)?;
        let began = self.lab.clock.now();
        let population = Population {
            connector: server.connector(),
            dialect: server.dialect(),
            workload,
            loaders: if server.blocks_worker() {
                1
            } else {
                self.lab.environment.cpus.clamp(1, 16) as usize
            },
            abort: &self.lab.abort,
        };
        let (telling, writer) = (&mut *self.telling, &mut *self.writer);
        progress.data.rows = population.populate(&mut |rows, rows_total| {
            let kind = EventKind::PopulateProgressed { rows, rows_total };
            Ok(telling.of_trial(writer, kind)?)
        })?;
        // Before anything else: half a data set must not be kept.
        if self.lab.abort.is_raised() {
            return Err(TrialError::Abandoned);
        }
        let took_s = self.lab.clock.now().saturating_sub(began).as_secs_f64();
        progress.data.populate_s = took_s;
        progress.data.bytes = server.data_bytes();
        progress.data.log_bytes = log_bytes(server);
        let kind = EventKind::Populated { rows: progress.data.rows, took_s };
        Ok(self.telling.of_trial(self.writer, kind)?)
    }
}

/// A copy of a data set, on its way to a server.
fn copy<'a>(lab: &'a Lab, kept: &Kept) -> Result<Holder<'a>, TrialError> {
    let holder = Holder::make(&lab.keeper, "data").map_err(told)?;
    match kept.copy(&holder, lab.clock.unix_millis(), &|| lab.abort.is_raised()) {
        Ok(()) => Ok(holder),
        Err(CopyError::Stopped) => Err(TrialError::Abandoned),
        Err(CopyError::Failed(why)) => {
            Err(TrialError::new(format!("the data set {} could not be copied: {why}", kept.key())))
        }
    }
}

/// Bytes of logs among the server's data, where its files tell.
pub(crate) fn log_bytes(server: &dyn Server) -> Option<u64> {
    server.data_files()?.log_bytes()
}

fn told(error: anyhow::Error) -> TrialError {
    TrialError::new(format!("{error:#}"))
}

/// Says of a server that did not start on what data it was to do so.
fn of_copy(error: TrialError, key: Option<&str>) -> TrialError {
    match (error, key) {
        (TrialError::Failed { message, log }, Some(key)) => TrialError::Failed {
            message: format!(
                "{message} (it was started on a copy of the data set {key}; if that is damaged, \
                 `dyno datasets --remove {key}` removes it)"
            ),
            log,
        },
        (error, _) => error,
    }
}
