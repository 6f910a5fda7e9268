//! What scripts need of this program: output, messages, files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

use dyno_load::AbortFlag;
use dyno_sysbench::{Host, Level, Module};
use dyno_units::{Clock, Nanoseconds, locked};
use dyno_workload::lua::{Ended, Settings};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::{End, scripts, terminal};

/// Why the program ends before it does what was asked.
pub(super) enum Stop {
    /// Something was said about it.
    Said,
    Error(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Stop {
    fn from(error: E) -> Stop {
        Stop::Error(error.into())
    }
}

pub(super) struct Terminal {
    verbosity: u64,
    pub(super) abort: AbortFlag,
    /// The folder of the script; none for a built-in one, whose modules are built in, too.
    folder: Option<PathBuf>,
    package_path: String,
    modules: Mutex<BTreeMap<String, String>>,
    /// The last message, and how often it was repeated.
    last: Mutex<(String, u64)>,
    /// A client could not go on: the others are stopped, which is not reported.
    pub(super) is_broken: AtomicBool,
    /// The exit code that its script wants; less than 0 if it wants none.
    pub(super) exit_code: AtomicI64,
    pub(super) has_started: AtomicBool,
    /// How long scripts may run at most, by this clock.
    pub(super) limit: OnceLock<(Arc<dyn Clock>, Nanoseconds)>,
    /// When that is over.
    pub(super) end_ns: AtomicU64,
}

pub(super) fn end_of(settings: &Settings, ended: Ended, is_command: bool) -> End {
    match ended {
        Ended::Well | Ended::Exit(0) => End::Good,
        // What the system takes of it.
        Ended::Exit(code) => End::Exit(code as u8),
        // What a function of the old API returns means nothing.
        Ended::False if !is_command => End::Good,
        Ended::False => End::Bad,
        Ended::Broken(function, message) => {
            let text = Ended::report(&function, &message);
            settings.program.host.log(Level::Fatal, &text);
            End::Bad
        }
    }
}

/// Where modules are looked for, as in sysbench; `variable` reads the environment.
pub(super) fn package_path(variable: &dyn Fn(&str) -> Option<String>) -> String {
    let home = variable("HOME").unwrap_or_default();
    let rocks = format!("{home}/.luarocks/share/lua");
    let usual = format!(
        "./?.lua;./?/init.lua;{rocks}/5.1/?.lua;{rocks}/5.1/?/init.lua;{rocks}/?.lua;{rocks}/?/init.lua;\
         /usr/local/share/lua/5.1/?.lua;/usr/share/lua/5.1/?.lua;/usr/share/sysbench/?.lua"
    );
    match variable("LUA_PATH") {
        Some(path) if !path.is_empty() => path.replace(";;", &format!(";{usual};")),
        _ => usual,
    }
}

impl Terminal {
    pub(super) fn new(
        verbosity: u64,
        abort: AbortFlag,
        folder: Option<PathBuf>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Terminal {
        Terminal {
            verbosity,
            abort,
            folder,
            package_path: package_path(variable),
            modules: Mutex::default(),
            last: Mutex::default(),
            is_broken: AtomicBool::new(false),
            exit_code: AtomicI64::new(-1),
            has_started: AtomicBool::new(false),
            limit: OnceLock::new(),
            end_ns: AtomicU64::new(u64::MAX),
        }
    }

    /// The modules that scripts have required, with their digests.
    pub(super) fn required(&self) -> Vec<(String, String)> {
        let modules = locked(&self.modules);
        modules.iter().map(|(name, digest)| (name.clone(), digest.clone())).collect()
    }

    /// Prints what belongs to the tool's output at the usual verbosity.
    pub(super) fn notice(&self, text: &str) {
        if self.verbosity >= 3 {
            Terminal::end_repetition(&mut locked(&self.last));
            terminal::out_part(text);
        }
    }

    /// Logs why the program ends.
    pub(super) fn fatal(&self, text: &str) -> Stop {
        self.log(Level::Fatal, text);
        Stop::Said
    }

    /// Says how often the last message was repeated, before something else is printed.
    fn end_repetition(last: &mut (String, u64)) {
        if last.1 > 0 {
            terminal::out_part(&format!("(last message repeated {} times)\n", last.1));
        }
        *last = (String::new(), 0);
    }

    /// Prints a message with its level, once in a row.
    fn message(&self, text: String) {
        let mut last = locked(&self.last);
        if last.0 == text {
            last.1 += 1;
            return;
        }
        Terminal::end_repetition(&mut last);
        terminal::out_part(&text);
        last.0 = text;
    }
}

impl Host for Terminal {
    fn print(&self, text: &str) {
        terminal::out_part(text);
    }

    fn print_error(&self, text: &str) {
        terminal::say_part(text);
    }

    fn log(&self, level: Level, message: &str) {
        let is_known = self.is_broken.load(Relaxed) || crate::signals::have_come();
        if is_known && message.ends_with(": stopped") {
            return;
        }
        let word = ["FATAL", "ALERT", "WARNING"][level as usize];
        if self.verbosity >= level as u64 {
            self.message(format!("{word}: {message}\n"));
        }
    }

    fn module(&self, name: &str, path: &str) -> Result<Module, String> {
        let module = scripts::find_module(name, path, self.folder.as_deref())?;
        let mut modules = locked(&self.modules);
        modules.entry(name.to_owned()).or_insert_with(|| scripts::digest(&module.text));
        Ok(module)
    }

    fn file(&self, path: &str) -> Result<Module, String> {
        scripts::module(Path::new(path))
    }

    /// Its scripts are trusted: they open what they would in sysbench.
    fn may_open(&self, _: &Path) -> std::io::Result<()> {
        Ok(())
    }

    fn package_path(&self) -> String {
        self.package_path.clone()
    }

    fn sleep(&self, us: f64) {
        scripts::sleep(us, &|| self.abort.is_raised());
    }

    fn execute(&self, command: Option<&str>) -> i32 {
        // Without a command the question is whether there is a shell.
        command.map_or(1, |command| execute(command, &|| self.is_stopped()).unwrap_or(-1))
    }

    fn is_stopped(&self) -> bool {
        let is_over = |(clock, _): &(Arc<dyn Clock>, _)| clock.now().0 >= self.end_ns.load(Relaxed);
        self.abort.is_raised() || self.limit.get().is_some_and(is_over)
    }

    fn started(&self) {
        if let Some((clock, length)) = self.limit.get() {
            self.end_ns.store((clock.now() + *length).0, Relaxed);
        }
        // Where one could not be prepared, none begins.
        if !self.is_broken.load(Relaxed) {
            self.has_started.store(true, Relaxed);
            self.notice("Threads started!\n\n");
        }
    }

    fn broken(&self, exit_code: Option<i32>) {
        self.exit_code.store(exit_code.map_or(-1, i64::from), Relaxed);
        self.is_broken.store(true, Relaxed);
        self.abort.raise();
    }
}

/// Runs a command by the shell until it has ended, or has to: then it is killed, with what it has started in its group.
fn execute(command: &str, is_stopped: &dyn Fn() -> bool) -> std::io::Result<i32> {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    let mut shell = Command::new("/bin/sh");
    let mut child = shell.arg("-c").arg(command).process_group(0).spawn()?;
    let id = Pid::from_child(&child);
    let process = pidfd_open(id, PidfdFlags::empty())?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.into_raw());
        }
        if is_stopped() {
            kill_process_group(id, Signal::KILL)?;
            return Ok(child.wait()?.into_raw());
        }
        let piece = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        let mut waits = [PollFd::new(&process, PollFlags::IN)];
        // A signal that comes meanwhile is noticed above.
        let _ = poll(&mut waits, Some(&piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_to_what_c_says_and_end_when_they_have_to() {
        let check = |command: &str, is_stopped: bool, expected: i32| {
            let status = execute(command, &|| is_stopped).expect(command);
            assert_eq!(status, expected, "{command}");
        };
        check("true", false, 0);
        check("exit 3", false, 3 << 8);
        check("kill -TERM $$", false, 15);
        // With what it waits for, which holds no descriptor of the test's then.
        check("sleep 1000; true", true, 9);
    }
}
