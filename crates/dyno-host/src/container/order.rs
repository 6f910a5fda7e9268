//! The arguments of an engine's `run`: rights of a container, and what it sees of the machine.

use std::ffi::OsString;
use std::path::Path;

use super::engine::LABEL;
use super::{Image, Program};
use crate::error::{KeeperError, Result};

pub(crate) struct ContainerOrder<'a> {
    pub(crate) image: &'a Image,
    pub(crate) program: Program<'a>,
    pub(crate) arguments: Vec<&'a str>,
    pub(crate) name: &'a str,
    /// Value of its label.
    pub(crate) token: &'a str,
    /// User and group.
    pub(crate) user: (u32, u32),
    /// Whether this is Dyno's own user, and not one that root chose.
    pub(crate) is_own_user: bool,
    /// Folders that it sees at the same paths.
    pub(crate) mounts: &'a [&'a Path],
    /// Seen as `/etc/passwd`.
    pub(crate) passwd: Option<&'a Path>,
    /// Working folder; the root if `None`.
    pub(crate) folder: Option<&'a Path>,
    /// Added to the image's.
    pub(crate) environment: Vec<(&'a str, OsString)>,
    /// Empty for none.
    pub(crate) cpus: &'a [u32],
    /// Most open files and processes of its user.
    pub(crate) files_and_processes: (u64, u64),
    /// In bytes.
    pub(crate) shared_memory: u64,
}

impl ContainerOrder<'_> {
    /// The arguments. Fails on a path that an engine would misread.
    pub(crate) fn words(&self) -> Result<Vec<OsString>> {
        let engine = self.image.engine();
        let (uid, gid) = self.user;
        let (files, processes) = self.files_and_processes;
        let mut all: Vec<OsString> = [
            "run",
            "--rm",
            // Nothing is downloaded.
            "--pull=never",
            "--network=none",
            "--cap-drop=all",
            "--security-opt=no-new-privileges",
            // SELinux would forbid Dyno's folder, which keeps its label.
            "--security-opt=label=disable",
            "--read-only",
            "--tmpfs=/tmp",
            // Output goes to Dyno's log.
            "--log-driver=none",
            "--no-healthcheck",
            // Servers have a process or thread for each client.
            "--pids-limit=-1",
        ]
        .map(OsString::from)
        .into();
        let mut add = |word: String| all.push(word.into());
        add(format!("--name={}", self.name));
        add(format!("--label={LABEL}={}", self.token));
        add(format!("--user={uid}:{gid}"));
        add(format!("--ulimit=nofile={files}:{files}"));
        add(format!("--ulimit=nproc={processes}:{processes}"));
        add(format!("--shm-size={}", self.shared_memory));
        let keeps_ids = engine.is_podman() && self.is_own_user;
        add(format!("--userns={}", if keeps_ids { "keep-id" } else { "host" }));
        if engine.is_podman() {
            // Otherwise the environment's proxies are handed over.
            add("--http-proxy=false".to_owned());
        }
        if !self.cpus.is_empty() {
            let cpus: Vec<String> = self.cpus.iter().map(u32::to_string).collect();
            add(format!("--cpuset-cpus={}", cpus.join(",")));
        }
        for volume in self.image.volumes() {
            // In place of a volume.
            add(format!("--tmpfs={volume}"));
        }
        for folder in self.mounts {
            all.push(mount(folder, folder, "")?);
        }
        if let Some(passwd) = self.passwd {
            all.push(mount(passwd, Path::new("/etc/passwd"), ",readonly")?);
        }
        let mut add = |word: String| all.push(word.into());
        add(format!("--workdir={}", self.folder.unwrap_or(Path::new("/")).display()));
        for (name, value) in &self.environment {
            let mut word = OsString::from(format!("--env={name}="));
            word.push(value);
            all.push(word);
        }
        let mut entry = OsString::from("--entrypoint=");
        entry.push(self.program.path);
        all.push(entry);
        all.push(self.image.id().into());
        all.extend(self.arguments.iter().map(OsString::from));
        Ok(all)
    }
}

fn mount(from: &Path, to: &Path, more: &str) -> Result<OsString> {
    if from.to_string_lossy().contains([',', '"', '\n']) {
        return Err(KeeperError(format!(
            "a container engine would misread the path {}; choose a data folder without commas and quotes",
            from.display()
        )));
    }
    let mut word = OsString::from("--mount=type=bind,source=");
    word.push(from);
    word.push(",destination=");
    word.push(to);
    word.push(more);
    Ok(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::engine::tests::{docker, engine};
    use crate::container::{Engine, Image};

    fn words(engine: Engine, is_own_user: bool) -> Vec<String> {
        let image = Image::of_test(engine, &["/var/lib/db"]);
        let program = image.program(Path::new("/usr/bin/db"));
        let order = ContainerOrder {
            image: &image,
            program,
            arguments: vec!["--data=/d/x/data", "--rm"],
            name: "dyno-x",
            token: "00ff",
            user: (7, 8),
            is_own_user,
            mounts: &[Path::new("/d/x")],
            passwd: Some(Path::new("/d/x/passwd")),
            folder: Some(Path::new("/d/x")),
            environment: vec![("TMPDIR", "/d/x/tmp".into())],
            cpus: &[0, 2],
            files_and_processes: (100, 200),
            shared_memory: 4096,
        };
        let words = order.words().expect("paths are plain");
        words.into_iter().map(|word| word.into_string().expect("it is text")).collect()
    }

    #[test]
    fn a_container_gets_no_rights_and_sees_one_folder() {
        let found = words(engine(), false);
        let expected = [
            "--pull=never",
            "--network=none",
            "--cap-drop=all",
            "--security-opt=no-new-privileges",
            "--read-only",
            "--user=7:8",
            "--userns=host",
            "--label=dyno.owner=00ff",
            "--tmpfs=/var/lib/db",
            "--cpuset-cpus=0,2",
            "--workdir=/d/x",
            "--env=TMPDIR=/d/x/tmp",
        ];
        for word in expected {
            assert!(found.iter().any(|one| one == word), "{word}: {found:?}");
        }
        let mounts: Vec<&String> = found.iter().filter(|one| one.contains("mount")).collect();
        assert_eq!(
            mounts,
            [
                "--mount=type=bind,source=/d/x,destination=/d/x",
                "--mount=type=bind,source=/d/x/passwd,destination=/etc/passwd,readonly"
            ]
        );
        // Arguments after the image are the program's.
        assert_eq!(
            found[found.len() - 4..],
            ["--entrypoint=/usr/bin/db", "sha256:12ab", "--data=/d/x/data", "--rm"]
        );
        assert!(!found.iter().any(|one| one.contains("privileged") || one == "--volume"));
    }

    #[test]
    fn only_podman_can_keep_a_users_id() {
        let has = |found: &[String], word: &str| found.iter().any(|one| one == word);
        assert!(has(&words(engine(), true), "--userns=keep-id"));
        assert!(has(&words(docker(), true), "--userns=host"));
        assert!(has(&words(engine(), true), "--http-proxy=false"));
        assert!(!has(&words(docker(), true), "--http-proxy=false"));
    }

    #[test]
    fn a_path_that_would_be_misread_is_refused() {
        assert!(mount(Path::new("/a,b"), Path::new("/c"), "").is_err());
        assert!(mount(Path::new("/a b:c"), Path::new("/c"), "").is_ok());
    }
}
