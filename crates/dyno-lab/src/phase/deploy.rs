//! Brings up the members of the trial.

use std::collections::BTreeMap;

use dyno_database::{Part, Place, Server, ServerSpec};
use dyno_record::{EventKind, SCHEDULING_GROUP};
use dyno_study::DataOrigin;
use dyno_units::Nanoseconds;
use dyno_workload::Workload;

use super::fill::copy;
use crate::datasets::{Contents, DataSets, Description, Kept, Staging};
use crate::deployment::attach;
use crate::site::Site;
use crate::{Context, Instance, Result, Source, There, Trial, TrialError};

/// Brings up all members: a server that Dyno starts on a copy of a kept data set, where one is there.
pub(super) fn deploy(trial: &mut Trial<'_, '_>) -> Result {
    // Those on hosts are filled without a log for others, as here.
    trial.start_there(|spec| ServerSpec { part: Part::Alone, ..spec.clone() })?;
    (0..trial.deployment.members.len()).try_for_each(|member| trial.bring_up(member))
}

/// The data set that a trial would like to reuse, and to keep for later ones.
pub(super) enum Wanted {
    /// None: the study says so. Data are populated where the server uses them.
    Nothing,
    /// None, because these data cannot be kept.
    Refused(String),
    Data(Box<Contents>),
}

impl Trial<'_, '_> {
    fn bring_up(&mut self, member: usize) -> Result {
        let began = self.lab.clock.now();
        let instance = match self.deployment.members[member].source.clone() {
            // They join the primary once it has its rows.
            Source::Follow(..)
            | Source::Join(_)
            | Source::Shard(..)
            | Source::Front(_)
            | Source::Route(_) => return Ok(()),
            // They have come up together.
            Source::Start(_) if self.deployment.members[member].host.is_some() => return Ok(()),
            Source::Simulate(server) => Instance::Simulated(server),
            Source::Attach { endpoint, options, version } => {
                let version = version.as_deref();
                Instance::Server(attach(&endpoint, options, (self.variant, version))?)
            }
            Source::Other(spec) => {
                let lab = self.lab;
                Instance::Server(lab.products.start(&spec, &self.place(member)?, &lab.clock)?)
            }
            Source::Start(spec) => {
                let place = self.place(member)?;
                if let Wanted::Data(contents) = self.wanted(&spec, &place)
                    && let Some(kept) = DataSets::of(&self.lab.keeper).find(&contents)
                {
                    return self.start_on_kept(member, kept, &spec);
                }
                let lab = self.lab;
                // It is filled without a log for replicas, and then started again on its rows.
                let alone = ServerSpec { part: Part::Alone, ..spec };
                Instance::Server(lab.products.start(&alone, &place, &lab.clock)?)
            }
        };
        self.ready(member, instance, began)
    }

    /// Starts the servers on hosts that begin for themselves, all at once and as `of` says.
    pub(super) fn start_there(&mut self, of: impl Fn(&ServerSpec) -> ServerSpec) -> Result {
        let Some(hosts) = self.deployment.hosts.clone() else { return Ok(()) };
        let members = self.deployment.beginning_there();
        let specs: Vec<(usize, ServerSpec)> =
            members.iter().map(|(_, idx, spec)| (*idx, of(spec))).collect();
        let specs: Vec<(usize, &ServerSpec)> =
            specs.iter().map(|(idx, spec)| (*idx, spec)).collect();
        let began = self.lab.clock.now();
        let servers = hosts.start_servers(self.lab, &self.variant.database, &specs)?;
        for ((member, ..), server) in members.into_iter().zip(servers) {
            self.ready(member, Instance::Server(server), began)?;
        }
        Ok(())
    }

    pub(super) fn site(&self, member: usize) -> Result<Site> {
        Ok(match self.deployment.there(&self.deployment.members[member]) {
            Some(there) => Site::There(there),
            None => Site::Here(self.place(member)?),
        })
    }

    pub(super) fn place(&self, member: usize) -> Result<Place> {
        let member = &self.deployment.members[member];
        member.place.clone().context(format_args!(
            "no folder or volume was provided for the data of {}",
            member.facts.name
        ))
    }

    pub(super) fn ready(&mut self, member: usize, instance: Instance, from: Nanoseconds) -> Result {
        let pid = instance.server().and_then(|server| server.processes().first().copied());
        // It is in the deployment before it is asked anything, so that it is stopped in every case.
        let there = self.deployment.there(&self.deployment.members[member]);
        let ready = &mut self.deployment.members[member];
        let instance = ready.instance.insert(instance);
        let mut facts = instance.facts()?;
        let watched = instance.server().map(Server::watched_processes).unwrap_or_default();
        if let Some(There { hosts, idx }) = &there {
            let endpoint = instance.server().and_then(Server::endpoint);
            // Measured once: it is the same after a restart.
            ready.facts.host.get_or_insert_with(|| hosts.facts(*idx, endpoint));
        }
        let pid_there = there.and_then(|there| there.hosts.pid(there.idx));
        facts.machine = self.set_of_machine(pid);
        let group = dyno_host::scheduling_group(&watched);
        facts.machine.extend(group.map(|group| (SCHEDULING_GROUP.to_owned(), group)));
        let ready = EventKind::ServerReady {
            server: format!("{} {}", facts.product, facts.version),
            took_s: self.lab.clock.now().saturating_sub(from).as_secs_f64(),
            pid: pid.or(pid_there),
        };
        self.deployment.members[member].facts.server = facts;
        self.event(ready)
    }

    /// What is in force of what variants set of the machine, and of what this server's groups allow it.
    fn set_of_machine(&self, pid: Option<i32>) -> BTreeMap<String, String> {
        let variants = self.order.plan.variants.iter();
        let names = variants.flat_map(|variant| variant.database.kernel.keys().map(String::as_str));
        let mut found = self.lab.keeper.kernel().values(names);
        let limits = pid.map(dyno_host::server_limits_in_force).unwrap_or_default().into_iter();
        found.extend(limits.map(|(name, value)| (format!("control_group.{name}"), value)));
        found
    }

    pub(super) fn wanted(&self, spec: &ServerSpec, place: &Place) -> Wanted {
        if !self.order.design.reuse || self.variant.database.data == DataOrigin::Populated {
            return Wanted::Nothing;
        }
        let products = &self.lab.products;
        let shape = match products.data_shape(spec, place) {
            Ok(shape) => shape,
            Err(error) => return Wanted::Refused(error.message),
        };
        let dialect = products.spec(&spec.product).and_then(|product| product.dialect);
        let Some(dialect) = dialect else {
            return Wanted::Refused(format!("{} speaks no SQL", spec.product));
        };
        let (workload, seed): (&dyn Workload, _) = (&*self.workload, self.order.plan.seed.0);
        Wanted::Data(Box::new(Contents::new(shape, place.kind(), (dialect, workload), seed)))
    }

    fn start_on_kept(&mut self, member: usize, kept: Kept, spec: &ServerSpec) -> Result {
        let lab = self.lab;
        let began = lab.clock.now();
        let copy = copy(lab, &kept, &self.place(member)?)?;
        let Description { rows, populate_s, created_unix_ms, .. } = kept.description;
        let key = kept.key();
        drop(kept);
        let data = &mut self.results.summary.data;
        (data.rows, data.populate_s, data.reused) = (rows, populate_s, true);
        data.key = Some(key.clone());
        let now = lab.clock.now();
        self.event(EventKind::DataSetReused {
            key,
            rows,
            populate_s,
            populated_unix_ms: created_unix_ms,
            took_s: now.saturating_sub(began).as_secs_f64(),
        })?;
        self.start_on(member, &copy, spec)
    }

    /// Starts a server on data that are complete.
    pub(super) fn start_on(&mut self, member: usize, data: &Staging, spec: &ServerSpec) -> Result {
        let lab = self.lab;
        let began = lab.clock.now();
        let place = self.place(member)?;
        self.copy_for_replicas(data, spec)?;
        let started = lab.products.start_on(&data.data(), spec, &place, &lab.clock);
        let server = started.map_err(|error| match &self.results.summary.data.key {
            Some(key) => TrialError::from(error).with(&format!(
                " (it was started on a copy of the data set {key}; if that is damaged, \
                 `dyno datasets --remove {key}` removes it)"
            )),
            None => error.into(),
        })?;
        self.ready(member, Instance::Server(server), began)?;
        self.check_abort()
    }
}
