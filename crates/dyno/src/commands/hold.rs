//! The process behind `dyno up`: it owns the servers until it is told to end.
//!
//! It leaves the terminal's session, reads what to start from its standard input, says on its standard
//! output once how that went, and then waits. Its keeper holds the owner files of the servers' folders:
//! if it is killed, the next Dyno can prove that they are left over.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Arc;

use anyhow::{Context, bail};
use dyno_database::{Place, Server, ServerSpec};
use dyno_host::{Hold, Keeper, Register, Registered, RegisteredMember};
use dyno_load::AbortFlag;
use dyno_units::{ByteCount, Clock, Nanoseconds, SettingValue};

use super::up::{Order, Said};
use crate::clock::SystemClock;
use crate::written::scalar;
use crate::{End, lab};

/// The hidden command that becomes the holder.
pub(crate) const COMMAND: &str = "hold";

/// Between two looks whether it is told to end, or a server is down.
const POLL: Nanoseconds = Nanoseconds::from_millis(100);

/// Starts what it is told to, and stays until it is told to end.
pub(crate) fn run() -> anyhow::Result<End> {
    // It is a child that leads no group, so this cannot fail; if it does, it stays in the session.
    let _ = rustix::process::setsid();
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("cannot read what to start")?;
    let order: Order = serde_json::from_str(&text).context("cannot read what to start")?;
    let abort = AbortFlag::new();
    lab::stop_on_signals(&abort)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let mut holder = match Holder::start(&order, &clock) {
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

/// A deployment that is up.
struct Holder {
    hold: Hold,
    server: Box<dyn Server>,
    registered: Registered,
}

impl Holder {
    fn start(order: &Order, clock: &Arc<dyn Clock>) -> anyhow::Result<Holder> {
        let hold = Register::open(&lab::register()?)?.hold(&order.name)?;
        let keeper = Arc::new(lab::keeper(&order.root)?.with_builds(lab::builds()?));
        let environment = lab::environment(keeper.root());
        let spec = ServerSpec {
            version: order.version.clone(),
            from: order.from.clone(),
            programs: order.programs.clone(),
            engine: order.engine.clone(),
            settings: settings(&order.settings, ByteCount(environment.memory_bytes))?,
            memory: order.memory.map(ByteCount),
            ..ServerSpec::new(&order.product)
        };
        let products = dyno_lab::products();
        let place = Place::under(&keeper);
        products.check_settings(&spec, &place)?;
        let server = products.start(&spec, &place, clock)?;
        let registered = Registered {
            name: order.name.clone(),
            since_unix_ms: clock.unix_millis(),
            root: keeper.root().to_owned(),
            members: vec![member(order, &*server)?],
            failure: None,
        };
        hold.publish(&registered)?;
        Ok(Holder { hold, server, registered })
    }

    /// Notes it when a server goes down. Its folder stays until it is told to end, for its log.
    fn watch(&mut self) {
        if self.registered.failure.is_none()
            && let Some(how) = self.server.down()
        {
            self.registered.failure = Some(how);
            // What cannot be written is seen by the process that is missing.
            let _ = self.hold.publish(&self.registered);
        }
    }

    /// Stops the server and removes all that was made for it.
    fn end(mut self) -> anyhow::Result<End> {
        let was_down = self.registered.failure.is_some();
        match self.server.stop() {
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

fn member(order: &Order, server: &dyn Server) -> anyhow::Result<RegisteredMember> {
    let facts = server.facts()?;
    let reach = server.reach().context("the server has no address")?;
    Ok(RegisteredMember {
        name: "server".to_owned(),
        role: "primary".to_owned(),
        product: order.product.clone(),
        version: facts.version,
        url: reach.endpoint.to_string(),
        pid: server.processes().first().copied().unwrap_or_default(),
        data: server.data_files().map(|data| data.root).unwrap_or_default(),
        log: reach.log,
        programs: facts.build.map(|build| build.programs).unwrap_or_default(),
    })
}

/// Settings of the form NAME=VALUE, shares of memory resolved.
pub(super) fn settings(
    pairs: &[String],
    memory: ByteCount,
) -> anyhow::Result<BTreeMap<String, SettingValue>> {
    let setting = |pair: &String| {
        let Some((name, value)) = pair.split_once('=') else {
            bail!("--setting: write NAME=VALUE, not `{pair}`");
        };
        match dyno_study::parse_setting(&scalar(value).to_string()) {
            Ok(value) => Ok((name.to_owned(), value.resolve(memory))),
            Err(why) => bail!("--setting {name}: {why}"),
        }
    };
    pairs.iter().map(setting).collect()
}

/// Ends what dead holders and runs have left under a root. Returns what it ended, in words.
pub(super) fn clean_up(root: &std::path::Path, clock: &dyn Clock) -> anyhow::Result<Vec<String>> {
    Ok(Keeper::new(root)?.end_leftovers(clock))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_in_a_study() {
        let read = |pair: &str| settings(&[pair.to_owned()], ByteCount(1 << 30));
        let found = read("shared_buffers=25%").unwrap();
        assert_eq!(found["shared_buffers"], SettingValue::Bytes(ByteCount(1 << 28)));
        assert_eq!(read("a=1").unwrap()["a"], SettingValue::Integer(1));
        assert!(read("a").unwrap_err().to_string().contains("NAME=VALUE"));
        assert!(read("a=200%").is_err());
    }
}
