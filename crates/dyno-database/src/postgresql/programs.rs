//! Finds PostgreSQL's programs on this machine.

use std::path::{Path, PathBuf};

use dyno_host::{Image, Keeper};

use crate::error::Result;
use crate::installation::{
    builder_in, choose, missing, missing_in_image, named_folder, on_machine,
};
use crate::{Installation, ServerSpec};

/// Where Debian and its derivatives keep one folder for each version.
const DEBIAN_ROOT: &str = "/usr/lib/postgresql";

/// Where the server may be in an image whose PATH does not lead to it.
const IMAGE_PLACES: [&str; 2] =
    ["/usr/lib/postgresql/*/bin/postgres", "/usr/local/pgsql/bin/postgres"];

const VERSION_LEAD: &str = "postgres (PostgreSQL) ";

/// From the spec's folder, else the best ones that fit it.
pub(super) fn find(spec: &ServerSpec, keeper: &Keeper) -> Result<Installation> {
    if let Some(image) = &spec.image {
        return in_image(keeper.image(image)?, spec, keeper);
    }
    let (folders, found) = match named_folder(spec)? {
        Some(folder) => {
            let folders = vec![folder.to_owned(), folder.join("bin")];
            let found = in_folders(&folders, keeper);
            (folders, found)
        }
        None => (usual_folders(keeper), installations(keeper)),
    };
    if let Some(chosen) = choose(&found, spec) {
        return Ok(chosen.clone());
    }
    let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let no_programs = format!(
        "PostgreSQL's programs `postgres` and `initdb` are not in {}; install them (Debian: package \
         `postgresql`), or name their folder with `programs`",
        folders.join(", ")
    );
    Err(missing(("postgresql", "PostgreSQL"), &found, spec, &no_programs))
}

/// The newest in an image that fit what the spec asks for.
fn in_image(image: Image, spec: &ServerSpec, keeper: &Keeper) -> Result<Installation> {
    let in_path = image.program_folders().into_iter();
    let patterns = in_path.map(|folder| folder.join("postgres").display().to_string());
    let patterns: Vec<String> = patterns.chain(IMAGE_PLACES.map(str::to_owned)).collect();
    let mut found: Vec<Installation> = Vec::new();
    for server in keeper.paths_in(&image, &patterns)? {
        let text = keeper.ask(image.program(&server), &["--version"])?;
        let Some(version) = text.strip_prefix(VERSION_LEAD) else { continue };
        found.push(Installation::in_image(&server, version, &image));
    }
    choose(&found, spec)
        .cloned()
        .ok_or_else(|| missing_in_image("PostgreSQL", "postgres", &image, &found, spec))
}

pub(super) fn installations(keeper: &Keeper) -> Vec<Installation> {
    let mut all = in_folders(&usual_folders(keeper), keeper);
    all.extend(keeper.builds("postgresql").into_iter().map(Installation::fetched));
    all
}

fn in_folders(folders: &[PathBuf], keeper: &Keeper) -> Vec<Installation> {
    let builder = |_: &Path, version: &str| builder_in(version);
    on_machine(folders, "postgres", |folder| version_in(folder, keeper), builder)
}

fn usual_folders(keeper: &Keeper) -> Vec<PathBuf> {
    let versioned = std::fs::read_dir(DEBIAN_ROOT).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versioned.map(|entry| entry.path().join("bin")).collect();
    // So that messages and choices do not depend on the order of a directory.
    folders.sort();
    let in_path = keeper.find_program("postgres", &[]);
    folders.extend(in_path.as_deref().and_then(Path::parent).map(Path::to_owned));
    folders.extend(["/usr/local/pgsql/bin", "/usr/local/bin", "/usr/bin"].map(PathBuf::from));
    folders
}

pub(super) fn version_in(folder: &Path, keeper: &Keeper) -> Option<String> {
    if !folder.join("initdb").is_file() {
        return None;
    }
    let text = keeper.ask(&folder.join("postgres"), &["--version"]).ok()?;
    Some(text.strip_prefix(VERSION_LEAD)?.to_owned())
}
