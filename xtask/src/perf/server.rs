//! A private server for the measurement, started as Dyno starts its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use dyno_database::{Place, Products, Server, ServerSpec};
use dyno_host::Keeper;
use dyno_units::{ByteCount, Clock, Nanoseconds, SettingValue};

struct RealClock(Instant);

impl Clock for RealClock {
    fn now(&self) -> Nanoseconds {
        Nanoseconds::from(self.0.elapsed())
    }

    fn unix_millis(&self) -> u64 {
        self.now().0 / 1_000_000
    }

    fn sleep_until(&self, until: Nanoseconds) {
        std::thread::sleep(until.saturating_sub(self.now()).to_duration());
    }
}

/// Which scheduling group of the kernel the server is in. With `kernel.sched_autogroup_enabled`, each session is a group
/// that shares the CPUs with other groups; cgroups of services are such groups as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Session {
    /// A group of its own, as a service has, and a private server of a Dyno that runs as root.
    Own,
    /// That of the load generators, as a server has that is started in the same shell.
    Generators,
}

impl Session {
    pub(crate) const BOTH: [Session; 2] = [Session::Own, Session::Generators];

    /// As the names of rows end.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Session::Own => "server's own session",
            Session::Generators => "generator's session",
        }
    }
}

/// A server that runs until it is dropped.
pub(crate) struct PrivateServer {
    server: Option<Box<dyn Server>>,
    pub(crate) socket: PathBuf,
}

impl PrivateServer {
    /// Starts a server whose memory holds all the data.
    #[expect(clippy::disallowed_methods, reason = "real servers live in real time")]
    pub(crate) fn start(
        product: &str,
        memory_setting: &str,
        session: Session,
    ) -> anyhow::Result<PrivateServer> {
        let user = rustix::process::getuid().as_raw();
        let keeper = Keeper::new(Path::new(&format!("/var/tmp/dyno-{user}")))?;
        let keeper = Arc::new(keeper.with_own_sessions(session == Session::Own));
        let clock: Arc<dyn Clock> = Arc::new(RealClock(Instant::now()));
        let memory = SettingValue::Bytes(ByteCount(1 << 30));
        let mut settings = BTreeMap::from([(memory_setting.to_owned(), memory)]);
        if product == "mariadb" {
            settings.insert("max_connections".to_owned(), SettingValue::Integer(1000));
            // What one run has changed is flushed before the next one is measured.
            let text = |value: &str| SettingValue::Text(value.to_owned());
            settings.insert("innodb_max_dirty_pages_pct".to_owned(), text("0"));
            settings.insert("innodb_max_dirty_pages_pct_lwm".to_owned(), text("0.001"));
        } else {
            settings.insert("max_connections".to_owned(), SettingValue::Integer(300));
        }
        let spec = ServerSpec { settings, ..ServerSpec::new(product) };
        let server = Products::built_in().start(&spec, &Place::under(&keeper), &clock)?;
        let settings = server.facts()?.settings;
        let socket = match product {
            "mariadb" => PathBuf::from(&settings["socket"]),
            _ => PathBuf::from(&settings["unix_socket_directories"])
                .join(format!(".s.PGSQL.{}", settings["port"])),
        };
        Ok(PrivateServer { server: Some(server), socket })
    }
}

/// The server that stands, if there is one yet. One at a time: an idle one takes memory and some CPU as well.
pub(crate) struct Started<T>(Option<(Session, T)>);

impl<T> Started<T> {
    pub(crate) fn none() -> Started<T> {
        Started(None)
    }

    pub(crate) fn get(
        &mut self,
        session: Session,
        start: impl FnOnce(Session) -> anyhow::Result<T>,
    ) -> anyhow::Result<&T> {
        if self.0.as_ref().is_none_or(|(started, _)| *started != session) {
            self.0 = None;
            self.0 = Some((session, start(session)?));
        }
        Ok(&self.0.as_ref().expect("it has just been started").1)
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.server.take().map(Server::stop) {
            crate::say(&format!("the server was not stopped in order: {error}"));
        }
    }
}
