//! Where a product's programs are: installed on this machine, in a folder that a study names, or fetched into Dyno's own
//! store from the sources of packages that this machine is configured for.

use std::path::{Path, PathBuf};

use dyno_host::{Build, Image, Keeper, Origin, Program};
use dyno_units::{planted_on_way, version_fits, version_numbers};

use crate::error::{Result, fail};
use crate::{BuildFacts, DeployError, ServerSpec};

/// The source of programs that were on the machine before Dyno.
pub const MACHINE: &str = "machine";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The folder with the programs, as `programs` of a study would name it.
    pub programs: PathBuf,
    /// What the server says of its version, without the product's name.
    pub version: String,
    pub origin: Origin,
    /// The build of Dyno's own store that they belong to.
    pub build: Option<String>,
    /// The image that they are in; none if they are on this machine.
    pub image: Option<Image>,
}

impl Installation {
    pub(crate) fn on_machine(programs: PathBuf, version: String, builder: String) -> Installation {
        let origin = Origin { source: MACHINE.to_owned(), builder, ..Origin::default() };
        Installation { programs, version, origin, build: None, image: None }
    }

    pub(crate) fn fetched(build: Build) -> Installation {
        Installation {
            programs: build.programs,
            version: build.version,
            origin: build.origin,
            build: Some(build.name),
            image: None,
        }
    }

    /// Of an image that has this server.
    pub(crate) fn in_image(server: &Path, version: &str, image: &Image) -> Installation {
        let programs = server.parent().unwrap_or(Path::new("/")).to_owned();
        let (origin, image) = (image.origin(), Some(image.clone()));
        Installation { programs, version: version.to_owned(), origin, build: None, image }
    }

    /// What is known of a server of theirs.
    pub(crate) fn facts(&self, configured: Option<String>) -> BuildFacts {
        let (origin, programs) = (self.origin.clone(), self.programs.clone());
        BuildFacts { origin, programs, configured }
    }

    pub(crate) fn program<'a>(&'a self, path: &'a Path) -> Program<'a> {
        Program { path, image: self.image.as_ref() }
    }

    /// The first number of the version.
    pub(crate) fn major(&self) -> u32 {
        version_numbers(&self.version).first().copied().unwrap_or_default()
    }

    fn is_on_machine(&self) -> bool {
        self.build.is_none()
    }
}

/// The installations in these folders, each once, known by one of their programs.
pub(crate) fn on_machine(
    folders: &[PathBuf],
    program: &str,
    version_in: impl Fn(&Path) -> Option<String>,
    builder: impl Fn(&Path, &str) -> String,
) -> Vec<Installation> {
    let mut all: Vec<Installation> = Vec::new();
    for folder in folders {
        // What PATH finds may be a link to another one.
        let target = |folder: &Path| std::fs::canonicalize(folder.join(program)).ok();
        if all.iter().any(|one| target(&one.programs) == target(folder)) {
            continue;
        }
        if let Some(version) = version_in(folder) {
            let builder = builder(folder, &version);
            all.push(Installation::on_machine(folder.clone(), version, builder));
        }
    }
    all
}

/// How the program of a product is found that Dyno cannot fetch.
pub(crate) struct Finder {
    pub(crate) title: &'static str,
    pub(crate) program: &'static str,
    /// Where it is besides PATH.
    pub(crate) places: &'static [&'static str],
    pub(crate) advice: &'static str,
    /// The version of the program in a folder; none if it is not there, or does not tell.
    pub(crate) version: fn(&Path, &Keeper) -> Option<String>,
    pub(crate) builder: fn(&Path, &str) -> String,
}

impl Finder {
    /// The program to start a server with: the one in the folder of the spec, else the best that fits.
    /// Fails if none fits what is asked for.
    pub(crate) fn find(&self, spec: &ServerSpec, keeper: &Keeper) -> Result<Installation> {
        let folders = match named_folder(spec)? {
            Some(folder) => vec![folder.to_owned(), folder.join("bin")],
            None => self.usual_folders(keeper),
        };
        let found = self.in_folders(&folders, keeper);
        if let Some(chosen) = choose(&found, spec) {
            return Ok(chosen.clone());
        }
        let Finder { title, program, advice, .. } = self;
        let here: Vec<&str> = found.iter().map(|one| one.version.as_str()).collect();
        let folders: Vec<String> =
            folders.iter().map(|folder| folder.display().to_string()).collect();
        fail(match here.as_slice() {
            [] => format!(
                "{title}'s program `{program}` is not in {}; {advice} name its folder with `programs`",
                folders.join(", ")
            ),
            here => format!(
                "the requested {title} is not installed on this machine, which has {}; Dyno cannot \
                 fetch it: name the folder of another one with `programs`, or request another version",
                here.join(", ")
            ),
        })
    }

    pub(crate) fn installations(&self, keeper: &Keeper) -> Vec<Installation> {
        self.in_folders(&self.usual_folders(keeper), keeper)
    }

    pub(crate) fn version_in(&self, folder: &Path, keeper: &Keeper) -> Result<String> {
        (self.version)(folder, keeper).ok_or_else(|| {
            DeployError::new(format!(
                "there is no program `{}` in {} that reports its version",
                self.program,
                folder.display()
            ))
        })
    }

    fn usual_folders(&self, keeper: &Keeper) -> Vec<PathBuf> {
        let in_path = keeper.find_program(self.program, &[]);
        let in_path = in_path.as_deref().and_then(Path::parent).map(Path::to_owned);
        in_path.into_iter().chain(self.places.iter().map(PathBuf::from)).collect()
    }

    fn in_folders(&self, folders: &[PathBuf], keeper: &Keeper) -> Vec<Installation> {
        on_machine(folders, self.program, |folder| (self.version)(folder, keeper), self.builder)
    }
}

/// The folder that was named for the programs. Fails if another user has put it, or something into it, where everybody
/// may.
pub(crate) fn named_folder(spec: &ServerSpec) -> Result<Option<&Path>> {
    let Some(folder) = spec.programs.as_deref() else { return Ok(None) };
    let me = rustix::process::geteuid().as_raw();
    let inner = ["", "bin", "sbin"].map(|name| folder.join(name));
    let inside = inner.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let inside = inside.flatten().map(|entry| entry.path());
    let planted = std::iter::once(folder.to_owned())
        .chain(inside)
        .find_map(|path| planted_on_way(&path, me).ok().flatten());
    match planted {
        None => Ok(Some(folder)),
        Some((found, user)) => fail(format!(
            "the programs in {} are not run: {} belongs to user {user} and lies in a folder that everybody may write \
             to, so that this user decides what is in it; copy them to a folder of your own",
            folder.display(),
            found.display()
        )),
    }
}

/// The machine's newest, else the newest fetched, so that fetching changes no earlier study.
pub(crate) fn choose<'a>(found: &'a [Installation], spec: &ServerSpec) -> Option<&'a Installation> {
    let fits = |one: &&Installation| {
        spec.version.as_deref().is_none_or(|wanted| version_fits(&one.version, wanted))
            && spec.from.as_deref().is_none_or(|from| one.origin.source == from)
    };
    let candidates = found.iter().rev().filter(fits);
    candidates.max_by_key(|one| (one.is_on_machine(), version_numbers(&one.version)))
}

pub(crate) fn missing(
    (product, title): (&str, &str),
    found: &[Installation],
    spec: &ServerSpec,
    no_programs: &str,
) -> DeployError {
    let wanted = spec.version.as_deref();
    let at = wanted.map(|version| format!("@{version}")).unwrap_or_default();
    let from = spec.from.as_deref().filter(|from| *from != MACHINE);
    let option = from.map(|from| format!(" --from {from}")).unwrap_or_default();
    let fetch = format!("`dyno products fetch {product}{at}{option}`");
    if found.is_empty() {
        return DeployError::new(format!("{no_programs}; or fetch it: {fetch}"));
    }
    let here: Vec<String> = found.iter().map(in_words).collect();
    let of = spec.from.as_deref().map(|from| format!(" from {from}")).unwrap_or_default();
    let wanted = wanted.map(|version| format!(" {version}")).unwrap_or_default();
    DeployError::new(format!(
        "{title}{wanted}{of} is not installed or fetched on this machine; found: {}. Fetch it with {fetch} \
         (or with --fetch), name the folder of its programs (`programs` in a study, else \
         --programs), or request another version",
        here.join(", ")
    ))
}

pub(crate) fn missing_in_image(
    title: &str,
    program: &str,
    image: &Image,
    found: &[Installation],
    spec: &ServerSpec,
) -> DeployError {
    let reference = image.reference();
    let versions: Vec<&str> =
        found.iter().filter_map(|one| one.version.split_whitespace().next()).collect();
    DeployError::new(match (versions.as_slice(), &spec.version) {
        ([], _) | (_, None) => {
            format!("the image {reference} has no {title} server: there is no `{program}` in it")
        }
        (versions, Some(wanted)) => format!(
            "the image {reference} has {title} {}, not {wanted}; use another image, or leave `version` out",
            versions.join(", ")
        ),
    })
}

/// `17.2 (maven)`, `15.14 (installed)`.
fn in_words(one: &Installation) -> String {
    let version = one.version.split_whitespace().next().unwrap_or_default();
    let source = if one.is_on_machine() { "installed" } else { &one.origin.source };
    format!("{version} ({source})")
}

/// Who built a server, by what it says of its version or of its build: distributions add their name.
pub(crate) fn builder_in(text: &str) -> String {
    let known = ["Debian", "Ubuntu", "Percona", "Red Hat", "SUSE", "mariadb.org", "Homebrew"];
    let found = known.iter().find(|name| text.to_lowercase().contains(&name.to_lowercase()));
    let name = found.copied().unwrap_or_default();
    // An installed package is one of the machine's own release.
    let release =
        dyno_host::distribution().filter(|release| release.split(' ').next() == Some(name));
    release.unwrap_or_else(|| name.to_owned())
}

/// The folder above the programs, if `folder` is one that is called `bin` or `sbin`.
pub(crate) fn base_of(folder: &Path) -> &Path {
    match folder.file_name().and_then(|name| name.to_str()) {
        Some("bin" | "sbin") => folder.parent().unwrap_or(folder),
        _ => folder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(version: &str, source: &str) -> Installation {
        let origin = Origin { source: source.to_owned(), ..Origin::default() };
        let build = (source != MACHINE).then(|| format!("db-{source}-{version}"));
        Installation {
            programs: version.into(),
            version: version.to_owned(),
            origin,
            build,
            image: None,
        }
    }

    fn spec(version: Option<&str>, from: Option<&str>) -> ServerSpec {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        ServerSpec { version: owned(version), from: owned(from), ..ServerSpec::new("db") }
    }

    #[test]
    fn programs_that_another_user_has_put_where_everybody_may_are_not_run() {
        use std::os::unix::fs::{PermissionsExt, chown};
        let shared = tempfile::tempdir().unwrap();
        std::fs::set_permissions(shared.path(), PermissionsExt::from_mode(0o1777)).unwrap();
        let theirs = shared.path().join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        let check = |folder: &Path, is_refused: bool| {
            let spec = ServerSpec { programs: Some(folder.to_owned()), ..ServerSpec::new("db") };
            let found = named_folder(&spec).map_err(|error| error.message);
            match is_refused {
                false => assert_eq!(found, Ok(Some(folder))),
                true => assert!(found.unwrap_err().contains("belongs to user 54321")),
            }
        };
        check(&theirs, false);
        check(shared.path(), false);
        if rustix::process::geteuid().is_root() {
            chown(&theirs, Some(54_321), None).unwrap();
            check(&theirs, true);
            check(shared.path(), true);
        }
    }

    #[test]
    fn the_newest_that_fits_is_chosen() {
        let found = [
            one("9.6.24", MACHINE),
            one("15.14 (Debian 15.14-0)", MACHINE),
            one("15.15", "debian"),
            one("16.2", "python"),
            one("16.10", "maven"),
            one("17beta1", "maven"),
        ];
        let check = |version: Option<&str>, from: Option<&str>, expected: Option<(&str, &str)>| {
            let chosen = choose(&found, &spec(version, from));
            let chosen = chosen.map(|one| (&*one.version, &*one.origin.source));
            assert_eq!(chosen, expected, "{version:?} {from:?}");
        };
        // What was fetched is not taken unasked.
        check(None, None, Some(("15.14 (Debian 15.14-0)", MACHINE)));
        check(Some("16"), None, Some(("16.10", "maven")));
        check(Some("16"), Some("python"), Some(("16.2", "python")));
        check(Some("16"), Some(MACHINE), None);
        check(None, Some("maven"), Some(("17beta1", "maven")));
        check(Some("15.1"), None, None);
        check(Some("15"), None, Some(("15.14 (Debian 15.14-0)", MACHINE)));
        check(Some("15"), Some("debian"), Some(("15.15", "debian")));
        check(Some("15.15"), None, Some(("15.15", "debian")));
        check(Some("1"), None, None);
        assert_eq!(choose(&[], &spec(None, None)), None);
        // Without anything else they are.
        let fetched = [one("16.2", "python"), one("16.10", "maven")];
        assert_eq!(choose(&fetched, &spec(None, None)), Some(&fetched[1]));
    }

    #[test]
    fn what_is_missing_is_said_with_what_to_run() {
        let found = [one("15.14 (Debian 15.14-0)", MACHINE), one("16.2", "python")];
        let text = |found: &[Installation], version, from| {
            missing(("db", "Db"), found, &spec(version, from), "Db is not here").message
        };
        assert_eq!(
            text(&found, Some("17"), Some("maven")),
            "Db 17 from maven is not installed or fetched on this machine; found: 15.14 (installed), 16.2 \
             (python). Fetch it with `dyno products fetch db@17 --from maven` (or with --fetch), name the \
             folder of its programs (`programs` in a study, else --programs), or request another \
             version"
        );
        assert_eq!(text(&[], None, None), "Db is not here; or fetch it: `dyno products fetch db`");
    }

    #[test]
    fn builders_put_their_names_into_versions() {
        let check = |text: &str, expected: &str| assert_eq!(builder_in(text), expected, "{text}");
        check("mariadb.org binary distribution", "mariadb.org");
        check("10.11.19-MariaDB-ubu2204 Ubuntu 22.04", "Ubuntu");
        check("17.2", "");
        assert!(builder_in("15.14 (Debian 15.14-0+deb12u1)").starts_with("Debian"));
    }
}
