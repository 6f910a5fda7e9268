//! Files as a product, whose server is a folder.

use std::fs::DirEntry;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_host::{DataFiles, FileKind, Place};
use dyno_units::Clock;
use dyno_workload::files::file_number;
use dyno_workload::{Connector, Target};

use super::connection::FileConnection;
use super::work::Shared;
use crate::product::texts;
use crate::products::Family;
use crate::server::Context;
use crate::{
    Access, CostSource, DeployError, DiskUse, Launch, Product, ProductSpec, Server, ServerFacts,
    ServerSpec, version_fits,
};

pub(crate) const FAMILY: Family = Family::of(|| vec![Arc::new(Files { spec: files() })]);

/// Begins all messages about what cannot be done in a folder whatever happens.
pub(super) const REFUSED: &str = "these files cannot be created: ";

struct Files {
    spec: ProductSpec,
}

fn files() -> ProductSpec {
    ProductSpec {
        is_embedded: true,
        target: Target::Files,
        disk: Some(DiskUse { kept: 0, grown: 0, running: 0, log: None, spread: 1.0 }),
        disk_full: texts(["No space left on device"]),
        refusals: texts([REFUSED]),
        ..ProductSpec::new(
            "files",
            "files",
            "files on a volume or in a folder, for the workloads file-io and fsync",
            None,
        )
    }
}

impl Product for Files {
    fn spec(&self) -> &ProductSpec {
        &self.spec
    }

    fn start(&self, launch: &Launch<'_>) -> Result<Box<dyn Server>, DeployError> {
        let (spec, place) = (launch.spec, launch.place);
        check_spec(spec)?;
        if launch.data.is_some() {
            return Err(DeployError::new("files are not kept, so they cannot be reused"));
        }
        let path = place.keeper().make_folder(&spec.product)?;
        let data = place.data_of(&path, path.clone());
        let server =
            FilesServer { place: place.clone(), path, shared: Arc::new(Shared::new(&data)) };
        if server.shared.folder() != server.path
            && let Err(error) = std::fs::create_dir(&data)
        {
            let message = format!("{} cannot be created: {error}", data.display());
            // This error is the one to report; a folder that stays is found as a leftover.
            let _ = server.remove();
            return Err(DeployError::new(message));
        }
        Ok(Box::new(server))
    }

    fn refused_setting(&self, _name: &str) -> Option<String> {
        Some(
            "files have no settings; [volume.NAME] and the workload's options determine where \
              they are and how they are used"
                .to_owned(),
        )
    }
}

fn check_spec(spec: &ServerSpec) -> Result<(), DeployError> {
    let given = [
        ("engine", spec.engine.is_some()),
        ("programs", spec.programs.is_some()),
        ("settings", !spec.settings.is_empty()),
        ("cpus", !spec.cpus.is_empty()),
        ("memory", spec.limits.memory.is_some()),
        ("swap", spec.limits.swap.is_some()),
        ("cpu_weight", spec.limits.cpu_weight.is_some()),
    ];
    if let Some((name, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        let message = format!("Dyno accesses files itself, without a server: leave `{name}` out");
        return Err(DeployError::new(message));
    }
    let kernel = kernel();
    match &spec.version {
        Some(wanted) if !version_fits(&kernel, wanted) => Err(DeployError::new(format!(
            "the version of files is that of the kernel, {kernel}; {wanted} is not available"
        ))),
        _ => Ok(()),
    }
}

fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

struct FilesServer {
    place: Place,
    /// The folder that marks it as Dyno's; the files lie in it unless their place is apart.
    path: PathBuf,
    shared: Arc<Shared>,
}

impl FilesServer {
    fn remove(&self) -> Result<(), DeployError> {
        let folder = self.place.keeper().remove_folder(&self.path);
        Ok(folder.and(self.place.remove_data(self.shared.folder()))?)
    }
}

impl Server for FilesServer {
    fn connector(&self) -> Connector {
        let shared = Arc::clone(&self.shared);
        crate::server::connector(move || Ok(FileConnection::new(Arc::clone(&shared))))
    }

    fn facts(&self) -> Result<ServerFacts, DeployError> {
        Ok(ServerFacts {
            product: "files".to_owned(),
            version: format!("Linux {}", kernel()),
            transport: "in process",
            in_process: true,
            stores_data: true,
            ..ServerFacts::default()
        })
    }

    /// Of the files alone: the folder and what marks it as Dyno's are no data.
    fn data_bytes(&self) -> Option<u64> {
        let entries = std::fs::read_dir(self.shared.folder()).ok()?;
        let is_file = |entry: &DirEntry| {
            entry.file_name().to_str().is_some_and(|name| file_number(name).is_some())
        };
        let bytes = |entry: DirEntry| entry.metadata().map_or(0, |facts| facts.blocks() * 512);
        Some(entries.filter_map(Result::ok).filter(is_file).map(bytes).sum())
    }

    fn data_files(&self) -> Option<DataFiles> {
        let kind = |_: &Path| FileKind::Other;
        Some(DataFiles { root: self.shared.folder().to_owned(), kind })
    }

    fn blocks_worker(&self) -> bool {
        true
    }

    fn cost_source(
        &self,
        _access: Access,
        _clock: &Arc<dyn Clock>,
    ) -> Result<Box<dyn CostSource>, String> {
        Err("there are no statements: files are read and written".to_owned())
    }

    fn check_alive(&self) -> Result<(), DeployError> {
        let folder = self.shared.folder();
        std::fs::metadata(folder)
            .context(format!("the folder of the files, {}, is gone", folder.display()))
            .map(drop)
    }

    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        self.remove()
    }
}
