//! Files as a product, whose server is a folder.

use std::fs::DirEntry;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use dyno_host::{DataFiles, FileKind};
use dyno_units::Clock;
use dyno_workload::files::file_number;
use dyno_workload::{Connector, Target};

use super::connection::FileConnection;
use super::work::Shared;
use crate::data::OwnFolder;
use crate::error::{Context, Result, fail};
use crate::product::{Family, texts};
use crate::{
    Access, CostSource, DiskUse, Launch, Product, ProductSpec, Server, ServerFacts, ServerSpec,
    version_fits,
};

pub(crate) const FAMILY: Family = Family::of(|| vec![files()]);

const NO_SETTINGS: &str = "files have no settings; [volume.NAME] and the workload's options determine where \
                           they are and how they are used";

/// Begins all messages about what cannot be done in a folder whatever happens.
pub(super) const REFUSED: &str = "these files cannot be created: ";

fn files() -> Product {
    let spec = ProductSpec {
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
    };
    Product { refused_setting: |_| Some(NO_SETTINGS.to_owned()), ..Product::new(spec, start) }
}

fn start(launch: &Launch<'_>) -> Result<Box<dyn Server>> {
    let (spec, place) = (launch.spec, launch.place);
    check_spec(spec)?;
    if launch.data.is_some() {
        return fail("files are not kept, so they cannot be reused");
    }
    let folder = OwnFolder::make(place, &spec.product)?;
    let shared = Arc::new(Shared::new(&folder.data));
    Ok(Box::new(FilesServer { folder, shared }))
}

fn check_spec(spec: &ServerSpec) -> Result<()> {
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
        return fail(message);
    }
    let kernel = kernel();
    match &spec.version {
        Some(wanted) if !version_fits(&kernel, wanted) => fail(format!(
            "the version of files is that of the kernel, {kernel}; {wanted} is not available"
        )),
        _ => Ok(()),
    }
}

fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

struct FilesServer {
    folder: OwnFolder,
    shared: Arc<Shared>,
}

impl Server for FilesServer {
    fn connector(&self) -> Connector {
        let shared = Arc::clone(&self.shared);
        crate::server::connector(move || Ok(FileConnection::new(Arc::clone(&shared))))
    }

    fn facts(&self) -> Result<ServerFacts> {
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

    fn check_alive(&self) -> Result<()> {
        let folder = self.shared.folder();
        std::fs::metadata(folder)
            .context(format!("the folder of the files, {}, is gone", folder.display()))
            .map(drop)
    }

    fn stop(self: Box<Self>) -> Result<()> {
        self.folder.remove()
    }
}
