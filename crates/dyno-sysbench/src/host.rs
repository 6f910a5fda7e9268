//! What a script needs of the program that runs it, besides answers to its requests.

use std::path::Path;

use crate::Held;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Fatal,
    Alert,
    Warning,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its path, for messages.
    pub path: String,
    pub text: String,
}

/// The program that runs scripts; called in the thread of the client.
pub trait Host: Send + Sync {
    /// Prints a text to standard output, as it is.
    fn print(&self, text: &str);

    /// Prints a text to standard error, as it is.
    fn print_error(&self, text: &str);

    fn log(&self, level: Level, message: &str);

    /// The file of a module that the script requires; `path` is `package.path`.
    /// Fails with where it was looked for, as a text of lines.
    fn module(&self, name: &str, path: &str) -> Result<Module, String>;

    /// A file that the script runs.
    /// Fails with why it cannot be read.
    fn file(&self, path: &str) -> Result<Module, String>;

    /// Fails with why a script that is not trusted may not open this file to read it, or with the system's error, which
    /// the script gets as from Lua.
    fn may_open(&self, path: &Path) -> std::io::Result<()>;

    /// Where modules are looked for at first.
    fn package_path(&self) -> String;

    /// Waits for so many microseconds, where no other client is kept waiting.
    fn sleep(&self, us: f64);

    /// Runs a command by the shell and waits until it has ended, or scripts are to end: what it came to, as
    /// C's `system` returns it. Without a command, whether there is a shell.
    fn execute(&self, command: Option<&str>) -> i32;

    /// Whether scripts are to end now: what they have not ended by then is given up.
    fn is_stopped(&self) -> bool;

    /// All clients are about to begin.
    fn started(&self) {}

    /// A client cannot go on; its script may want this exit code.
    fn broken(&self, exit_code: Option<i32>) {
        let _ = exit_code;
    }
}

/// Decides about the events of a client, whose script asks without being left.
pub trait Events {
    /// The event has ended well: whether there is another one, which has then begun. None if that takes a while;
    /// the script then asks for it with [`crate::Request::More`].
    fn next(&self) -> Option<bool>;

    /// Executes a prepared statement of the client's own connection with these values, whose texts are in `bytes`.
    fn execute(&self, statement: usize, values: &[Held], bytes: &[u8]) -> Executed;
}

/// How far a statement came that was executed without leaving the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executed {
    Rows(u64),
    /// It was executed, and is none that returns rows.
    NoRows,
    /// It was sent: the script asks for what it came to with [`crate::Request::Await`].
    Sent,
    /// It was not sent: the script asks for it with [`crate::Request::Execute`].
    NotSent,
}
