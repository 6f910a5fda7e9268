//! The folder of a command to kill, with all that Dyno keeps anywhere, and what may be wrong with it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

const POLL: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Lost,
    Doubled,
    Left,
}

pub(super) type Wrong = (Fault, String);

/// Stays after an error, for inspection.
pub(super) struct Place {
    dyno: PathBuf,
    folder: PathBuf,
}

impl Place {
    pub(super) fn new(dyno: &Path, below: &Path) -> anyhow::Result<Place> {
        let made = tempfile::Builder::new().prefix("kills-").tempdir_in(below);
        Place::in_folder(dyno, made.context("cannot make a folder")?.keep())
    }

    /// First stops a server that an interrupted command left.
    pub(super) fn of_server(dyno: &Path, below: &Path) -> anyhow::Result<Place> {
        let folder = below.join("kills-server");
        if folder.exists() {
            let place = Place { dyno: dyno.to_owned(), folder: folder.clone() };
            place.good(&["down", "--all"])?;
            place.remove()?;
        }
        std::fs::create_dir(&folder).context("cannot make a folder")?;
        Place::in_folder(dyno, folder)
    }

    fn in_folder(dyno: &Path, folder: PathBuf) -> anyhow::Result<Place> {
        let place = Place { dyno: dyno.to_owned(), folder };
        let tmp = place.path("tmp");
        std::fs::create_dir(&tmp).context("cannot make a folder")?;
        // Servers have users of their own.
        for (folder, mode) in [(place.folder(), 0o755), (&tmp, 0o1777)] {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode))
                .context("cannot open a folder")?;
        }
        Ok(place)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        std::fs::write(self.path(name), text).with_context(|| format!("cannot write {name}"))
    }

    pub(super) fn remove(&self) -> anyhow::Result<()> {
        std::fs::remove_dir_all(&self.folder).context("cannot remove a folder")
    }

    pub(super) fn command(&self, arguments: &[impl AsRef<str>]) -> Command {
        let mut command = Command::new(&self.dyno);
        command.args(arguments.iter().map(AsRef::as_ref)).current_dir(self.folder());
        for (name, folder) in
            [("DYNO_BUILDS", "builds"), ("XDG_STATE_HOME", "state"), ("TMPDIR", "tmp")]
        {
            command.env(name, self.path(folder));
        }
        command.stdin(Stdio::null());
        command
    }

    /// The command must succeed; returns its output.
    pub(super) fn good(&self, arguments: &[impl AsRef<str>]) -> anyhow::Result<String> {
        let output = self.command(arguments).output().context("cannot run Dyno")?;
        if !output.status.success() {
            let words: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
            bail!("dyno {} failed: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// If the command ends before it is killed, returns how long it took.
    pub(super) fn killed(
        &self,
        arguments: &[impl AsRef<str>],
        after: Duration,
    ) -> anyhow::Result<Option<Duration>> {
        let mut command = self.command(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let began = Instant::now();
        let mut child = command.spawn().context("cannot run Dyno")?;
        while began.elapsed() < after {
            if child.try_wait()?.is_some() {
                return Ok(Some(began.elapsed()));
            }
            std::thread::sleep(POLL.min(after.saturating_sub(began.elapsed())));
        }
        child.kill()?;
        child.wait()?;
        Ok(None)
    }

    /// With their contents.
    pub(super) fn ended(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let trials = entries(&self.path("run/trials")).into_iter();
        let ended = trials.filter(|trial| trial.join("summary.json").exists());
        let files = ended.flat_map(|trial| entries(&trial)).filter(|path| path.is_file());
        files.filter_map(|file| std::fs::read(&file).ok().map(|bytes| (file, bytes))).collect()
    }

    /// According to the findings; 0 without a run.
    pub(super) fn n_trials(&self) -> anyhow::Result<u64> {
        let Ok(text) = std::fs::read_to_string(self.path("run/findings.json")) else {
            return Ok(0);
        };
        let findings: serde_json::Value = serde_json::from_str(&text).context("findings.json")?;
        let trials = findings["trials"].as_array().context("findings.json has no trials")?;
        Ok(trials.iter().filter(|trial| trial["state"] == "finished").count() as u64)
    }

    pub(super) fn names(&self) -> Vec<String> {
        names(self.folder())
    }
}

pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

pub(super) fn names(folder: &Path) -> Vec<String> {
    let name = |path: PathBuf| Some(path.file_name()?.to_string_lossy().into_owned());
    entries(folder).into_iter().filter_map(name).collect()
}
