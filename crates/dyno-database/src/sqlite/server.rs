//! SQLite as a server: a folder with the database file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_host::{CopyLayout, DataFiles, FileKind, Probe, ThreadListing};
use dyno_units::Clock;
use dyno_workload::Connector;

use super::connection::SqliteConnection;
use super::cost::SqliteCost;
use super::pragma::{self, Pragma};
use crate::data::{OwnFolder, move_data};
use crate::error::{Context, Result, fail};
use crate::server::connector;
use crate::{
    Access, CostSource, DebtMeter, DeployError, Launch, Server, ServerFacts, ServerSpec,
    version_fits,
};

const DATABASE_FILE: &str = "dyno.db";

/// Suffixes of the files that SQLite puts beside the database file.
const SIDE_FILES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// With an empty or a kept database; verifies that all settings are accepted.
pub(super) fn start(launch: &Launch<'_>) -> Result<Box<dyn Server>> {
    let (spec, place) = (launch.spec, launch.place);
    check_spec(spec)?;
    let pragmas = pragma::from_settings(&spec.settings).map_err(DeployError::new)?;
    let folder = OwnFolder::make(place, &spec.product)?;
    match database(&folder, launch.data, pragmas) {
        Ok(database) => Ok(Box::new(SqliteServer { database, folder })),
        Err(error) => {
            // The first error is the one to report; a folder that stays is found as a leftover.
            let _ = folder.remove();
            Err(error)
        }
    }
}

fn database(folder: &OwnFolder, data: Option<&Path>, pragmas: Vec<Pragma>) -> Result<Database> {
    let Some(data) = data else { return Database::create(&folder.data, pragmas) };
    let to = folder.data.join(DATABASE_FILE);
    let how = (&**folder.place.keeper(), folder.place.copies());
    move_data(&data.join(DATABASE_FILE), &to, how)?;
    Database::open(&folder.data, pragmas)
}

/// Refuses what a database inside the process cannot have.
pub(super) fn check_spec(spec: &ServerSpec) -> Result<()> {
    let version = rusqlite::version();
    if let Some(wanted) = &spec.version
        && !version_fits(version, wanted)
    {
        return fail(format!(
            "SQLite is built into Dyno in version {version}; version {wanted} is not available"
        ));
    }
    let refused =
        |what: &str, instead: &str| fail(format!("SQLite runs inside Dyno: {what}; {instead}"));
    if let Some(engine) = &spec.engine {
        return refused(&format!("it has no storage engine `{engine}`"), "leave `engine` out");
    }
    if spec.programs.is_some() {
        return refused("there are no programs to find", "leave `programs` out");
    }
    if !spec.limits.is_none() {
        return refused("it uses what Dyno uses", "leave `memory`, `swap` and `cpu_weight` out");
    }
    if !spec.cpus.is_empty() {
        return refused("it runs on the workers' CPUs", "leave its `cpus` out");
    }
    Ok(())
}

pub(super) struct Database {
    path: PathBuf,
    pragmas: Arc<[Pragma]>,
    // Read once: they are equal, and `locking_mode = EXCLUSIVE` admits no other connection.
    pub(super) facts: ServerFacts,
}

impl Database {
    pub(super) fn create(folder: &Path, pragmas: Vec<Pragma>) -> Result<Database> {
        Database::settle(folder, pragmas, |database| {
            // Writes the file's header, which makes page size, encoding and WAL mode permanent.
            database.execute_batch("VACUUM")
        })
    }

    /// Opens the file that is in `folder`. Its permanent settings must match `pragmas`.
    fn open(folder: &Path, pragmas: Vec<Pragma>) -> Result<Database> {
        Database::settle(folder, pragmas, |_| Ok(()))
    }

    fn settle(
        folder: &Path,
        pragmas: Vec<Pragma>,
        finish: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<()>,
    ) -> Result<Database> {
        let path = folder.join(DATABASE_FILE);
        let failed = format!("cannot create the SQLite database {}", path.display());
        let database = rusqlite::Connection::open(&path).context(&failed)?;
        pragma::check_names(&database, &pragmas).map_err(DeployError::new)?;
        pragma::apply(&database, &pragmas).map_err(DeployError::new)?;
        finish(&database).context(&failed)?;
        drop(database);
        // Asked on a second connection: these are the settings that clients will have.
        let connection = SqliteConnection::open(&path, &pragmas)?;
        let settings = pragma::facts(&connection.database).context(&failed)?;
        let facts = ServerFacts {
            product: "SQLite".to_owned(),
            version: rusqlite::version().to_owned(),
            transport: "in process",
            durability: pragma::durability(&settings),
            durability_settings: &pragma::DURABILITY_SETTINGS,
            memory_bytes: pragma::memory_bytes(&settings),
            memory_settings: &pragma::MEMORY_SETTINGS,
            in_process: true,
            stores_data: true,
            settings,
            ..ServerFacts::default()
        };
        Ok(Database { path, pragmas: pragmas.into(), facts })
    }

    pub(super) fn connector(&self) -> Connector {
        let (path, pragmas) = (self.path.clone(), Arc::clone(&self.pragmas));
        connector(move || SqliteConnection::open(&path, &pragmas))
    }

    /// Probes do not wait for locks: without settings that read the file, and so wait for writers.
    fn probe_connector(&self) -> Connector {
        let path = self.path.clone();
        let busy = Pragma::new("busy_timeout", PROBE_BUSY_MS);
        let own = self.pragmas.iter().filter(|one| one.name == "wal_autocheckpoint").cloned();
        let pragmas: Vec<Pragma> = std::iter::once(busy).chain(own).collect();
        connector(move || SqliteConnection::open(&path, &pragmas))
    }

    pub(super) fn has_wal(&self) -> bool {
        self.facts.settings.get("journal_mode").is_some_and(|mode| mode == "wal")
    }

    /// Merges the files beside the database into it, and resets its journal mode.
    fn make_plain(&self) -> Result<()> {
        let failed = format!("cannot complete {}", self.path.display());
        let ask = || -> rusqlite::Result<String> {
            let database = rusqlite::Connection::open(&self.path)?;
            database.query_row("PRAGMA journal_mode = delete", [], |row| row.get(0))
        };
        match ask().context(&failed)?.as_str() {
            "delete" => Ok(()),
            other => Err(format!("its journal mode remains `{other}`")).context(failed),
        }
    }

    /// Bytes on disk of the file and of those beside it.
    pub(super) fn bytes(&self) -> u64 {
        let size = |suffix: &str| {
            let mut path = self.path.clone().into_os_string();
            path.push(suffix);
            dyno_host::folder_bytes(Path::new(&path)).unwrap_or(0)
        };
        SIDE_FILES.iter().map(|suffix| size(suffix)).sum()
    }
}

/// What a file beside the database holds: SQLite names them after it.
fn file_kind(path: &Path) -> FileKind {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match name.strip_prefix(DATABASE_FILE) {
        Some("") => FileKind::TablesAndIndexes,
        Some("-wal" | "-journal" | "-shm") => FileKind::Logs,
        _ => FileKind::Other,
    }
}

const PROBE_BUSY_MS: &str = "100";

struct SqliteServer {
    database: Database,
    folder: OwnFolder,
}

impl Server for SqliteServer {
    fn connector(&self) -> Connector {
        self.database.connector()
    }

    fn facts(&self) -> Result<ServerFacts> {
        Ok(self.database.facts.clone())
    }

    fn data_bytes(&self) -> Option<u64> {
        Some(self.database.bytes())
    }

    fn data_files(&self) -> Option<DataFiles> {
        Some(DataFiles { root: self.folder.data.clone(), kind: file_kind })
    }

    fn probes(&self, _threads: Option<&ThreadListing>) -> Vec<Box<dyn Probe>> {
        let database = &self.database;
        let page_bytes = database.facts.settings.get("page_size").and_then(|n| n.parse().ok());
        let path = database.path.clone();
        super::probe::probes(path, page_bytes, (&database.probe_connector(), database.has_wal()))
    }

    fn debt_meter(&self) -> Result<Box<dyn DebtMeter>, String> {
        Ok(super::debt::meter(self.connector(), self.database.has_wal()))
    }

    fn cost_source(
        &self,
        access: Access,
        _clock: &Arc<dyn Clock>,
    ) -> Result<Box<dyn CostSource>, String> {
        let database = &self.database;
        let connection = SqliteConnection::open(&database.path, &database.pragmas)
            .map_err(|error| error.to_string())?;
        Ok(Box::new(SqliteCost::new(connection.database, access)?))
    }

    fn blocks_worker(&self) -> bool {
        true
    }

    fn can_keep_data(&self) -> bool {
        true
    }

    fn stop_and_keep_data(self: Box<Self>, to: &Path) -> Result<()> {
        let move_file = || {
            self.database.make_plain()?;
            std::fs::create_dir(to).context(format!("{} cannot be created", to.display()))?;
            let how = (&**self.folder.place.keeper(), CopyLayout::AsOriginal);
            move_data(&self.database.path, &to.join(DATABASE_FILE), how)
        };
        let moved = move_file();
        moved.and(self.stop())
    }

    fn stop(self: Box<Self>) -> Result<()> {
        self.folder.remove()
    }
}
