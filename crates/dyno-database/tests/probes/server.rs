//! Private servers for tests, in a folder that vanishes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use dyno_database::{
    Address, Endpoint, Place, Products, Server, ServerSpec, TlsMode, mysql, postgresql,
};
use dyno_host::Keeper;
use dyno_units::{Clock, Nanoseconds, SettingValue};
use dyno_workload::{Connection, Dialect};
use tempfile::TempDir;

struct RealClock(Instant);

impl Clock for RealClock {
    fn now(&self) -> Nanoseconds {
        Nanoseconds::from(self.0.elapsed())
    }

    fn unix_millis(&self) -> u64 {
        0
    }

    fn sleep_until(&self, until: Nanoseconds) {
        std::thread::sleep(until.saturating_sub(self.now()).to_duration());
    }
}

/// The time of this machine.
#[allow(clippy::disallowed_methods)] // The one place that makes the tests' clock.
pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(RealClock(Instant::now()))
}

/// A running server; it stops with this.
pub(crate) struct Running {
    server: Option<Box<dyn Server>>,
    _root: TempDir,
}

impl Running {
    pub(crate) fn start(product: &str, engine: Option<&str>, settings: &[(&str, &str)]) -> Running {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        // Initialising takes seconds.
        let kept = format!("/var/tmp/dyno-{}", rustix::process::getuid().as_raw());
        let keeper = Keeper::new(root.path()).unwrap().with_initial_data(Path::new(&kept));
        let keeper = Arc::new(keeper);
        let settings = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), SettingValue::Text((*value).to_owned())));
        let spec = ServerSpec {
            engine: engine.map(str::to_owned),
            settings: settings.collect(),
            ..ServerSpec::new(product)
        };
        let place = Place::under(&keeper);
        let server = Products::built_in().start(&spec, &place, &clock()).unwrap();
        Running { server: Some(server), _root: root }
    }

    pub(crate) fn server(&self) -> &dyn Server {
        self.server.as_deref().unwrap()
    }

    pub(crate) fn connect(&self) -> Box<dyn Connection> {
        (self.server().connector())().unwrap()
    }

    /// The same server for another user, who has no password.
    pub(crate) fn endpoint(&self, user: &str) -> Endpoint {
        let settings = self.server().facts().unwrap().settings;
        let (protocol, socket) = match self.server().dialect() {
            Dialect::MySql => (&mysql::PROTOCOL, settings["socket"].clone()),
            _ => {
                let folder = &settings["unix_socket_directories"];
                (&postgresql::PROTOCOL, format!("{folder}/.s.PGSQL.{}", settings["port"]))
            }
        };
        Endpoint {
            protocol,
            address: Address::Unix(socket.into()),
            user: user.to_owned(),
            password: None,
            catalog: "dyno".to_owned(),
            tls: TlsMode::Off,
            server_public_key: None,
            session_options: None,
        }
    }

    pub(crate) fn run(&self, statements: &[&str]) {
        let mut connection = self.connect();
        for sql in statements {
            connection.query(sql).unwrap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop().unwrap();
        }
    }
}
