//! A private server to measure, started as Dyno starts its own.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
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
    /// Of a catalog for Dyno's tables, which come and go; peers use another.
    pub(crate) url: String,
}

impl PrivateServer {
    #[expect(clippy::disallowed_methods, reason = "real servers live in real time")]
    pub(crate) fn start(product: &str, session: Session) -> anyhow::Result<PrivateServer> {
        let user = rustix::process::getuid().as_raw();
        let keeper = Keeper::new(Path::new(&format!("/var/tmp/dyno-{user}")))?;
        let keeper = Arc::new(keeper.with_own_sessions(session == Session::Own));
        let clock: Arc<dyn Clock> = Arc::new(RealClock(Instant::now()));
        let memory = SettingValue::Bytes(ByteCount(1 << 30));
        let text = |value: &str| SettingValue::Text(value.to_owned());
        let settings = match product {
            "mariadb" => vec![
                ("innodb_buffer_pool_size", memory),
                ("max_connections", SettingValue::Integer(1000)),
                // Changes of one run are flushed before the next is measured.
                ("innodb_max_dirty_pages_pct", text("0")),
                ("innodb_max_dirty_pages_pct_lwm", text("0.001")),
            ],
            _ => vec![("shared_buffers", memory), ("max_connections", SettingValue::Integer(300))],
        };
        let settings = settings.into_iter().map(|(name, value)| (name.to_owned(), value));
        let settings: BTreeMap<_, _> = settings.collect();
        let spec = ServerSpec { settings, ..ServerSpec::new(product) };
        let server = Products::built_in().start(&spec, &Place::under(&keeper), &clock)?;
        let settings = server.facts()?.settings;
        let (socket, url) = if product == "mariadb" {
            let socket = &settings["socket"];
            (PathBuf::from(socket), format!("mysql://root@localhost/perf?socket={socket}"))
        } else {
            let (folder, port) = (&settings["unix_socket_directories"], &settings["port"]);
            let url = format!("postgresql://dyno@localhost:{port}/perf?host={folder}");
            (Path::new(folder).join(format!(".s.PGSQL.{port}")), url)
        };
        Ok(PrivateServer { server: Some(server), socket, url })
    }
}

/// At most one server at a time: an idle one takes memory and some CPU.
pub(crate) struct Started {
    product: &'static str,
    prepare: fn(&PrivateServer) -> anyhow::Result<()>,
    server: RefCell<Option<(Session, Rc<PrivateServer>)>>,
}

impl Started {
    pub(crate) fn new(
        product: &'static str,
        prepare: fn(&PrivateServer) -> anyhow::Result<()>,
    ) -> Started {
        Started { product, prepare, server: RefCell::default() }
    }

    pub(crate) fn get(&self, session: Session) -> anyhow::Result<Rc<PrivateServer>> {
        let mut known = self.server.borrow_mut();
        if let Some((_, server)) = known.as_ref().filter(|(started, _)| *started == session) {
            return Ok(Rc::clone(server));
        }
        *known = None;
        let server = Rc::new(PrivateServer::start(self.product, session)?);
        (self.prepare)(&server)?;
        *known = Some((session, Rc::clone(&server)));
        Ok(server)
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.server.take().map(Server::stop) {
            crate::shell::say(&format!("the server was not stopped in order: {error}"));
        }
    }
}
