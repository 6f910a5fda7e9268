//! The process behind `dyno up`: it owns the servers until it is told to end.
//!
//! It leaves the terminal's session, reads what to start from its standard input, says on its standard
//! output once how that went, and then waits. Its keeper holds the owner files of the servers' folders:
//! if it is killed, the next Dyno can prove that they are left over.

use std::io::{Read, Write};
use std::sync::Arc;

use anyhow::Context;
use dyno_database::Reach;
use dyno_host::{Hold, Register, Registered, RegisteredMember};
use dyno_lab::{Kept, KeptMember};
use dyno_load::AbortFlag;
use dyno_study::{Behind, Cluster, Database, Design, Study, Variant};
use dyno_units::{ByteCount, Clock, Nanoseconds};

use super::up::{Order, Said};
use crate::clock::SystemClock;
use crate::written::{Written, settings};
use crate::{End, lab, signals};

/// How many nodes a cluster has if nobody says.
const NODES: u32 = 3;

/// How many clients a router in front of a server of `dyno up` accepts.
const CLIENTS_MOST: usize = 1000;

const POLL: Nanoseconds = Nanoseconds::from_millis(100);

pub(crate) fn run() -> anyhow::Result<End> {
    // It is a child that leads no group, so this cannot fail; if it does, it stays in the session.
    let _ = rustix::process::setsid();
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("cannot read what to start")?;
    let order: Order = serde_json::from_str(&text).context("cannot read what to start")?;
    let abort = AbortFlag::new();
    signals::raise(&abort, "stopping …")?;
    let clock = SystemClock::start();
    let mut holder = match Holder::start(&order) {
        Ok(holder) => holder,
        Err(error) => {
            say(&Said::Failed(format!("{error:#}")))?;
            return Ok(End::Bad);
        }
    };
    // If nobody listens any more, nobody knows that it is there.
    if say(&Said::Up(holder.registered.clone())).is_ok() {
        while !abort.is_raised() {
            holder.watch();
            clock.sleep_until(clock.now() + POLL);
        }
    }
    holder.end()
}

/// Says something to the command that started it. Nothing is printed later.
fn say(said: &Said) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(&serde_json::to_vec(said)?)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

struct Holder {
    hold: Hold,
    kept: Kept,
    registered: Registered,
}

impl Holder {
    fn start(order: &Order) -> anyhow::Result<Holder> {
        let register = Register::open(&lab::register()?)?;
        let hold = register.hold(&order.name)?;
        let lab = lab::make_with(lab::keeper(&order.root)?.with_builds(lab::builds()?));
        let mut registered = Registered {
            name: order.name.clone(),
            since_unix_ms: lab.clock.unix_millis(),
            root: lab.keeper.root().to_owned(),
            members: Vec::new(),
            failure: None,
        };
        // Should it be killed while servers start, `down` finds them there.
        hold.publish(&registered)?;
        let memory = ByteCount(lab.environment.usable_memory_bytes());
        let (design, variant) = deployment(order, memory)?;
        let kept = Kept::start(&lab, (&design, &variant), CLIENTS_MOST)?;
        let members = kept.members().map(|one| member(&register, &order.name, &one));
        registered.members = members.collect::<anyhow::Result<_>>()?;
        if order.options.shards.is_some() {
            // The router is the first of the members, because it is what a client connects to.
            registered.members.rotate_right(1);
        }
        hold.publish(&registered)?;
        Ok(Holder { hold, kept, registered })
    }

    /// Notes it when a server goes down. Its folder stays until it is told to end, for its log.
    fn watch(&mut self) {
        if self.registered.failure.is_none()
            && let Some(how) = self.kept.down()
        {
            self.registered.failure = Some(how);
            // What cannot be written is seen by the process that is missing.
            let _ = self.hold.publish(&self.registered);
        }
    }

    fn end(mut self) -> anyhow::Result<End> {
        let was_down = self.registered.failure.is_some();
        match self.kept.stop() {
            Err(error) if !was_down => {
                self.registered.failure = Some(error.to_string());
                self.hold.publish(&self.registered)?;
                self.hold.leave();
                Ok(End::Bad)
            }
            _ => Ok(End::Good),
        }
    }
}

/// The deployment as a study has it: of a variant that only observes.
fn deployment(order: &Order, memory: ByteCount) -> anyhow::Result<(Design, Variant)> {
    let mut written = Written::new(&order.name);
    written.table(&["database", "up"]);
    written.fixed("product", order.product.as_str());
    written.table(&["workload", dyno_workload::none::NAME]);
    written.table(&["design"]);
    written.fixed("repetitions", 1);
    let Study { design, variants, .. } = written.read()?;
    let variant = variants.into_iter().next().context("there is nothing to start")?;
    let options = &order.options;
    let cluster = |kind: &String| Cluster {
        kind: kind.clone(),
        nodes: options.nodes.unwrap_or(NODES),
        load_on_all: false,
    };
    let behind = |product: &String| Behind {
        product: product.clone(),
        options: order.behind_options.clone(),
    };
    let database = Database {
        version: order.version.clone(),
        from: options.from.clone(),
        programs: options.programs.as_ref().map(|folder| folder.display().to_string()),
        image: options.image.clone(),
        engine: options.engine.clone(),
        settings: settings("--setting", &options.setting, memory)?,
        memory: options.memory,
        replicas: options.replicas,
        replication: options.replication.clone(),
        cluster: options.cluster.as_ref().map(cluster),
        shards: options.shards.unwrap_or_default(),
        router_settings: settings("--router-setting", &options.router_setting, memory)?,
        behind: options.behind.as_ref().map(behind),
        ..Database::clone(&variant.database)
    };
    Ok((design, Variant { database: Arc::new(database), ..variant }))
}

/// What is known of a server that is up. Its password, if it has one, is in a file of its own.
fn member(
    register: &Register,
    deployment: &str,
    one: &KeptMember<'_>,
) -> anyhow::Result<RegisteredMember> {
    let KeptMember { name, role, product, server } = *one;
    let facts = server.facts()?;
    let Reach { endpoint, log } = server.reach().context("the server has no address")?;
    let url = match &endpoint.password {
        None => endpoint.to_string(),
        Some(password) => {
            let file = format!("{name}.password");
            let text = format!("{}\n", password.reveal());
            let file = register.keep_secret(deployment, &file, &text)?;
            endpoint.url_with_password_file(&file)
        }
    };
    Ok(RegisteredMember {
        name: name.to_owned(),
        role: role.to_owned(),
        product: product.to_owned(),
        version: facts.version,
        url,
        client_port: server.client_port(),
        pid: server.processes().first().copied().unwrap_or_default(),
        data: server.data_files().map(|data| data.root).unwrap_or_default(),
        log,
        programs: facts.build.map(|build| build.programs).unwrap_or_default(),
    })
}
