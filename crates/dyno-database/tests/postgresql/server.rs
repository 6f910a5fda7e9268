//! One private PostgreSQL that the tests of a binary share; stopped when the last one is done.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use dyno_database::postgresql::connect;
use dyno_database::{Address, Endpoint, Protocol, Server, ServerSpec, TlsMode, start};
use dyno_host::Keeper;
use dyno_units::{Clock, Nanoseconds, SettingValue};
use dyno_workload::Connection;

/// The real time: servers really take it.
pub(crate) struct RealClock {
    origin: Instant,
}

impl RealClock {
    #[expect(clippy::disallowed_methods, reason = "a real server needs real time")]
    pub(crate) fn new() -> RealClock {
        RealClock { origin: Instant::now() }
    }
}

impl Clock for RealClock {
    fn now(&self) -> Nanoseconds {
        Nanoseconds::from(self.origin.elapsed())
    }

    fn unix_millis(&self) -> u64 {
        0
    }

    fn sleep_until(&self, until: Nanoseconds) {
        std::thread::sleep(until.saturating_sub(self.now()).to_duration());
    }
}

/// A folder for servers, and what starts them in it.
pub(crate) struct Laboratory {
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) clock: Arc<dyn Clock>,
    // Removed with everything in it.
    folder: tempfile::TempDir,
}

impl Laboratory {
    pub(crate) fn new() -> Laboratory {
        let folder = tempfile::tempdir().unwrap();
        // The unprivileged user that servers run as has to get through.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Laboratory {
            keeper: Arc::new(Keeper::new(folder.path()).unwrap()),
            clock: Arc::new(RealClock::new()),
            folder,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

pub(crate) fn spec(settings: &[(&str, SettingValue)]) -> ServerSpec {
    ServerSpec {
        product: "postgresql".to_owned(),
        version: None,
        engine: None,
        programs: None,
        settings: settings
            .iter()
            .map(|(name, value)| (name.to_string(), value.clone()))
            .collect::<BTreeMap<_, _>>(),
        cpus: Vec::new(),
    }
}

pub(crate) struct TestServer {
    pub(crate) endpoint: Endpoint,
    pub(crate) port: u16,
    server: Mutex<Option<Box<dyn Server>>>,
    // Goes last, with the folder that the server was in.
    _laboratory: Laboratory,
}

static SHARED: Mutex<Weak<TestServer>> = Mutex::new(Weak::new());

/// The shared server.
pub(crate) fn server() -> Arc<TestServer> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return server;
    }
    let server = Arc::new(TestServer::start());
    *shared = Arc::downgrade(&server);
    server
}

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

impl TestServer {
    fn start() -> TestServer {
        let laboratory = Laboratory::new();
        // Nothing here has to survive a power cut.
        let spec = spec(&[("fsync", SettingValue::Switch(false))]);
        let server = start(&spec, &laboratory.keeper, &laboratory.clock)
            .unwrap_or_else(|error| panic!("{error}\n{}", error.log.join("\n")));
        let mut connection = (server.connector())().unwrap();
        let mut show = |name: &str| {
            connection.query(&format!("SHOW {name}")).unwrap().remove(0).remove(0).unwrap()
        };
        let port: u16 = show("port").parse().unwrap();
        let folder = PathBuf::from(show("unix_socket_directories"));
        let endpoint = Endpoint {
            protocol: Protocol::PostgreSql,
            address: Address::Unix(folder.join(format!(".s.PGSQL.{port}"))),
            user: "dyno".to_owned(),
            password: None,
            catalog: "dyno".to_owned(),
            tls: TlsMode::Off,
        };
        let server = TestServer {
            endpoint,
            port,
            server: Mutex::new(Some(server)),
            _laboratory: laboratory,
        };
        server.set_up_authentication();
        server
    }

    /// Makes users who log in by each method, gives the server a certificate, and waits until
    /// both are in force.
    fn set_up_authentication(&self) {
        let mut connection = connect(&self.endpoint).unwrap();
        let mut query = |sql: &str| connection.query(sql).unwrap();
        query("SET password_encryption = 'md5'; CREATE ROLE of_md5 LOGIN PASSWORD 'päss w:rd'");
        query("SET password_encryption = 'scram-sha-256'");
        query("CREATE ROLE of_scram LOGIN PASSWORD 'päss w:rd'");
        query("CREATE ROLE of_plain LOGIN PASSWORD 'päss w:rd'");
        query("CREATE ROLE of_trust LOGIN");
        query("CREATE ROLE of_nobody LOGIN");
        let data = PathBuf::from(query("SHOW data_directory").remove(0).remove(0).unwrap());
        let hba = data.join("pg_hba.conf");
        let rules = "host all of_md5 all md5\nhost all of_scram all scram-sha-256\n\
                     host all of_plain all password\nhost all of_nobody all reject\n";
        fs::write(&hba, [rules.as_bytes(), &fs::read(&hba).unwrap()].concat()).unwrap();
        let owner = fs::metadata(&data).unwrap();
        for (from, to) in [("tls-server.pem", "server.crt"), ("tls-server.key", "server.key")] {
            let to = data.join(to);
            fs::copy(fixture(from), &to).unwrap();
            fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).unwrap();
            std::os::unix::fs::chown(&to, Some(owner.uid()), Some(owner.gid())).unwrap();
        }
        query("ALTER SYSTEM SET ssl = on");
        query("SELECT pg_reload_conf()");
        let in_force = || {
            let refused =
                connect(&Endpoint { user: "of_nobody".to_owned(), ..self.tcp() }).is_err();
            refused && connect(&Endpoint { tls: TlsMode::Encrypt, ..self.tcp() }).is_ok()
        };
        // Each look opens connections, and so lets the server do its own work meanwhile.
        let is_in_force = (0..20_000).any(|_| {
            std::thread::yield_now();
            in_force()
        });
        assert!(is_in_force, "the server has not taken its new configuration");
    }

    pub(crate) fn tcp(&self) -> Endpoint {
        let address = Address::Tcp { host: "127.0.0.1".to_owned(), port: self.port };
        Endpoint { address, ..self.endpoint.clone() }
    }

    /// A connection of the reference driver.
    pub(crate) fn reference(&self) -> postgres::Client {
        let sql = format!("host=127.0.0.1 port={} user=dyno dbname=dyno", self.port);
        postgres::Client::connect(&sql, postgres::NoTls).unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(server) = self.server.lock().unwrap().take() {
            server.stop().unwrap();
        }
    }
}
