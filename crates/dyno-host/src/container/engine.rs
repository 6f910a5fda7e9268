//! The container engine of this machine: the user's own program, with the user's configuration.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dyno_units::Nanoseconds;
use serde::{Deserialize, Serialize};

use crate::builds::last_words;
use crate::keeper::{Answer, Keeper, KeeperError, answer_of};

/// The programs of engines, in the order in which they are tried.
const PROGRAMS: [&str; 2] = ["podman", "docker"];
const ANSWER_LIMIT: Nanoseconds = Nanoseconds::from_secs(60);
/// The label of containers that Dyno starts; its value is in the owner file of a folder.
pub(super) const LABEL: &str = "dyno.owner";

/// A container engine that answers.
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
    engine: Engine,
    /// The value of their label: random digits.
    pub(super) token: String,
}

impl Engine {
    /// The first engine that answers, or the one that is wanted: its name, or the path of its program.
    ///
    /// # Errors
    ///
    /// There is none: why, for each.
    pub(crate) fn find(keeper: &Keeper, wanted: Option<&OsStr>) -> Result<Engine, KeeperError> {
        let wanted = wanted.filter(|wanted| !wanted.is_empty());
        let names: Vec<&OsStr> =
            wanted.map_or_else(|| PROGRAMS.map(OsStr::new).to_vec(), |wanted| vec![wanted]);
        let mut reasons = Vec::new();
        for name in names {
            match Engine::named(keeper, name) {
                Ok(engine) => return Ok(engine),
                Err(KeeperError(why)) => reasons.push(why),
            }
        }
        Err(KeeperError(format!(
            "images need a container engine, Podman or Docker, and none can be used: {}",
            reasons.join("; ")
        )))
    }

    fn named(keeper: &Keeper, name: &OsStr) -> Result<Engine, KeeperError> {
        let path = Path::new(name);
        let program = match path.is_absolute() {
            true => path.is_file().then(|| path.to_owned()),
            false => name.to_str().and_then(|name| keeper.find_program(name, &[])),
        };
        let program = program.ok_or_else(|| {
            KeeperError(format!("the program `{}` is not on this machine", path.display()))
        })?;
        // The name says nothing: Podman may be called `docker`.
        let mut engine = Engine { program, kind: EngineKind::Podman };
        if !engine.ask(["--version"])?.to_lowercase().contains("podman") {
            engine.kind = EngineKind::Docker;
        }
        // Docker's program is no engine; this asks its daemon.
        engine.ask(["ps", "--quiet"])?;
        if engine.kind == EngineKind::Docker
            && !rustix::process::geteuid().is_root()
            && engine.ask(["info", "--format={{.SecurityOptions}}"])?.contains("name=rootless")
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

    /// Its name, for messages: `podman`.
    pub fn name(&self) -> &'static str {
        match self.kind {
            EngineKind::Podman => "podman",
            EngineKind::Docker => "docker",
        }
    }

    pub(super) fn is_podman(&self) -> bool {
        self.kind == EngineKind::Podman
    }

    /// A command of it, with Dyno's own rights and environment, in which it finds its configuration. Ctrl-C in
    /// the terminal does not reach it.
    pub(crate) fn command<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir("/").stdin(Stdio::null()).process_group(0);
        command
    }

    /// What a command of it prints.
    ///
    /// # Errors
    ///
    /// It failed, or did not answer in a minute.
    pub(crate) fn ask<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<String, KeeperError> {
        let answer = self.output(arguments)?;
        if answer.status.success() {
            return Ok(answer.out.trim().to_owned());
        }
        let said = last_words(&answer.errors);
        Err(KeeperError(format!("{} says: {said}", self.program.display())))
    }

    /// The output of a command of it, however it ends.
    pub(crate) fn output<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<Answer, KeeperError> {
        let program = self.program.display();
        let mut command = self.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.map_err(|e| KeeperError(format!("{program} cannot be started: {e}")))?;
        let answer = answer_of(child, ANSWER_LIMIT)
            .map_err(|e| KeeperError(format!("{program} does not answer: {e}")))?;
        answer.ok_or_else(|| KeeperError(format!("{program} did not answer within {ANSWER_LIMIT}")))
    }

    /// The id that the first process of a container has on this machine; none while it has none.
    pub(crate) fn pid_in(&self, container: &str) -> Option<i32> {
        let words = ["container", "inspect", "--format={{.State.Pid}}", container];
        self.ask(words).ok()?.parse().ok().filter(|pid| *pid > 0)
    }

    /// Removes a container, whatever it does. One that is not there is no error.
    pub(crate) fn remove(&self, container: &str) -> Result<(), KeeperError> {
        let words = ["rm", "--force", "--volumes", container];
        match self.ask(words) {
            Err(error) if !error.0.to_lowercase().contains("no such container") => Err(error),
            _ => Ok(()),
        }
    }
}

impl ContainersNote {
    pub(crate) fn new(engine: &Engine, token: String) -> ContainersNote {
        ContainersNote { engine: engine.clone(), token }
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) fn is_of(&self, engine: &Engine) -> bool {
        self.engine == *engine
    }

    /// Removes all that carry the label, whatever they do, with the volumes that the engine made for them.
    /// Returns how many there were.
    ///
    /// # Errors
    ///
    /// The engine does not answer, or refuses.
    pub(crate) fn remove_all(&self) -> Result<usize, KeeperError> {
        let filter = format!("--filter=label={LABEL}={}", self.token);
        let listed = self.engine.ask(["ps", "--all", "--quiet", "--no-trunc", &filter])?;
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
