//! `cargo xtask package`: a Debian package with manual pages, completions, documentation and
//! studies.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::shell::{output, succeed};

struct Package {
    version: String,
    architecture: String,
    root: PathBuf,
}

pub(crate) fn run() -> anyhow::Result<()> {
    let words = "build --profile dist --locked --package dyno --features man";
    succeed(Command::new("cargo").args(words.split(' ')))?;
    let target = PathBuf::from(std::env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into()));
    let program = target.join("dist/dyno");
    let package = Package {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        architecture: output(Command::new("dpkg").arg("--print-architecture"))?,
        root: target.join("debian/dyno"),
    };
    if package.root.exists() {
        std::fs::remove_dir_all(&package.root)?;
    }
    package.fill(&program)?;
    let depends = needed_libraries(&program, &target.join("debian/shlibs"))?;
    package.write("DEBIAN/control", &package.control(&depends))?;
    let file = target.join("debian").join(package.file_name());
    succeed(
        Command::new("dpkg-deb")
            .args(["--build", "--root-owner-group"])
            .arg(&package.root)
            .arg(&file),
    )?;
    crate::shell::say(&format!("{}", file.display()));
    Ok(())
}

impl Package {
    fn file_name(&self) -> String {
        format!("dyno_{}_{}.deb", self.version, self.architecture)
    }

    fn fill(&self, program: &Path) -> anyhow::Result<()> {
        let installed = self.root.join("usr/bin/dyno");
        copy(program, &installed)?;
        succeed(Command::new("strip").arg(&installed))?;
        for (shell, place) in [
            ("bash", "usr/share/bash-completion/completions/dyno"),
            ("zsh", "usr/share/zsh/vendor-completions/_dyno"),
            ("fish", "usr/share/fish/vendor_completions.d/dyno.fish"),
        ] {
            self.write(place, &output(Command::new(program).args(["completions", shell]))?)?;
        }
        let pages = self.root.join("usr/share/man/man1");
        succeed(Command::new(program).arg("man").arg(&pages))?;
        for page in std::fs::read_dir(&pages)? {
            succeed(Command::new("gzip").args(["--best", "--no-name"]).arg(page?.path()))?;
        }
        let documents = self.root.join("usr/share/doc/dyno");
        for name in "README METHOD GLOSSARY SECURITY CHANGELOG THIRD_PARTY".split(' ') {
            let name = format!("{name}.md");
            copy(Path::new(&name), &documents.join(&name))?;
        }
        copy_folder(Path::new("docs"), &documents.join("docs"))?;
        copy_folder(Path::new("studies"), &documents.join("studies"))?;
        self.write("usr/share/doc/dyno/copyright", &copyright()?)
    }

    fn write(&self, place: &str, text: &str) -> anyhow::Result<()> {
        let path = self.root.join(place);
        make_folder_of(&path)?;
        let text = format!("{}\n", text.trim_end());
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn control(&self, depends: &str) -> String {
        format!(
            "Package: dyno\n\
             Version: {}\n\
             Architecture: {}\n\
             Maintainer: The authors of Dyno <noreply@dyno.invalid>\n\
             Section: database\n\
             Priority: optional\n\
             Depends: {depends}\n\
             Suggests: mariadb-server, postgresql, podman, pgbouncer, e2fsprogs, xfsprogs, btrfs-progs\n\
             Description: laboratory for database performance\n \
             A study file describes a benchmark and its question: Dyno starts the database\n \
             servers, puts load on them, samples their counters every second, repeats the trials,\n \
             compares with statistics, and writes a report that begins with the answer.\n",
            self.version, self.architecture
        )
    }
}

/// Packages of the linked libraries, with minimum versions.
fn needed_libraries(program: &Path, scratch: &Path) -> anyhow::Result<String> {
    // dpkg-shlibdeps must run beside a source package's control file.
    let control = scratch.join("debian/control");
    make_folder_of(&control)?;
    std::fs::write(&control, "Source: dyno\n\nPackage: dyno\nArchitecture: any\n")?;
    let program = program.canonicalize()?;
    let mut command = Command::new("dpkg-shlibdeps");
    let text = output(command.current_dir(scratch).arg("-O").arg("-e").arg(program))?;
    let Some(depends) = text.lines().find_map(|line| line.strip_prefix("shlibs:Depends=")) else {
        bail!("dpkg-shlibdeps printed no dependencies, but: {text}");
    };
    Ok(depends.to_owned())
}

fn copyright() -> anyhow::Result<String> {
    let mut text = "Dyno is licensed under MIT or Apache-2.0, at your choice.\n\n".to_owned();
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        text += &std::fs::read_to_string(name).with_context(|| format!("cannot read {name}"))?;
        text.push('\n');
    }
    Ok(text)
}

fn make_folder_of(file: &Path) -> anyhow::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    make_folder_of(to)?;
    std::fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &place)?,
            false => copy(&entry.path(), &place)?,
        }
    }
    Ok(())
}
