//! A private server for the measurement, started as Dyno starts its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use dyno_database::{Place, Products, Server, ServerSpec};
use dyno_host::Keeper;
use dyno_units::{ByteCount, Clock, Nanoseconds, SettingValue};

/// A clock that reads the machine's monotonic time.
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

/// A server that runs until it is dropped.
pub(crate) struct PrivateServer {
    server: Option<Box<dyn Server>>,
    pub(crate) socket: PathBuf,
}

impl PrivateServer {
    /// Starts a server whose memory holds all the data.
    #[expect(clippy::disallowed_methods, reason = "real servers live in real time")]
    pub(crate) fn start(product: &str, memory_setting: &str) -> anyhow::Result<PrivateServer> {
        let user = rustix::process::getuid().as_raw();
        let keeper = Arc::new(Keeper::new(Path::new(&format!("/var/tmp/dyno-{user}")))?);
        let clock: Arc<dyn Clock> = Arc::new(RealClock(Instant::now()));
        let memory = SettingValue::Bytes(ByteCount(1 << 30));
        let mut settings = BTreeMap::from([(memory_setting.to_owned(), memory)]);
        if product == "mariadb" {
            settings.insert("max_connections".to_owned(), SettingValue::Integer(1000));
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

impl Drop for PrivateServer {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.server.take().map(Server::stop) {
            crate::say(&format!("the server was not stopped in order: {error}"));
        }
    }
}
