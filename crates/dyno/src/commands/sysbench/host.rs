//! What scripts need of this program: output, messages, files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dyno_load::AbortFlag;
use dyno_sysbench::{Host, Level, Module, built_in_module};

use crate::terminal;

/// The host of `dyno sysbench`.
pub(super) struct Terminal {
    verbosity: u64,
    pub(super) abort: AbortFlag,
    /// The folder of the script; none for a built-in one, whose modules are built in, too.
    folder: Option<PathBuf>,
    package_path: String,
    /// Digests of the modules that scripts have required.
    modules: Mutex<BTreeMap<String, String>>,
    /// The last message, and how often it was repeated.
    last: Mutex<(String, u64)>,
    /// A client could not go on: the others are stopped, which is not reported.
    pub(super) is_broken: AtomicBool,
}

/// Where modules are looked for, as in sysbench; `variable` reads the environment.
fn package_path(variable: &dyn Fn(&str) -> Option<String>) -> String {
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
        }
    }

    /// The modules that scripts have required, with their digests.
    pub(super) fn required(&self) -> Vec<(String, String)> {
        let modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        modules.iter().map(|(name, digest)| (name.clone(), digest.clone())).collect()
    }

    /// Prints what belongs to the tool's output at the usual verbosity.
    pub(super) fn notice(&self, text: &str) {
        if self.verbosity >= 3 {
            terminal::out_part(text);
        }
    }

    /// Prints a message with its level, once in a row.
    fn message(&self, text: String) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0 == text {
            last.1 += 1;
            return;
        }
        if last.1 > 0 {
            terminal::out_part(&format!("(last message repeated {} times)\n", last.1));
        }
        terminal::out_part(&text);
        *last = (text, 0);
    }
}

fn read(path: &Path) -> std::io::Result<Module> {
    let text = std::fs::read(path)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(Module { path: path.display().to_string(), text })
}

/// Looks for a module: beside the script, in the places of `path`, and among those that are built in.
pub(crate) fn find_module(name: &str, path: &str, folder: Option<&Path>) -> Result<Module, String> {
    let built_in = || {
        let text = built_in_module(name)?;
        Some(Module { path: name.to_owned(), text: text.to_owned() })
    };
    let file = name.replace('.', "/");
    let mut places: Vec<PathBuf> =
        folder.iter().map(|folder| folder.join(format!("{file}.lua"))).collect();
    places.extend(
        path.split(';').filter(|one| !one.is_empty()).map(|one| one.replace('?', &file).into()),
    );
    if folder.is_none()
        && let Some(module) = built_in()
    {
        return Ok(module);
    }
    let found = places.iter().find_map(|place| read(place).ok());
    found.or_else(built_in).ok_or_else(|| {
        let places = places.iter().map(|place| format!("\n\tno file '{}'", place.display()));
        places.collect()
    })
}

impl Host for Terminal {
    fn print(&self, text: &str) {
        terminal::out_part(text);
    }

    fn print_error(&self, text: &str) {
        terminal::say_part(text);
    }

    fn log(&self, level: Level, message: &str) {
        if self.is_broken.load(Relaxed) && message.ends_with(": stopped") {
            return;
        }
        let word = match level {
            Level::Fatal => "FATAL",
            Level::Alert => "ALERT",
            Level::Warning => "WARNING",
        };
        if self.verbosity >= level as u64 {
            self.message(format!("{word}: {message}\n"));
        }
    }

    fn module(&self, name: &str, path: &str) -> Result<Module, String> {
        let module = find_module(name, path, self.folder.as_deref())?;
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        modules.entry(name.to_owned()).or_insert_with(|| crate::scripts::digest(&module.text));
        Ok(module)
    }

    fn file(&self, path: &str) -> Result<Module, String> {
        read(Path::new(path)).map_err(|error| error.to_string())
    }

    fn package_path(&self) -> String {
        self.package_path.clone()
    }

    fn sleep(&self, us: f64) {
        // In pieces, so that Ctrl-C is noticed.
        let mut left = us;
        while left > 0.0 && !self.abort.is_raised() {
            let piece = Duration::from_micros(left.min(100_000.0) as u64);
            std::thread::sleep(piece);
            left -= 100_000.0;
        }
    }

    fn is_stopped(&self) -> bool {
        self.abort.is_raised()
    }
}
