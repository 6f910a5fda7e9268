//! Python wheels with a server, by the user's own pip and its configuration.

use std::path::Path;

use super::super::tool::{ROOT_FOLDER, Tool};
use super::{Downloaded, Job, Source, file_names};
use crate::{Keeper, OrKeeper, Result};

pub(super) const PYTHON: Source = Source {
    name: "python",
    summary: "wheels that contain a server, from the indexes that pip is configured to use",
    problem: |keeper| pip(keeper).err().map(|error| error.0),
    download,
    unpack,
};

fn download(job: &Job<'_>, to: &Path) -> Result<Downloaded> {
    let package = job.order.spec.packages.first().cloned().unwrap_or_default();
    let wanted = match job.order.spec.version.as_str() {
        "" => package.clone(),
        version => format!("{package}=={version}"),
    };
    (job.order.say)(&format!("downloading {wanted}"));
    let place = to.display().to_string();
    let words = ["download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", &place];
    pip(job.keeper)?.run(ROOT_FOLDER.as_ref(), words.into_iter().chain([wanted.as_str()]))?;
    let files = file_names(to)?;
    let version = files.iter().find_map(|file| version_in(file));
    Ok(Downloaded {
        builder: format!("Python {package}"),
        version: version.or_keeper(|| format!("pip downloaded no {package}"))?,
        package,
        files,
    })
}

fn unpack(job: &Job<'_>, packages: &Path, root: &Path) -> Result<()> {
    let place = root.display().to_string();
    for file in file_names(packages)? {
        let wheel = packages.join(file).display().to_string();
        let words = ["install", "--quiet", "--no-index", "--no-deps", "--no-compile", "--target"];
        let words = words.into_iter().chain([place.as_str(), wheel.as_str()]);
        pip(job.keeper)?.run(ROOT_FOLDER.as_ref(), words)?;
    }
    Ok(())
}

fn pip(keeper: &Keeper) -> Result<Tool> {
    Tool::find(keeper, "pip3", "python3-pip").or_else(|_| Tool::find(keeper, "pip", "python3-pip"))
}

/// `0.1.4` in `pgserver-0.1.4-cp311-cp311-manylinux.whl`.
fn version_in(file: &str) -> Option<String> {
    let mut parts = file.strip_suffix(".whl")?.split('-');
    parts.next()?;
    parts.next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_stands_in_the_name_of_the_wheel() {
        let check = |file: &str, expected: Option<&str>| {
            assert_eq!(version_in(file).as_deref(), expected, "{file}");
        };
        check("pgserver-0.1.4-cp311-cp311-manylinux.whl", Some("0.1.4"));
        check("pgserver-0.1.4.tar.gz", None);
    }
}
