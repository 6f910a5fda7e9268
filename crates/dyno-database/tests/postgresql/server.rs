//! One private PostgreSQL for all checks of a test; stopped when the last one is done.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use dyno_database::postgresql::connect;
use dyno_database::{Address, Endpoint, Place, Secret, ServerSpec, TlsMode, postgresql};
use dyno_host::{Keeper, KeptProcess, ProcessSpec};
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
        // Initialising takes seconds.
        let kept = format!("/var/tmp/dyno-{}", rustix::process::getuid().as_raw());
        let keeper = Keeper::new(folder.path()).unwrap().with_initial_data(Path::new(&kept));
        Laboratory { keeper: Arc::new(keeper), clock: Arc::new(RealClock::new()), folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn place(&self) -> Place {
        Place::under(&self.keeper)
    }

    /// Waits until something is so; only what never comes takes longer than the limit.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn() -> bool) {
        let until = self.clock.now() + MINUTE;
        while !is_so() {
            assert!(self.clock.now() < until, "it is not so that {what}");
            self.clock.sleep_until(self.clock.now() + Nanoseconds::from_millis(20));
        }
    }
}

pub(crate) fn spec(settings: &[(&str, SettingValue)]) -> ServerSpec {
    ServerSpec {
        settings: settings
            .iter()
            .map(|(name, value)| (name.to_string(), value.clone()))
            .collect::<BTreeMap<_, _>>(),
        ..ServerSpec::new("postgresql")
    }
}

/// A server that listens on a port of the loopback, which a private one does not: started as
/// somebody would start it who names it by its URL. By the port, its superuser has a password.
pub(crate) struct TestServer {
    pub(crate) endpoint: Endpoint,
    pub(crate) port: u16,
    password: String,
    process: Mutex<KeptProcess>,
    // Goes last, with the folder that the server was in.
    laboratory: Laboratory,
}

static SHARED: Mutex<Weak<TestServer>> = Mutex::new(Weak::new());

pub(crate) fn server() -> Arc<TestServer> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return server;
    }
    let server = Arc::new(TestServer::start());
    *shared = Arc::downgrade(&server);
    server
}

/// Runs checks that need the same server: each test has a process of its own.
#[expect(clippy::print_stderr, reason = "a check that fails is named")]
pub(crate) fn one_by_one(checks: &[(&str, fn())]) {
    let _kept = server();
    for (name, check) in checks {
        eprintln!("check: {name}");
        check();
    }
}

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

const MINUTE: Nanoseconds = Nanoseconds::from_secs(60);

/// The folder with the newest programs of this machine.
pub(crate) fn programs(keeper: &Keeper) -> PathBuf {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let found = debian.map(|version| version.path().join("bin/postgres")).max();
    let found = found.or_else(|| keeper.find_program("postgres", &[]));
    found.expect("PostgreSQL is installed").parent().unwrap().to_owned()
}

impl TestServer {
    fn start() -> TestServer {
        let laboratory = Laboratory::new();
        let (keeper, clock) = (&laboratory.keeper, laboratory.clock.as_ref());
        let programs = programs(keeper);
        let folder = keeper.make_folder("attached").unwrap();
        let inner = |name: &str| keeper.make_inner(&folder, name).unwrap();
        let (data, run) = (inner("data"), inner("run"));
        let process = |program: &str, arguments: &str| ProcessSpec {
            program: programs.join(program),
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            log: folder.join("log"),
            needs_name: true,
            ..ProcessSpec::default()
        };
        let arguments = "--username=dyno --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync";
        let initdb = process("initdb", &format!("-D {} {arguments}", data.display()));
        keeper.run(&folder, &initdb, clock, MINUTE).unwrap();
        // All who log in here have a password, or may nothing.
        let rules = "local all all trust\nhost all of_md5 all md5\n\
                     host all of_scram all scram-sha-256\nhost all of_plain all password\n\
                     host all of_trust all trust\nhost all of_nobody all reject\n\
                     host all all all scram-sha-256\n";
        let hba = keeper.write_file(&folder, "hba", rules).unwrap();
        let port = dyno_host::free_loopback_port().unwrap();
        let arguments = format!(
            "-D {} -p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={} \
             -c hba_file={} -c fsync=off",
            data.display(),
            run.display(),
            hba.display()
        );
        let spec = ProcessSpec { needs_name: false, ..process("postgres", &arguments) };
        let server = TestServer {
            endpoint: Endpoint {
                protocol: &postgresql::PROTOCOL,
                address: Address::Unix(run.join(format!(".s.PGSQL.{port}"))),
                user: "dyno".to_owned(),
                password: None,
                catalog: "dyno".to_owned(),
                tls: TlsMode::Off,
                server_public_key: None,
                session_options: None,
            },
            port,
            password: format!("of-this-run-{}-{port}", std::process::id()),
            process: Mutex::new(keeper.spawn(&folder, &spec).unwrap()),
            laboratory,
        };
        server.make_catalog();
        server.set_up_authentication();
        server
    }

    fn make_catalog(&self) {
        let maintenance = Endpoint { catalog: "postgres".to_owned(), ..self.endpoint.clone() };
        let clock = &self.laboratory.clock;
        let until = clock.now() + MINUTE;
        let mut connection = loop {
            match connect(&maintenance) {
                Ok(connection) => break connection,
                Err(error) => assert!(clock.now() < until, "{error}"),
            }
            clock.sleep_until(clock.now() + Nanoseconds::from_millis(20));
        };
        connection.query("CREATE DATABASE dyno").unwrap();
        connection.query(&format!("ALTER ROLE dyno PASSWORD '{}'", self.password)).unwrap();
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
        self.laboratory.wait_until("the server has its new configuration", in_force);
    }

    pub(crate) fn tcp(&self) -> Endpoint {
        let address = Address::Tcp { host: "127.0.0.1".to_owned(), port: self.port };
        let password = Some(Secret::new(&self.password));
        Endpoint { address, password, ..self.endpoint.clone() }
    }

    /// A connection of the reference driver.
    pub(crate) fn reference(&self) -> postgres::Client {
        let (port, password) = (self.port, &self.password);
        let parameters =
            format!("host=127.0.0.1 port={port} user=dyno dbname=dyno password={password}");
        postgres::Client::connect(&parameters, postgres::NoTls).unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = process.stop("INT", self.laboratory.clock.as_ref(), MINUTE);
    }
}
