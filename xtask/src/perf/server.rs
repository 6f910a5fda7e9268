//! A private server to measure, started as Dyno starts its own.

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

/// The kernel's scheduling group of the server. With `kernel.sched_autogroup_enabled`, each session is a group that
/// shares the CPUs with others; so are cgroups of services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Session {
    /// Its own, as for a service, or a private server of a Dyno that runs as root.
    Own,
    /// The load generators', as for a server started in the same shell.
    Generators,
}

impl Session {
    pub(crate) const BOTH: [Session; 2] = [Session::Own, Session::Generators];

    /// At the end of row names.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Session::Own => "server's own session",
            Session::Generators => "generator's session",
        }
    }
}

/// Stopped on drop.
pub(crate) struct PrivateServer {
    server: Option<Box<dyn Server>>,
    pub(crate) socket: PathBuf,
}

impl PrivateServer {
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
            // Changes of one run are flushed before the next is measured.
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

/// At most one server at a time: an idle one takes memory and some CPU.
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
