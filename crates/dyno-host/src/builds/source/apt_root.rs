//! A separate apt: the machine's sources and keys, but its own state, cache, log and empty list of
//! packages. The machine's are neither read nor changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::super::tool::Tool;
use super::{Job, LISTS};
use crate::kernel_text::value;
use crate::{Keeper, KeeperError, OrKeeper, Result};

const LISTS_AGE: Duration = Duration::from_secs(24 * 3600);

/// Suites that may have other versions than the machine's, in order.
const SUITES: &[(&str, &[&str])] = &[
    ("debian", &["bullseye", "bookworm", "trixie", "forky", "sid"]),
    ("ubuntu", &["focal", "jammy", "noble", "plucky", "questing"]),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Release {
    id: String,
    pub(super) title: String,
    pub(super) suite: String,
}

impl Release {
    /// This machine's, if packages of its other suites can be unpacked.
    pub(super) fn of_machine() -> Option<Release> {
        Release::parse(&fs::read_to_string("/etc/os-release").ok()?)
    }

    fn parse(text: &str) -> Option<Release> {
        let value = |name: &str| Some(value(text, name, '=')?.trim().trim_matches('"').to_owned());
        let (id, suite) = (value("ID")?, value("VERSION_CODENAME")?);
        let (known, _) = SUITES.iter().find(|(known, _)| *known == id)?;
        let title = known[..1].to_uppercase() + &known[1..];
        Some(Release { id, title, suite })
    }

    /// The machine's first.
    pub(super) fn suites(&self) -> Vec<&str> {
        let all = SUITES.iter().filter(|(id, _)| *id == self.id).flat_map(|(_, suites)| *suites);
        let others = all.copied().filter(|suite| *suite != self.suite);
        std::iter::once(self.suite.as_str()).chain(others).collect()
    }
}

/// For one suite, with its lists read.
pub(super) struct AptRoot {
    folder: PathBuf,
    get: Tool,
    cache: Tool,
}

impl AptRoot {
    /// Made if missing; reads the lists if they are old.
    pub(super) fn open(job: &Job<'_>, own: &str, suite: &str) -> Result<AptRoot> {
        let folder = job.store.join(LISTS).join(suite);
        let root = AptRoot {
            get: Tool::find(job.keeper, "apt-get", "apt")?,
            cache: Tool::find(job.keeper, "apt-cache", "apt")?,
            folder,
        };
        let stamp = root.folder.join("read");
        let now = UNIX_EPOCH + Duration::from_millis(job.order.now_unix_ms);
        let read = fs::metadata(&stamp).and_then(|facts| facts.modified()).ok();
        if read.is_some_and(|read| now.duration_since(read).unwrap_or_default() < LISTS_AGE) {
            return Ok(root);
        }
        root.make(&suite_sources(&machine_sources(), own, suite))?;
        (job.order.say)(&format!("reading the package lists of {suite}"));
        root.get.run(&root.folder, root.arguments(&["update"]))?;
        fs::write(&stamp, "").or_path(&stamp, "cannot be written")?;
        Ok(root)
    }

    fn make(&self, sources: &str) -> Result<()> {
        if sources.is_empty() {
            let why = "the machine's apt has no source for its own distribution, so there is \
                 nowhere to take packages from";
            return Err(KeeperError(why.into()));
        }
        let folders = ["state/lists/partial", "cache/archives/partial", "log", "sources", "empty"];
        let made = folders.iter().try_for_each(|one| fs::create_dir_all(self.folder.join(one)));
        made.and_then(|()| fs::write(self.folder.join("state/status"), ""))
            .and_then(|()| fs::write(self.folder.join("sources/dyno.sources"), sources))
            .or_path(&self.folder, "cannot be created")
    }

    pub(super) fn version(&self, package: &str) -> Option<String> {
        let arguments = self.arguments(&["show", "--no-all-versions", package]);
        let shown = self.cache.run(&self.folder, arguments).ok()?;
        let version = shown.lines().find_map(|line| line.strip_prefix("Version: "))?;
        Some(version.to_owned())
    }

    /// With all that they need, each with its version.
    pub(super) fn closure(&self, packages: &[String]) -> Result<Vec<(String, String)>> {
        let mut arguments = self.arguments(&["--simulate", "--no-install-recommends", "install"]);
        arguments.extend(packages.iter().cloned());
        Ok(installed(&self.get.run(&self.folder, arguments)?))
    }

    /// Apt compares digests with those of the signed lists.
    pub(super) fn download(&self, packages: &[(String, String)], to: &Path) -> Result<()> {
        let mut arguments = self.arguments(&["download"]);
        arguments.extend(packages.iter().map(|(name, version)| format!("{name}={version}")));
        self.get.run(to, arguments).map(drop)
    }

    fn arguments(&self, rest: &[&str]) -> Vec<String> {
        let path = |name: &str| self.folder.join(name).display().to_string();
        let options = [
            ("Dir::State", path("state")),
            ("Dir::State::Lists", path("state/lists")),
            ("Dir::State::status", path("state/status")),
            ("Dir::State::extended_states", path("state/extended_states")),
            ("Dir::Cache", path("cache")),
            ("Dir::Cache::pkgcache", "pkgcache.bin".to_owned()),
            ("Dir::Cache::srcpkgcache", "srcpkgcache.bin".to_owned()),
            ("Dir::Log", path("log")),
            ("Dir::Etc::sourcelist", path("none")),
            ("Dir::Etc::sourceparts", path("sources")),
            ("Dir::Etc::preferences", path("none")),
            ("Dir::Etc::preferencesparts", path("empty")),
            ("Acquire::Languages", "none".to_owned()),
            // The machine's hooks are for its own packages.
            ("APT::Update::Pre-Invoke", String::new()),
            ("APT::Update::Post-Invoke", String::new()),
            ("APT::Update::Post-Invoke-Success", String::new()),
            // Apt's user cannot write in Dyno's folder.
            ("APT::Sandbox::User", "root".to_owned()),
        ];
        let options =
            options.iter().flat_map(|(name, value)| ["-o".to_owned(), format!("{name}={value}")]);
        let rest = rest.iter().map(|&word| word.to_owned());
        std::iter::once("-q".to_owned()).chain(options).chain(rest).collect()
    }
}

/// `Inst name (version origin [architecture])`, of each package.
fn installed(simulated: &str) -> Vec<(String, String)> {
    let packages = simulated.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("Inst ")?.split_once(' ')?;
        let version = rest.split_once('(')?.1.split([' ', ')']).next()?;
        Some((name.to_owned(), version.to_owned()))
    });
    packages.collect()
}

/// Of all apt source files, each with whether it has lines or stanzas.
fn machine_sources() -> Vec<(bool, String)> {
    let parts = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = parts.map(|entry| entry.path()).collect();
    paths.sort();
    paths.insert(0, PathBuf::from("/etc/apt/sources.list"));
    let text = |path: PathBuf| {
        let has_lines = match path.extension()?.to_str()? {
            "list" => true,
            "sources" => false,
            _ => return None,
        };
        Some((has_lines, fs::read_to_string(path).ok()?))
    };
    paths.into_iter().filter_map(text).collect()
}

/// The machine's sources of its own suite, renamed to `suite`; updates only for its own suite.
fn suite_sources(texts: &[(bool, String)], own: &str, suite: &str) -> String {
    let mut out = String::new();
    for (has_lines, text) in texts {
        let stanzas = if *has_lines { stanzas_of_lines(text) } else { stanzas(text) };
        for stanza in stanzas {
            let value = |key: &str| stanza.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
            if value("Enabled") == Some("no")
                || !value("Types").is_some_and(|types| types.split(' ').any(|t| t == "deb"))
            {
                continue;
            }
            let named = value("Suites").unwrap_or_default().split(' ');
            let is_of_own = |name: &&str| {
                *name == own || (suite == own && name.starts_with(&format!("{own}-")))
            };
            let suites: Vec<String> =
                named.filter(is_of_own).map(|name| name.replacen(own, suite, 1)).collect();
            if suites.is_empty() {
                continue;
            }
            for (key, value) in &stanza {
                let value = match key.as_str() {
                    "Types" => "deb".to_owned(),
                    "Suites" => suites.join(" "),
                    _ => value.clone(),
                };
                out.push_str(&format!("{key}: {value}\n"));
            }
            out.push('\n');
        }
    }
    out
}

type Stanza = Vec<(String, String)>;

/// `Key: value`; a line that begins with a blank continues the value.
fn stanzas(text: &str) -> Vec<Stanza> {
    let mut all: Vec<Stanza> = vec![Vec::new()];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let last = all.len() - 1;
        if line.trim().is_empty() {
            all.push(Vec::new());
        } else if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = all[last].last_mut() {
                value.push_str("\n ");
                value.push_str(line.trim());
            }
        } else if let Some((key, value)) = line.split_once(':') {
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            all[last].push((key.trim().to_owned(), value));
        }
    }
    all.retain(|stanza| !stanza.is_empty());
    all
}

/// `deb [signed-by=KEY] URI SUITE COMPONENT…`
fn stanzas_of_lines(text: &str) -> Vec<Stanza> {
    let stanza = |line: &str| {
        let rest = line.trim().strip_prefix("deb ")?.trim();
        let (options, rest) = match rest.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => ("", rest),
        };
        let mut words = rest.split_whitespace();
        let (uri, suite) = (words.next()?, words.next()?);
        let components = words.collect::<Vec<_>>().join(" ");
        let mut stanza = vec![
            ("Types".to_owned(), "deb".to_owned()),
            ("URIs".to_owned(), uri.to_owned()),
            ("Suites".to_owned(), suite.to_owned()),
            ("Components".to_owned(), components),
        ];
        for (name, value) in options.split_whitespace().filter_map(|one| one.split_once('=')) {
            let name = match name {
                "signed-by" => "Signed-By",
                "arch" => "Architectures",
                _ => continue,
            };
            stanza.push((name.to_owned(), value.replace(',', " ")));
        }
        Some(stanza)
    };
    text.lines().filter_map(stanza).collect()
}

pub(super) fn problem(keeper: &Keeper) -> Option<String> {
    let tools = ["apt-get", "apt-cache", "dpkg-deb"];
    if let Some(missing) = tools.iter().find(|name| keeper.find_program(name, &[]).is_none()) {
        return Some(format!("the program `{missing}` is missing"));
    }
    let unknown = || "this machine's distribution is neither Debian nor Ubuntu".to_owned();
    Release::of_machine().is_none().then(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_that_of_the_machine() {
        let release = Release::parse("ID=debian\nVERSION_CODENAME=\"bookworm\"\n").expect("known");
        assert_eq!((release.title.as_str(), release.suite.as_str()), ("Debian", "bookworm"));
        assert_eq!(release.suites()[..2], ["bookworm", "bullseye"]);
        assert_eq!(release.suites().len(), 5);
        assert_eq!(Release::parse("ID=fedora\nVERSION_CODENAME=x\n"), None);
    }

    #[test]
    fn another_suite_comes_from_the_machines_own_sources() {
        let stanzas = "# a comment\nTypes: deb deb-src\nURIs: http://mirror/debian\nSuites: bookworm \
                       bookworm-updates\nComponents: main\nSigned-By: /k.gpg\n\nTypes: deb\nURIs: \
                       http://mirror/security\nSuites: bookworm-security\nComponents: main\n\n\
                       Types: deb\nURIs: http://else\nSuites: nodistro\nComponents: main\n";
        let lines = "deb-src http://x bookworm main\ndeb [arch=amd64 signed-by=/o.gpg] http://o \
                     bookworm main contrib\n";
        let texts = [(false, stanzas.to_owned()), (true, lines.to_owned())];
        let check = |suite: &str, expected: &str| {
            assert_eq!(suite_sources(&texts, "bookworm", suite), expected);
        };
        check(
            "trixie",
            "Types: deb\nURIs: http://mirror/debian\nSuites: trixie\nComponents: main\nSigned-By: \
             /k.gpg\n\nTypes: deb\nURIs: http://o\nSuites: trixie\nComponents: main \
             contrib\nArchitectures: amd64\nSigned-By: /o.gpg\n\n",
        );
        let own = suite_sources(&texts, "bookworm", "bookworm");
        assert!(own.contains("Suites: bookworm bookworm-updates\n"), "{own}");
        assert!(own.contains("Suites: bookworm-security\n") && !own.contains("nodistro"), "{own}");
        assert_eq!(suite_sources(&[], "bookworm", "sid"), "");
    }

    #[test]
    fn what_would_be_installed_is_read() {
        let text = "Reading…\nInst libc6 (2.41-12+deb13u4 Debian:13.7/stable [amd64]) []\nInst p \
                    [1] (1:2 Debian:13 [all])\nConf libc6 (2.41 x)\n";
        let expected = [("libc6", "2.41-12+deb13u4"), ("p", "1:2")];
        let found = installed(text);
        let found: Vec<(&str, &str)> = found.iter().map(|(n, v)| (&**n, &**v)).collect();
        assert_eq!(found, expected);
    }
}
