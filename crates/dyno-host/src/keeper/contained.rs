//! Starts programs of images in containers. The child is the engine's client, which ends as the
//! program does. The container's first process, whose id the engine tells, counts only with the
//! mark of its folder; then it can be signalled and observed like any other.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use dyno_units::{Nanoseconds, locked};
use rustix::process::{Resource, getrlimit};

use super::files::Access;
use super::{
    ANSWER_LIMIT, Answer, FOLDER_MARK, Keeper, KeptProcess, ProcessSpec, files, leftovers,
    open_log, random_token,
};
use crate::container::{ContainerOrder, ContainersNote, Engine, Image, Program};
use crate::{Host, KeeperError, OrKeeper, ProcessStat, Result};

/// Asking the engine for the process in a container.
const PID_TRIES: u32 = 600;
const PID_PAUSE: Nanoseconds = Nanoseconds::from_millis(30);
/// Digits of the token in a name.
const NAME_DIGITS: usize = 12;
/// In the `/etc/passwd` of containers.
const USER_NAME: &str = "dyno";

/// Image, program and arguments.
pub(super) type Question = (String, PathBuf, Vec<String>);

impl Keeper {
    /// By name or path of its program; `None` for the first that answers.
    pub fn with_engine(self, wanted_engine: Option<OsString>) -> Keeper {
        Keeper { wanted_engine, ..self }
    }

    /// The error says why none answers.
    pub fn engine(&self) -> Result<&Engine> {
        let program = |name: &str| self.find_program(name, &[]);
        let wanted = self.wanted_engine.as_deref();
        let find = || Engine::find(&program, wanted).map_err(|error| error.0);
        self.engine.get_or_init(find).as_ref().map_err(|why| KeeperError(why.clone()))
    }

    /// However the program ends. It sees nothing of the machine but `folder`, one of the keeper's.
    pub(super) fn answer_in(
        &self,
        image: &Image,
        program: Program<'_>,
        arguments: &[&str],
        folder: Option<&Path>,
    ) -> Result<Answer> {
        let owned = arguments.iter().map(|&one| one.to_owned()).collect();
        let question = (image.id(), program.path.to_owned(), owned);
        let said = || locked(&self.said);
        if folder.is_none()
            && let Some(answer) = said().get(&question)
        {
            return Ok(answer.clone());
        }
        let token = match folder {
            Some(folder) => self.note_containers(folder, image.engine())?,
            None => fresh_token()?,
        };
        let name = format!("dyno-ask-{}", &token[..NAME_DIGITS]);
        let mounts: Vec<&Path> = folder.into_iter().collect();
        let order = ContainerOrder {
            arguments: arguments.to_vec(),
            name: &name,
            token: &token,
            mounts: &mounts,
            ..self.container(image, program)
        };
        let answer = image.engine().output(&order.words()?);
        if answer.is_err() {
            // The client was killed, the container goes on.
            let _ = image.engine().remove(&name);
        }
        let answer = answer.map_err(|_| {
            let program = program.path.display();
            KeeperError(format!(
                "{program} in the image {} did not answer within {ANSWER_LIMIT}",
                image.reference()
            ))
        })?;
        if folder.is_none() && answer.status.success() {
            said().insert(question, answer.clone());
        }
        Ok(answer)
    }

    /// Waits until the process is known.
    pub(super) fn spawn_contained(
        &self,
        folder: &Path,
        spec: &ProcessSpec,
        image: &Image,
    ) -> Result<KeptProcess> {
        let (mut process, name) = self.spawn_client(folder, spec, image)?;
        for _ in 0..PID_TRIES {
            if process.ends_within(PID_PAUSE) {
                // The caller reads its log.
                return Ok(process);
            }
            let Some(pid) = image.engine().pid_in(&name) else { continue };
            let stat = ProcessStat::read(&self.proc_root, pid);
            let stat = stat.filter(|_| leftovers::carries_mark(&self.proc_root, pid, folder));
            let Some(stat) = stat else { continue };
            self.note(folder, pid, None)?;
            return Ok(process.with_inner(stat.identity()));
        }
        drop(process);
        let _ = image.engine().remove(&name);
        Err(KeeperError(format!(
            "{} started the container {name}, but Dyno cannot see its processes on this machine; \
             does {} use another host?",
            image.engine().program().display(),
            image.engine().name()
        )))
    }

    /// The client ends as the program in the container does. Also returns the container's name.
    pub(super) fn spawn_client(
        &self,
        folder: &Path,
        spec: &ProcessSpec,
        image: &Image,
    ) -> Result<(KeptProcess, String)> {
        if !spec.limits.is_none() {
            let why = "memory, swap and CPU weight of a server in a container cannot be limited by \
                 Dyno; leave `memory`, `swap` and `cpu_weight` out";
            return Err(KeeperError(why.into()));
        }
        self.open_to_servers(folder)?;
        let token = self.note_containers(folder, image.engine())?;
        let n = super::N_FOLDERS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let of_folder = folder.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("dyno-{of_folder}-{}-{n}", &token[..NAME_DIGITS]);
        let (uid, gid) = self.user_of_servers();
        let text = format!("{USER_NAME}:x:{uid}:{gid}:servers of Dyno:/nonexistent:/bin/false\n");
        let passwd = self.passwd_file(folder, &text)?;
        let mut mounts = vec![folder];
        mounts.extend(spec.mounts.iter().map(PathBuf::as_path));
        let mut environment: Vec<(&str, OsString)> = vec![
            ("LANG", "C.UTF-8".into()),
            ("TZ", "UTC".into()),
            (FOLDER_MARK, folder.as_os_str().to_owned()),
        ];
        environment.extend(spec.environment.iter().map(|(name, value)| (&**name, value.into())));
        let order = ContainerOrder {
            arguments: spec.arguments.iter().map(String::as_str).collect(),
            name: &name,
            token: &token,
            mounts: &mounts,
            passwd: Some(&passwd),
            folder: Some(folder),
            environment,
            cpus: &spec.cpus,
            ..self.container(image, image.program(&spec.program))
        };
        let log = open_log(folder, &spec.log)?;
        let mut command = image.engine().command(&order.words()?);
        let log_too = log.try_clone().at(&spec.log)?;
        command.stdout(log_too).stderr(log).stdin(Stdio::null());
        let child = command.spawn().or_path(image.engine().program(), "cannot be started")?;
        let process = KeptProcess::new(child);
        self.note(folder, process.child_pid(), None)?;
        Ok((process, name))
    }

    fn container<'a>(&self, image: &'a Image, program: Program<'a>) -> ContainerOrder<'a> {
        let memory = Host::new(Path::new("/")).memory_bytes().unwrap_or(1 << 30);
        ContainerOrder {
            image,
            program,
            arguments: Vec::new(),
            name: "",
            token: "",
            user: self.user_of_servers(),
            is_own_user: self.run_as().is_none(),
            mounts: &[],
            passwd: None,
            folder: None,
            environment: Vec::new(),
            cpus: &[],
            files_and_processes: (limit_of(Resource::Nofile), processes_most()),
            shared_memory: memory / 2,
        }
    }

    /// Some programs refuse to run without a name.
    pub(super) fn passwd_file(&self, folder: &Path, text: &str) -> Result<PathBuf> {
        let path = folder.join("passwd");
        if fs::symlink_metadata(&path).is_err() {
            let made = files::make(&path, &mut text.as_bytes(), Access::Read, self.run_as());
            made.or_path(&path, "cannot be created")?;
        }
        Ok(path)
    }

    /// And their group.
    fn user_of_servers(&self) -> (u32, u32) {
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        self.run_as().map_or(own, |user| (user.uid, user.gid))
    }

    /// In the folder's owner file; returns the label's value.
    fn note_containers(&self, folder: &Path, engine: &Engine) -> Result<String> {
        let fresh = ContainersNote { engine: engine.clone(), token: fresh_token()? };
        self.amend(folder, |owner| {
            let noted = owner.containers.take().filter(|note| note.engine == *engine);
            owner.containers.insert(noted.unwrap_or(fresh)).token.clone()
        })
    }
}

fn fresh_token() -> Result<String> {
    random_token().or_keeper(|| "cannot get random numbers")
}

/// Dyno's own limit: no container needs more, and an engine might not be able to give it.
fn limit_of(resource: Resource) -> u64 {
    getrlimit(resource).maximum.unwrap_or(1 << 20)
}

/// Podman limits itself to as many processes as there are ids.
fn processes_most() -> u64 {
    let ids = fs::read_to_string("/proc/sys/kernel/pid_max").ok();
    let ids = ids.and_then(|text| text.trim().parse().ok()).unwrap_or(32_768);
    limit_of(Resource::Nproc).min(ids)
}

#[cfg(test)]
mod tests;
