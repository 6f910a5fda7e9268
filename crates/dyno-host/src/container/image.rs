//! An image of the engine: what it is, and what it contains.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Engine, Program};
use crate::builds::{Origin, Tool};
use crate::{Keeper, KeeperError, OrKeeper, Result};

const SOURCE: &str = "image";
/// Prints the paths that exist; a star stands for any name.
const EXISTING: &str = "for path in $@; do [ -e \"$path\" ] && echo \"$path\"; done; :";
/// PATH, if the image does not set it.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Identified by its content, as a name may be given to another image later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    engine: Engine,
    reference: String,
    /// Digest of its configuration, without `sha256:`.
    id: String,
    /// In a registry: `docker.io/library/postgres@sha256:…`.
    repo_digest: Option<String>,
    /// That the engine would make.
    volumes: Vec<String>,
    /// Where its programs are.
    path: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalImage {
    /// `docker.io/library/postgres:17`.
    pub reference: String,
    /// Abbreviated.
    pub id: String,
    /// As the engine prints it: `453 MB`.
    pub size: String,
}

impl LocalImage {
    /// `postgres`, the last part without the tag.
    pub fn name(&self) -> &str {
        repository(&self.reference).rsplit('/').next().unwrap_or_default()
    }
}

impl Keeper {
    /// Downloads nothing. The error says what to do without an engine or the image.
    pub fn image(&self, reference: &str) -> Result<Image> {
        check(reference)?;
        let engine = self.engine()?;
        let answer = engine.output(&["image", "inspect", reference])?;
        if !answer.status.success() {
            let name = engine.name();
            return Err(KeeperError(format!(
                "there is no image `{reference}` on this machine; fetch it with `{name} pull {reference}`, or let Dyno \
                 do so: --fetch, or `fetch = true` in the study"
            )));
        }
        Image::described(engine, reference, &answer.out).or_keeper(|| {
            let program = engine.program().display();
            format!(
                "{program} describes the image `{reference}` in a way that Dyno does not understand"
            )
        })
    }

    /// By the engine, as the user has configured it.
    pub fn pull_image(&self, reference: &str) -> Result<Image> {
        check(reference)?;
        Tool(self.engine()?.program().to_owned())
            .run(Path::new("/"), ["pull", "--quiet", reference])?;
        self.image(reference)
    }

    /// Those with a name.
    pub fn local_images(&self) -> Result<Vec<LocalImage>> {
        let format = "--format={{.Repository}}:{{.Tag}}\t{{.ID}}\t{{.Size}}";
        Ok(listed(&self.engine()?.ask(&["image", "ls", format])?))
    }

    /// The `paths` that exist, in order; a star is any name. Fails without a shell in the image.
    pub fn paths_in(&self, image: &Image, paths: &[String]) -> Result<Vec<PathBuf>> {
        let words = ["-c", EXISTING, "sh"].into_iter().chain(paths.iter().map(String::as_str));
        let words: Vec<&str> = words.collect();
        let out = self.ask(image.program(Path::new("/bin/sh")), &words)?;
        let mut seen = BTreeSet::new();
        Ok(out.lines().map(PathBuf::from).filter(|path| seen.insert(path.clone())).collect())
    }
}

impl Image {
    pub fn program<'a>(&'a self, path: &'a Path) -> Program<'a> {
        Program { path, image: Some(self) }
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// `sha256:` and hexadecimal digits.
    pub fn id(&self) -> String {
        format!("sha256:{}", self.id)
    }

    pub fn program_folders(&self) -> Vec<PathBuf> {
        std::env::split_paths(&self.path).filter(|folder| folder.is_absolute()).collect()
    }

    pub(super) fn volumes(&self) -> &[String] {
        &self.volumes
    }

    /// The repository counts as builder, the digest as version of the package.
    pub fn origin(&self) -> Origin {
        let by_registry = self.repo_digest.as_deref().and_then(|text| text.split_once('@'));
        let (repository, digest) = by_registry.unwrap_or_else(|| (repository(&self.reference), ""));
        let digest = if digest.is_empty() { self.id() } else { digest.to_owned() };
        Origin {
            source: SOURCE.to_owned(),
            builder: format!("image {repository}"),
            package: Some(self.reference.clone()),
            package_version: Some(digest),
        }
    }

    #[cfg(test)]
    pub(super) fn of_test(engine: Engine, volumes: &[&str]) -> Image {
        Image {
            engine,
            reference: "db:1".to_owned(),
            id: "12ab".to_owned(),
            repo_digest: None,
            volumes: volumes.iter().map(|&one| one.to_owned()).collect(),
            path: USUAL_PATH.to_owned(),
        }
    }

    /// From `image inspect`.
    fn described(engine: &Engine, reference: &str, text: &str) -> Option<Image> {
        let all: Value = serde_json::from_str(text).ok()?;
        let facts = all.get(0)?;
        let id = facts.get("Id")?.as_str()?;
        let id = id.strip_prefix("sha256:").unwrap_or(id).to_owned();
        let config = facts.get("Config");
        let texts = |value: Option<&Value>| -> Vec<String> {
            let all = value.and_then(Value::as_array).into_iter().flatten();
            all.filter_map(|one| one.as_str().map(str::to_owned)).collect()
        };
        let digests = texts(facts.get("RepoDigests"));
        let wanted = repository(reference);
        let is_wanted = |text: &&String| {
            let name = text.split('@').next().unwrap_or_default();
            name == wanted || name.ends_with(&format!("/{wanted}"))
        };
        let volumes = config.and_then(|config| config.get("Volumes")?.as_object());
        let environment = texts(config.and_then(|config| config.get("Env")));
        let path = environment.iter().find_map(|pair| pair.strip_prefix("PATH="));
        Some(Image {
            engine: engine.clone(),
            reference: reference.to_owned(),
            id,
            repo_digest: digests.iter().find(is_wanted).or(digests.first()).cloned(),
            volumes: volumes.map(|all| all.keys().cloned().collect()).unwrap_or_default(),
            path: path.unwrap_or(USUAL_PATH).to_owned(),
        })
    }
}

/// Refuses what an engine would not take as the name of an image.
fn check(reference: &str) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    let is_name = reference.starts_with(|c: char| c.is_ascii_alphanumeric())
        && reference.chars().all(is_plain);
    is_name.then_some(()).or_keeper(|| {
        format!("`{reference}` is not the name of an image; write it as for `podman run`: NAME:TAG")
    })
}

/// Without tag and digest: `docker.io/library/postgres`.
fn repository(reference: &str) -> &str {
    let name = reference.split('@').next().unwrap_or_default();
    match name.rsplit_once(':') {
        // A registry may have a port.
        Some((before, tag)) if !tag.contains('/') => before,
        _ => name,
    }
}

fn listed(text: &str) -> Vec<LocalImage> {
    let image = |line: &str| {
        let mut cells = line.split('\t').map(str::to_owned);
        let (reference, id, size) = (cells.next()?, cells.next()?, cells.next()?);
        (!reference.contains("<none>")).then_some(LocalImage { reference, id, size })
    };
    text.lines().filter_map(image).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::engine::tests::engine;

    #[test]
    fn a_name_is_parted_from_its_tag() {
        let check = |reference: &str, expected: &str| {
            assert_eq!(repository(reference), expected, "{reference}");
        };
        check("postgres:17", "postgres");
        check("docker.io/library/postgres", "docker.io/library/postgres");
        check("localhost:5000/db", "localhost:5000/db");
        check("localhost:5000/db:1.2", "localhost:5000/db");
        check("db@sha256:00", "db");
        check("db:1@sha256:00", "db");
    }

    #[test]
    fn what_an_engine_would_take_for_an_option_is_refused() {
        for good in ["postgres:17", "localhost:5000/a_b/db:1.2-x", "db@sha256:0123"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["", "--privileged", "a b", "a;b", "-v=/:/x", "a$(b)", "/x"] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_image_is_known_by_its_digest() {
        let text = r#"[{"Id": "sha256:12ab", "RepoDigests": ["mirror/pg@sha256:9", "docker.io/library/postgres@sha256:77"],
            "Config": {"Env": ["PATH=/usr/bin:/opt/pg/bin", "PGDATA=/x"], "Volumes": {"/var/lib/postgresql/data": {}}}}]"#;
        let image = Image::described(&engine(), "postgres:17", text).expect("it is one");
        assert_eq!(image.id(), "sha256:12ab");
        assert_eq!(image.volumes(), ["/var/lib/postgresql/data"]);
        assert_eq!(image.program_folders(), [Path::new("/usr/bin"), Path::new("/opt/pg/bin")]);
        let origin = image.origin();
        assert_eq!(origin.builder, "image docker.io/library/postgres");
        assert_eq!(origin.package.as_deref(), Some("postgres:17"));
        assert_eq!(origin.package_version.as_deref(), Some("sha256:77"));
        // Built locally and never pushed.
        let text = r#"[{"Id": "12ab", "RepoDigests": [], "Config": {"Volumes": null}}]"#;
        let image = Image::described(&engine(), "mine:1", text).expect("it is one");
        assert_eq!(image.origin().builder, "image mine");
        assert_eq!(image.origin().package_version.as_deref(), Some("sha256:12ab"));
        assert_eq!(image.program_folders().len(), 6);
        for text in ["", "[]", "{}", "[{}]"] {
            assert_eq!(Image::described(&engine(), "x", text), None, "{text}");
        }
    }

    #[test]
    fn images_without_a_name_are_not_listed() {
        let text = "docker.io/library/postgres:17\tab\t453 MB\n<none>:<none>\tcd\t1 GB\nbroken\n";
        let found = listed(text);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name(), &*found[0].size), ("postgres", "453 MB"));
    }
}
