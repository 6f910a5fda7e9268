//! Finds the programs of MariaDB and MySQL, and their files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use dyno_host::{Image, Keeper, Origin, Program};

use crate::error::{Result, fail};
use crate::installation::{base_of, builder_in, choose, missing, missing_in_image, named_folder};
use crate::{DeployError, Installation, ServerSpec};

/// Where programs are, below the folder of an installation.
const PROGRAM_FOLDERS: [&str; 7] = ["", "bin", "sbin", "libexec", "scripts", "usr/sbin", "usr/bin"];

const INSTALL_PROGRAMS: &[&str] = &["mariadb-install-db", "mysql_install_db"];

/// Where messages and character sets are, below the base, and a file that is surely there.
const SHARES: [&str; 3] = ["share/mysql", "share/mariadb", "share"];
const SHARE_PROOF: &str = "english/errmsg.sys";

/// Where plug-ins are, below the base.
const PLUGINS: [&str; 3] = ["lib/mysql/plugin", "lib/mariadb/plugin", "lib/plugin"];

/// Where programs may be in an image whose PATH does not lead to them.
const IMAGE_PLACES: [&str; 3] =
    ["/usr/libexec", "/usr/local/mysql/bin", "/usr/local/mysql/scripts"];

/// Where the programs of a server are that was unpacked as in its manual.
const TARBALL_PROGRAMS: &str = "/usr/local/mysql/bin";

/// One of the two products, whose programs may have the same names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Brand {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// Names of its server, the preferred one first.
    servers: &'static [&'static str],
    package: &'static str,
}

pub(super) const MARIADB: Brand = Brand {
    name: "mariadb",
    title: "MariaDB",
    servers: &["mariadbd", "mysqld"],
    package: "mariadb-server",
};

pub(super) const MYSQL: Brand =
    Brand { name: "mysql", title: "MySQL", servers: &["mysqld"], package: "mysql-server" };

impl Brand {
    pub(super) fn of(spec: &ServerSpec) -> &'static Brand {
        if spec.product == MYSQL.name { &MYSQL } else { &MARIADB }
    }

    fn is(&self, version: &str) -> bool {
        version.contains("MariaDB") == (*self == MARIADB)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Install {
    pub(super) server: PathBuf,
    /// MariaDB's program that makes the system tables; MySQL's server does that by itself.
    pub(super) install_db: Option<PathBuf>,
    /// The folder that holds `bin`, `share` and `lib`.
    pub(super) base: PathBuf,
    /// The folder with messages and character sets, if it is found.
    pub(super) share: Option<PathBuf>,
    pub(super) plugins: Option<PathBuf>,
    pub(super) version: String,
    pub(super) origin: Origin,
    /// The image that they are in; none if they are on this machine.
    pub(super) image: Option<Image>,
}

impl Install {
    pub(super) fn program<'a>(&'a self, path: &'a Path) -> Program<'a> {
        Program { path, image: self.image.as_ref() }
    }

    pub(super) fn is_mariadb(&self) -> bool {
        self.install_db.is_some()
    }
}

pub(super) fn find_install(spec: &ServerSpec, keeper: &Keeper) -> Result<Install> {
    let brand = Brand::of(spec);
    if let Some(image) = &spec.image {
        return in_image(brand, keeper.image(image)?, spec, keeper);
    }
    let found = match named_folder(spec)? {
        // A folder that was named is the only one: a server from elsewhere would be another one.
        Some(folder) => vec![in_folder(brand, folder, keeper)?],
        None => installations(brand, keeper),
    };
    let Some(chosen) = choose(&found, spec) else {
        let no_programs = format!(
            "there is no {} server: `{}` is neither on the PATH nor in the usual places; install it \
             (Debian, Ubuntu: package `{}`) or name the folder of its programs",
            brand.title, brand.servers[0], brand.package
        );
        return Err(missing((brand.name, brand.title), &found, spec, &no_programs));
    };
    let server =
        server_in(brand, &chosen.programs).ok_or_else(|| not_in(brand, &chosen.programs))?;
    let install_db = install_db(brand, &chosen.programs, keeper);
    if install_db.is_none() && *brand == MARIADB {
        return fail(format!(
            "{} is installed, but `mariadb-install-db`, which creates its system tables, is not; \
             install the complete server (Debian, Ubuntu: package `mariadb-server`)",
            server.display()
        ));
    }
    let (version, origin) = (chosen.version.clone(), chosen.origin.clone());
    Ok(Install { install_db, version, origin, ..install_at(server, &|path| path.exists()) })
}

fn in_image(brand: &Brand, image: Image, spec: &ServerSpec, keeper: &Keeper) -> Result<Install> {
    let mut folders = image.program_folders();
    folders.extend(IMAGE_PLACES.map(PathBuf::from));
    let names = brand.servers.iter().chain(INSTALL_PROGRAMS);
    let programs = names.flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let bases: BTreeSet<&Path> = folders.iter().filter_map(|folder| folder.parent()).collect();
    let files = bases.iter().flat_map(|base| {
        let shares = SHARES.iter().map(|share| base.join(share).join(SHARE_PROOF));
        shares.chain(PLUGINS.iter().map(|plugins| base.join(plugins)))
    });
    let all: Vec<String> = programs.chain(files).map(|path| path.display().to_string()).collect();
    let there = keeper.paths_in(&image, &all)?;
    let named = |names: &[&str]| {
        let is_one = |path: &&PathBuf| {
            path.file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| names.contains(&name))
        };
        there.iter().find(is_one).cloned()
    };
    let mut found = Vec::new();
    let Some(server) = named(brand.servers) else {
        return Err(missing_in_image(brand.title, brand.servers[0], &image, &found, spec));
    };
    let version = version_of(image.program(&server), keeper)?;
    if !brand.is(&version) {
        return Err(another(brand, image.reference(), &version));
    }
    found.push(Installation::in_image(&server, &version, &image));
    if choose(&found, spec).is_none() {
        return Err(missing_in_image(brand.title, brand.servers[0], &image, &found, spec));
    }
    let install_db = named(INSTALL_PROGRAMS).filter(|_| *brand == MARIADB);
    if install_db.is_none() && *brand == MARIADB {
        return fail(format!(
            "the image {} has no `mariadb-install-db`, which makes the system tables; use another image",
            image.reference()
        ));
    }
    let at = install_at(server, &|path| there.iter().any(|found| found == path));
    Ok(Install { install_db, version, origin: image.origin(), image: Some(image), ..at })
}

pub(super) fn installations(brand: &Brand, keeper: &Keeper) -> Vec<Installation> {
    let mut all: Vec<Installation> = Vec::new();
    let in_path = brand.servers.iter().filter_map(|name| keeper.find_program(name, &[]));
    let unpacked = brand.servers.iter().map(|name| Path::new(TARBALL_PROGRAMS).join(name));
    for server in in_path.chain(unpacked) {
        let folder = server.parent().unwrap_or(Path::new("/"));
        let base = base_of(folder);
        // Another layout than the usual one: then the folder with the server is named.
        let is_same = |found: &PathBuf| {
            std::fs::canonicalize(found).ok() == std::fs::canonicalize(&server).ok()
        };
        let base = if server_in(brand, base).as_ref().is_some_and(is_same) { base } else { folder };
        // One server may have two names.
        let is_known =
            |one: &Installation| server_in(brand, &one.programs).as_ref().is_some_and(is_same);
        if all.iter().any(is_known) {
            continue;
        }
        if let Ok(one) = in_folder(brand, base, keeper) {
            all.push(one);
        }
    }
    all.extend(keeper.builds(brand.name).into_iter().map(Installation::fetched));
    all
}

pub(super) fn version_in(brand: &Brand, folder: &Path, keeper: &Keeper) -> Result<String> {
    let server = server_in(brand, folder).ok_or_else(|| not_in(brand, folder))?;
    let version = version_of((&server).into(), keeper)?;
    if brand.is(&version) {
        return Ok(version);
    }
    Err(another(brand, &server.display().to_string(), &version))
}

fn another(brand: &Brand, at: &str, version: &str) -> DeployError {
    let other = if *brand == MARIADB { "MySQL" } else { "MariaDB" };
    DeployError::new(format!("{at} is {other}, not {}: it is version {version}", brand.title))
}

fn in_folder(brand: &Brand, folder: &Path, keeper: &Keeper) -> Result<Installation> {
    let version = version_in(brand, folder, keeper)?;
    let builder = builder_in(&version);
    Ok(Installation::on_machine(folder.to_owned(), version, builder))
}

fn not_in(brand: &Brand, folder: &Path) -> DeployError {
    DeployError::new(format!(
        "there is no {} server: `{}` is neither in {} nor in its bin and sbin folders; install it \
         (Debian, Ubuntu: package `{}`) or name the folder of its programs",
        brand.title,
        brand.servers[0],
        folder.display(),
        brand.package
    ))
}

fn program_in(folder: &Path, names: &[&str]) -> Option<PathBuf> {
    let all = names
        .iter()
        .flat_map(|name| PROGRAM_FOLDERS.iter().map(move |inner| folder.join(inner).join(name)));
    all.into_iter().find(|program| program.is_file())
}

fn server_in(brand: &Brand, folder: &Path) -> Option<PathBuf> {
    program_in(folder, brand.servers)
}

fn install_db(brand: &Brand, folder: &Path, keeper: &Keeper) -> Option<PathBuf> {
    if *brand == MYSQL {
        return None;
    }
    let names = INSTALL_PROGRAMS;
    // Some distributions put it elsewhere than the server.
    let is_usual = ["/usr", "/usr/local"].map(Path::new).contains(&folder);
    let elsewhere =
        || names.iter().filter(|_| is_usual).find_map(|name| keeper.find_program(name, &[]));
    program_in(folder, names).or_else(elsewhere)
}

fn install_at(server: PathBuf, exists: &dyn Fn(&Path) -> bool) -> Install {
    // The program may be a link into the true folder; its own place still says the layout.
    let base = server.parent().and_then(Path::parent).unwrap_or(Path::new("/")).to_owned();
    let first = |names: &[&str], proof: &str| {
        let proved = |folder: &PathBuf| match proof {
            "" => exists(folder),
            proof => exists(&folder.join(proof)),
        };
        names.iter().map(|name| base.join(name)).find(proved)
    };
    let share = first(&SHARES, SHARE_PROOF);
    let plugins = first(&PLUGINS, "");
    Install {
        server,
        install_db: None,
        base,
        share,
        plugins,
        version: String::new(),
        origin: Origin::default(),
        image: None,
    }
}

/// The version that the program reports: `10.11.6-MariaDB for Linux on x86_64 (…)`.
fn version_of(server: Program<'_>, keeper: &Keeper) -> Result<String> {
    let text = keeper.ask(server, &["--no-defaults", "--version"])?;
    match text.split_once("Ver ") {
        Some((_, version)) => Ok(version.to_owned()),
        None => fail(format!(
            "{} does not report its version: it prints `{text}`",
            server.path.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A keeper, and a folder that servers can reach, with a program in it for each name and version.
    fn world(programs: &[(&str, &str)]) -> (tempfile::TempDir, Keeper) {
        let root = tempfile::tempdir().unwrap();
        let open = |path: &Path| {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        open(root.path());
        for (name, version) in programs {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, format!("#!/bin/sh\necho 'x  Ver {version}'\n")).unwrap();
            open(&path);
        }
        let keeper = Keeper::new(&root.path().join("servers")).unwrap();
        (root, keeper)
    }

    fn spec(product: &str, folder: &Path) -> ServerSpec {
        ServerSpec { programs: Some(folder.to_owned()), ..ServerSpec::new(product) }
    }

    #[test]
    fn folders_are_found_by_what_is_in_them() {
        let base = tempfile::tempdir().unwrap();
        let make = |name: &str| fs::create_dir_all(base.path().join(name)).unwrap();
        make("share/english");
        make("lib/plugin");
        fs::write(base.path().join("share/english/errmsg.sys"), "").unwrap();
        let install = install_at(base.path().join("bin/mariadbd"), &|path| path.exists());
        assert_eq!(install.base, base.path());
        assert_eq!(install.share, Some(base.path().join("share")));
        assert_eq!(install.plugins, Some(base.path().join("lib/plugin")));
    }

    #[test]
    fn a_folder_that_was_named_is_the_only_one() {
        let (root, keeper) = world(&[("bin/mysqld", "9.7.0 for Linux on x86_64")]);
        let missing = find_install(&spec("mariadb", &root.path().join("no/such")), &keeper);
        let error = missing.unwrap_err().message;
        assert!(error.contains("no/such") && error.contains("mariadb-server"), "{error}");
        let install = find_install(&spec("mysql", root.path()), &keeper).unwrap();
        assert_eq!(install.server, root.path().join("bin/mysqld"));
        assert!(!install.is_mariadb());
        assert_eq!(install.version, "9.7.0 for Linux on x86_64");
        let error = find_install(&spec("mariadb", root.path()), &keeper).unwrap_err().message;
        assert!(error.contains("bin/mysqld is MySQL, not MariaDB"), "{error}");
    }

    #[test]
    fn mariadb_needs_the_program_that_makes_system_tables() {
        let server = ("bin/mariadbd", "11.4.5-MariaDB for Linux on x86_64");
        let (root, keeper) = world(&[server]);
        let error = find_install(&spec("mariadb", root.path()), &keeper).unwrap_err().message;
        assert!(error.contains("`mariadb-install-db`"), "{error}");
        let (root, keeper) = world(&[server, ("scripts/mariadb-install-db", "")]);
        let install = find_install(&spec("mariadb", root.path()), &keeper).unwrap();
        assert_eq!(install.install_db, Some(root.path().join("scripts/mariadb-install-db")));
        let wrong = ServerSpec { version: Some("10.6".to_owned()), ..spec("mariadb", root.path()) };
        let error = find_install(&wrong, &keeper).unwrap_err().message;
        assert!(
            error.contains(
                "MariaDB 10.6 is not installed or fetched on this machine; found: 11.4.5-MariaDB"
            ),
            "{error}"
        );
        assert!(error.contains("`dyno products fetch mariadb@10.6`"), "{error}");
    }
}
