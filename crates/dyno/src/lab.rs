//! Sets up the laboratory: clock, keeper, environment, abort flag.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use dyno_host::{BuildStore, Keeper};
use dyno_lab::datasets::Limits;
use dyno_lab::{HeldHosts, Lab};
use dyno_load::AbortFlag;
use dyno_record::Environment;
use dyno_units::Clock;
use dyno_workload::catalog::Catalog;

use crate::clock::SystemClock;
use crate::{calibration, signals};

/// Private servers keep their data in `data_folder`, or where [`data_root`] says.
pub(crate) fn make(data_folder: Option<&Path>) -> anyhow::Result<Lab> {
    let lab = make_without_signals(data_folder)?;
    signals::raise(&lab.abort, "stopping: abandoning the trial and stopping its servers …")?;
    Ok(lab)
}

/// Leaves Ctrl-C to the caller.
pub(crate) fn make_without_signals(data_folder: Option<&Path>) -> anyhow::Result<Lab> {
    let root = data_root(data_folder)?;
    let keeper = keeper(&root)?.with_builds(builds()?);
    raise_open_files();
    Ok(make_with(keeper))
}

pub(crate) fn make_with(keeper: Keeper) -> Lab {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let environment = environment(keeper.root());
    // The report says why there is no calibration.
    let calibration = calibration::read(&environment).ok();
    Lab {
        clock,
        keeper: Arc::new(keeper),
        products: dyno_lab::products(),
        catalog: Catalog::built_in(),
        abort: AbortFlag::new(),
        environment,
        calibration,
        data_sets: Limits::USUAL,
        program: std::env::current_exe().ok(),
        checks_host: true,
        format_devices: Vec::new(),
        hosts: HeldHosts::default(),
    }
}

/// Also searches the user's PATH for programs, and runs images with the engine in `DYNO_CONTAINER_ENGINE`. Initial data
/// stay in Dyno's folder in /var/tmp, wherever servers keep their data.
#[expect(clippy::disallowed_methods, reason = "only this crate reads the environment")]
pub(crate) fn keeper(root: &Path) -> anyhow::Result<Keeper> {
    let keeper = Keeper::new(root).context("--data-folder")?.with_initial_data(&own_folder());
    let keeper = keeper.with_engine(std::env::var_os("DYNO_CONTAINER_ENGINE"));
    Ok(match std::env::var_os("PATH") {
        Some(path) => keeper.with_path(&path),
        None => keeper,
    })
}

/// Fetched programs are in `DYNO_BUILDS` or Dyno's folder in /var/tmp, wherever servers keep their data.
#[expect(clippy::disallowed_methods, reason = "only this crate reads the environment")]
pub(crate) fn builds() -> anyhow::Result<BuildStore> {
    let folder = match std::env::var_os("DYNO_BUILDS").filter(|folder| !folder.is_empty()) {
        Some(folder) => std::path::absolute(&folder)
            .with_context(|| format!("cannot use the folder {}", Path::new(&folder).display()))?,
        None => own_folder().join("builds"),
    };
    Ok(BuildStore::at(&folder))
}

/// Beside the folder of builds, so that moving that, as tests do, moves both.
pub(crate) fn register() -> anyhow::Result<PathBuf> {
    let beside = builds()?;
    Ok(beside.folder().with_file_name("up"))
}

/// To the hard limit: each client holds a connection. Servers started by Dyno inherit it.
pub(crate) fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If refused, a connection beyond the old limit reports it.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// The folder for private servers' data: the given one, `DYNO_DATA_FOLDER`, or Dyno's own.
#[expect(clippy::disallowed_methods, reason = "only this crate reads the environment")]
pub(crate) fn data_root(data_folder: Option<&Path>) -> anyhow::Result<PathBuf> {
    let named = data_folder.map(Path::to_owned).or_else(|| {
        std::env::var_os("DYNO_DATA_FOLDER").filter(|folder| !folder.is_empty()).map(PathBuf::from)
    });
    match named {
        Some(folder) => std::path::absolute(&folder)
            .with_context(|| format!("cannot use the data folder {}", folder.display())),
        None => Ok(own_folder()),
    }
}

/// On a disk, and every user may enter it.
pub(crate) fn own_folder() -> PathBuf {
    PathBuf::from(format!("/var/tmp/dyno-{}", rustix::process::getuid().as_raw()))
}

pub(crate) fn environment(data_folder: &Path) -> Environment {
    let facts = dyno_host::environment(Path::new("/"), data_folder);
    Environment {
        machine: facts.machine,
        cpus: facts.cpus,
        memory_bytes: facts.memory_bytes,
        facts: facts.facts,
    }
}
