//! The container engine of this machine: the user's program and configuration.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dyno_units::Nanoseconds;
use serde::{Deserialize, Serialize};

use crate::error::{KeeperError, OrKeeper, Result};
use crate::keeper::{Answer, answer_of, last_words};

/// In the order in which they are tried.
const PROGRAMS: [&str; 2] = ["podman", "docker"];
const ANSWER_LIMIT: Nanoseconds = Nanoseconds::from_secs(60);
/// Its value is in the owner file of a folder.
pub(super) const LABEL: &str = "dyno.owner";

type Find<'a> = dyn Fn(&str) -> Option<PathBuf> + 'a;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engine {
    program: PathBuf,
    kind: EngineKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum EngineKind {
    Podman,
    Docker,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContainersNote {
    pub(crate) engine: Engine,
    /// Value of the label: random digits.
    pub(crate) token: String,
}

impl Engine {
    /// The wanted engine (name or path) or the first that answers; the error says for each why not.
    pub(crate) fn find(find_program: &Find<'_>, wanted: Option<&OsStr>) -> Result<Engine> {
        let wanted = wanted.filter(|wanted| !wanted.is_empty());
        let names: Vec<&OsStr> =
            wanted.map_or_else(|| PROGRAMS.map(OsStr::new).to_vec(), |wanted| vec![wanted]);
        let mut reasons = Vec::new();
        for name in names {
            match Engine::named(find_program, name) {
                Ok(engine) => return Ok(engine),
                Err(error) => reasons.push(error.0),
            }
        }
        Err(KeeperError(format!(
            "images need a container engine, Podman or Docker, and none can be used: {}",
            reasons.join("; ")
        )))
    }

    fn named(find_program: &Find<'_>, name: &OsStr) -> Result<Engine> {
        let path = Path::new(name);
        let program = match path.is_absolute() {
            true => path.is_file().then(|| path.to_owned()),
            false => name.to_str().and_then(find_program),
        };
        let program = program
            .or_keeper(|| format!("the program `{}` is not on this machine", path.display()))?;
        // Podman may be called `docker`.
        let mut engine = Engine { program, kind: EngineKind::Podman };
        if !engine.ask(&["--version"])?.to_lowercase().contains("podman") {
            engine.kind = EngineKind::Docker;
        }
        // Docker's program is only a client: ask the daemon.
        engine.ask(&["ps", "--quiet"])?;
        if engine.kind == EngineKind::Docker
            && !rustix::process::geteuid().is_root()
            && engine.ask(&["info", "--format={{.SecurityOptions}}"])?.contains("name=rootless")
        {
            return Err(KeeperError(format!(
                "{} is rootless, so users in its containers are not users of this machine; use Podman, which can keep \
                 user IDs",
                engine.program.display()
            )));
        }
        Ok(engine)
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    pub fn name(&self) -> &'static str {
        match self.kind {
            EngineKind::Podman => "podman",
            EngineKind::Docker => "docker",
        }
    }

    pub(super) fn is_podman(&self) -> bool {
        self.kind == EngineKind::Podman
    }

    /// Has Dyno's rights, its environment for the user's settings, and gets no Ctrl-C.
    pub(crate) fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir("/").stdin(Stdio::null()).process_group(0);
        command
    }

    /// Fails if the command fails, or has not answered within a minute.
    pub(crate) fn ask(&self, arguments: &[impl AsRef<OsStr>]) -> Result<String> {
        let answer = self.output(arguments)?;
        if answer.status.success() {
            return Ok(answer.out.trim().to_owned());
        }
        let said = last_words(&answer.errors);
        Err(KeeperError(format!("{} says: {said}", self.program.display())))
    }

    /// The output, however the command ends.
    pub(crate) fn output(&self, arguments: &[impl AsRef<OsStr>]) -> Result<Answer> {
        let mut command = self.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.or_path(&self.program, "cannot be started")?;
        answer_of(&self.program, child, ANSWER_LIMIT)
    }

    /// Of the container's first process, on this machine; `None` if it has none yet.
    pub(crate) fn pid_in(&self, container: &str) -> Option<i32> {
        let words = ["container", "inspect", "--format={{.State.Pid}}", container];
        self.ask(&words).ok()?.parse().ok().filter(|pid| *pid > 0)
    }

    /// Even if it runs. No error if it does not exist.
    pub(crate) fn remove(&self, container: &str) -> Result<()> {
        let words = ["rm", "--force", "--volumes", container];
        match self.ask(&words) {
            Err(error) if !error.0.to_lowercase().contains("no such container") => Err(error),
            _ => Ok(()),
        }
    }
}

impl ContainersNote {
    /// Removes all containers with the label, even running ones, and volumes; returns their number.
    pub(crate) fn remove_all(&self) -> Result<usize> {
        let filter = format!("--filter=label={LABEL}={}", self.token);
        let listed = self.engine.ask(&["ps", "--all", "--quiet", "--no-trunc", &filter])?;
        let ids: Vec<&str> = listed.split_whitespace().collect();
        ids.iter().try_for_each(|id| self.engine.remove(id))?;
        Ok(ids.len())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn engine() -> Engine {
        Engine { program: "/usr/bin/podman".into(), kind: EngineKind::Podman }
    }

    pub(in super::super) fn docker() -> Engine {
        Engine { program: "/usr/bin/docker".into(), kind: EngineKind::Docker }
    }
}
