//! Runs the programs that make, mount and measure filesystems, with Dyno's own rights.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use dyno_units::{Clock, Nanoseconds, clean_text};

use crate::error::{KeeperError, OrKeeper, Result};
use crate::keeper::{Keeper, retry};

/// For one program.
const LIMIT: Nanoseconds = Nanoseconds::from_secs(600);
const POLL: Nanoseconds = Nanoseconds::from_millis(5);
const OUTPUT_MAX: u64 = 1 << 20;

#[derive(Clone, Copy)]
pub(crate) struct Tools<'a> {
    pub(crate) keeper: &'a Keeper,
    pub(crate) clock: &'a dyn Clock,
}

impl Tools<'_> {
    /// Returns what it printed. It gets nothing of Dyno's environment.
    pub(crate) fn run(&self, program: &str, package: &str, arguments: &[&str]) -> Result<String> {
        self.run_in(Path::new("/"), program, package, arguments)
    }

    pub(crate) fn run_in(
        &self,
        folder: &Path,
        program: &str,
        package: &str,
        arguments: &[&str],
    ) -> Result<String> {
        let program = self.keeper.needed_program(program, package)?;
        let shown = || format!("`{} {}`", program.display(), arguments.join(" "));
        let failed = || format!("{} failed", shown());
        let mut child = Command::new(&program)
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("LANG", "C.UTF-8")
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .or_keeper(failed)?;
        let (out, errors) = (child.stdout.take(), child.stderr.take());
        let (status, out, errors) = std::thread::scope(|scope| {
            let errors = scope.spawn(|| errors.map_or(Ok(Vec::new()), bytes));
            let out = scope.spawn(|| out.map_or(Ok(Vec::new()), bytes));
            let is_over = |status: &std::io::Result<_>| !matches!(status, Ok(None));
            let status = retry(self.clock, (LIMIT, POLL), || child.try_wait(), is_over);
            if !is_over(&status) {
                let _ = child.kill();
                let _ = child.wait();
            }
            (status, joined(out), joined(errors))
        });
        let (out, errors) = (out.or_keeper(failed)?, errors.or_keeper(failed)?);
        match status.or_keeper(failed)? {
            Some(status) if status.success() => Ok(String::from_utf8_lossy(&out).into_owned()),
            Some(status) => {
                let said = clean_text(String::from_utf8_lossy(&errors).trim());
                Err(KeeperError(format!("{} failed ({status}): {said}", shown())))
            }
            None => Err(KeeperError(format!("{} did not finish within {LIMIT}", shown()))),
        }
    }
}

fn bytes(mut pipe: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.by_ref().take(OUTPUT_MAX).read_to_end(&mut bytes)?;
    // Dropped, so that the program goes on.
    std::io::copy(&mut pipe, &mut std::io::sink())?;
    Ok(bytes)
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
