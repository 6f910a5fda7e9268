//! A private server for tests, in a folder that vanishes.

use std::cell::{Ref, RefCell};
use std::fs;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use dyno_database::{
    Address, DeployError, Endpoint, Place, Products, Secret, Server, ServerSpec, TlsMode, mysql,
};
use dyno_host::Keeper;
use dyno_units::{Clock, Nanoseconds, SettingValue};
use dyno_workload::Connection;
use tempfile::TempDir;

/// The time of this machine.
struct RealClock(Instant);

impl Clock for RealClock {
    fn now(&self) -> Nanoseconds {
        Nanoseconds(u64::try_from(self.0.elapsed().as_nanos()).unwrap())
    }

    fn unix_millis(&self) -> u64 {
        0
    }

    fn sleep_until(&self, until: Nanoseconds) {
        thread::sleep(until.saturating_sub(self.now()).to_duration());
    }
}

/// A running server and its folder.
pub(crate) struct Fixture {
    server: RefCell<Box<dyn Server>>,
    root: TempDir,
}

/// A MariaDB with these settings.
pub(crate) fn spec(settings: &[(&str, &str)]) -> ServerSpec {
    let settings = settings
        .iter()
        .map(|(name, value)| ((*name).to_owned(), SettingValue::Text((*value).to_owned())));
    ServerSpec { settings: settings.collect(), ..ServerSpec::new("mariadb") }
}

/// A folder that vanishes and that any user can read: the server may run as another one.
pub(crate) fn open_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// A file beside the tests, copied into an open folder; its path.
pub(crate) fn fixture_file(folder: &TempDir, name: &str) -> String {
    let copy = folder.path().join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    fs::copy(source, &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o644)).unwrap();
    copy.to_str().unwrap().to_owned()
}

/// The folder of MySQL's programs: the one that DYNO_TEST_MYSQL names, or those that `scripts/test` fetches; says what
/// is skipped if there are none.
#[allow(clippy::print_stderr, clippy::disallowed_methods)]
pub(crate) fn mysql() -> Option<PathBuf> {
    let named = std::env::var_os("DYNO_TEST_MYSQL").map(PathBuf::from);
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/builds");
    let builds = fs::read_dir(fetched).into_iter().flatten().flatten();
    let mut builds = builds.filter(|one| one.file_name().to_string_lossy().starts_with("mysql-"));
    let fetched = builds.find_map(|one| one.path().join("root/usr").canonicalize().ok());
    let found = named.or(fetched);
    if found.is_none() {
        eprintln!("skipped: there is no MySQL (scripts/test fetches one)");
    }
    found
}

/// The name of the user who runs the tests.
pub(crate) fn user_name() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl Fixture {
    pub(crate) fn start(spec: &ServerSpec) -> Fixture {
        match Fixture::try_start(spec) {
            Ok(fixture) => fixture,
            Err(error) => panic!("{error}\n{}", error.log.join("\n")),
        }
    }

    pub(crate) fn try_start(spec: &ServerSpec) -> Result<Fixture, DeployError> {
        // Initialising takes seconds.
        let kept = format!("/var/tmp/dyno-{}", rustix::process::getuid().as_raw());
        Fixture::with_initial_data(spec, Path::new(&kept))
    }

    /// One that may begin with a copy of the initial data that are kept under this root.
    pub(crate) fn with_initial_data(
        spec: &ServerSpec,
        kept: &Path,
    ) -> Result<Fixture, DeployError> {
        let root = open_folder();
        let keeper = Arc::new(Keeper::new(root.path()).unwrap().with_initial_data(kept));
        #[allow(clippy::disallowed_methods)] // The one place that makes the tests' clock.
        let clock: Arc<dyn Clock> = Arc::new(RealClock(Instant::now()));
        let started = Products::built_in().start(spec, &Place::under(&keeper), &clock);
        if started.is_err() {
            let left: Vec<_> = fs::read_dir(root.path()).unwrap().collect();
            assert!(left.is_empty(), "a failed start left {left:?}");
        }
        Ok(Fixture { server: RefCell::new(started?), root })
    }

    pub(crate) fn server(&self) -> Ref<'_, Box<dyn Server>> {
        self.server.borrow()
    }

    pub(crate) fn server_mut<T>(&self, act: impl FnOnce(&mut dyn Server) -> T) -> T {
        act(self.server.borrow_mut().as_mut())
    }

    pub(crate) fn connect(&self) -> Box<dyn Connection> {
        let connector = self.server().connector();
        connector().unwrap()
    }

    /// A setting in force.
    pub(crate) fn setting(&self, name: &str) -> String {
        self.server().facts().unwrap().settings[name].clone()
    }

    /// A port of the loopback that leads to the server's socket, for as long as the test runs; only
    /// for this user, because the server asks its superuser for no password.
    pub(crate) fn relay(&self) -> u16 {
        let socket = self.setting("socket");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            let me = rustix::process::geteuid().as_raw();
            let is_mine = |client: &TcpStream| dyno_host::user_of_client(client) == Some(me);
            for client in listener.incoming().flatten().filter(is_mine) {
                let Ok(server) = UnixStream::connect(&socket) else { continue };
                let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
                let (mut from, mut to) = (server, client);
                thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        });
        port
    }

    pub(crate) fn socket_endpoint(&self, user: &str, password: Option<&str>) -> Endpoint {
        Endpoint {
            protocol: &mysql::PROTOCOL,
            address: Address::Unix(self.setting("socket").into()),
            user: user.to_owned(),
            password: password.map(Secret::new),
            catalog: "dyno".to_owned(),
            tls: TlsMode::Off,
            server_public_key: None,
            session_options: None,
        }
    }

    /// The server, and the folder that it is in for as long as that is held.
    pub(crate) fn into_server(self) -> (TempDir, Box<dyn Server>) {
        (self.root, self.server.into_inner())
    }

    /// Stops the server; nothing of it may be left.
    pub(crate) fn stop(self) {
        let processes = self.server().processes();
        self.server.into_inner().stop().unwrap();
        for process in processes {
            assert!(!Path::new(&format!("/proc/{process}")).exists(), "process {process} runs on");
        }
        let left: Vec<_> = fs::read_dir(self.root.path()).unwrap().collect();
        assert!(left.is_empty(), "the server left {left:?}");
    }
}
