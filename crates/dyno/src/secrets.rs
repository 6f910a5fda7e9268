//! Keeps passwords out of the process list.
//!
//! A URL may name an environment variable (`mysql://root:${DB_PASSWORD}@db1/test`) or a file
//! (`?password_file=/run/db1`) for its password. If the password itself is on the command line, Dyno restarts itself at
//! once with it in such a variable: every user can read the arguments of every process, only the owner its environment.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use dyno_database::Secret;

const PASSWORD_BYTES_MAX: u64 = 4096;

/// Restarts this program with passwords moved to the environment; returns if there are none.
pub(crate) fn hide_from_process_list() -> anyhow::Result<()> {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    let mut secrets = Vec::new();
    let hidden: Vec<String> = arguments.iter().map(|text| hide(text, &mut secrets)).collect();
    if secrets.is_empty() {
        return Ok(());
    }
    let program = std::env::current_exe().context("cannot find this program's own executable")?;
    let error = Command::new(program).args(hidden).envs(secrets).exec();
    Err(error).context("cannot start this program again without a password among its arguments")
}

/// In a URL.
fn password_range(text: &str) -> Option<std::ops::Range<usize>> {
    let authority = text.find("://")? + 3;
    let end = text[authority..].find(['/', '?']).map_or(text.len(), |at| authority + at);
    let at = authority + text[authority..end].rfind('@')?;
    let colon = authority + text[authority..at].find(':')?;
    (colon + 1 < at).then_some(colon + 1..at)
}

/// In a connection string: `host=h password=secret`.
fn pair_range(text: &str) -> Option<std::ops::Range<usize>> {
    const KEY: &str = "password=";
    if text.starts_with('-') {
        return None;
    }
    let keys = text.match_indices(KEY).map(|(at, _)| at);
    let mut keys = keys.filter(|&at| at == 0 || text.as_bytes()[at - 1].is_ascii_whitespace());
    let start = keys.next()? + KEY.len();
    let value = &text[start..];
    let end = match value.strip_prefix('\'') {
        Some(quoted) => quoted.find('\'').map_or(value.len(), |at| at + 2),
        None => value.find(char::is_whitespace).unwrap_or(value.len()),
    };
    (end > 0).then_some(start..start + end)
}

/// In another tool's option: `--…-password=secret`.
fn option_range(text: &str) -> Option<std::ops::Range<usize>> {
    let (name, value) = text.strip_prefix("--")?.split_once('=')?;
    let is_one = name.ends_with("-password") || name.ends_with("_password");
    (is_one && !value.is_empty()).then_some(text.len() - value.len()..text.len())
}

fn hide(text: &str, secrets: &mut Vec<(String, String)>) -> String {
    match password_range(text).or_else(|| pair_range(text)).or_else(|| option_range(text)) {
        Some(range) if !text[range.clone()].starts_with("${") => {
            let name = format!("DYNO_SECRET_{}", secrets.len());
            let hidden = format!("{}${{{name}}}{}", &text[..range.start], &text[range.end..]);
            secrets.push((name, text[range].to_owned()));
            hidden
        }
        _ => text.to_owned(),
    }
}

/// Replaces `${NAME}` in a URL by the variable's value, and `password_file=PATH` by the password. From then on this
/// process writes no core dump, as that would hold the password. It stays "dumpable" in the kernel's sense: otherwise
/// its `/proc/self/io` would be root's, and the generator's own I/O could not be reported.
#[expect(clippy::disallowed_methods, reason = "only this crate reads the environment")]
pub(crate) fn expand(url: &str) -> anyhow::Result<String> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = Rlimit { current: Some(0), ..getrlimit(Resource::Core) };
    // Lowering a limit is always allowed.
    let _ = setrlimit(Resource::Core, limit);
    let url = expand_with(url, &|name| std::env::var(name).ok())?;
    Ok(dyno_database::with_password_of_file(&url, read_password)?)
}

/// Only the owner may be able to read the file.
fn read_password(path: &Path) -> Result<Secret, String> {
    let refused = |why: String| format!("the password file {} {why}", path.display());
    let unreadable = |error: std::io::Error| refused(format!("cannot be read: {error}"));
    // Without the flag, opening a pipe waits for a writer.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    let facts = file.metadata().map_err(unreadable)?;
    if !facts.is_file() {
        return Err(refused("is not a regular file".to_owned()));
    }
    if facts.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused("belongs to another user".to_owned()));
    }
    if facts.mode() & 0o077 != 0 {
        return Err(refused("can be read by other users; `chmod 600` prevents that".to_owned()));
    }
    let mut text = String::new();
    file.take(PASSWORD_BYTES_MAX).read_to_string(&mut text).map_err(unreadable)?;
    match text.lines().next() {
        Some(line) => Ok(Secret::new(line)),
        None => Err(refused("is empty".to_owned())),
    }
}

pub(crate) fn variables(url: &str) -> Vec<String> {
    let names = url.split("${").skip(1).filter_map(|tail| tail.split_once('}'));
    names.map(|(name, _)| name.to_owned()).collect()
}

fn expand_with(url: &str, lookup: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<String> {
    let mut out = String::with_capacity(url.len());
    let mut rest = url;
    while let Some(start) = rest.find("${") {
        out.push_str(&rest[..start]);
        let tail = &rest[start + 2..];
        let Some(end) = tail.find('}') else { bail!("a `${{` in a URL has no `}}`") };
        let name = &tail[..end];
        let Some(value) = lookup(name) else {
            bail!("the URL names the environment variable {name}, which is not set");
        };
        out.push_str(&value);
        rest = &tail[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_moved_and_nothing_else() {
        let check = |text: &str, expected: &str, moved: &[&str]| {
            let mut secrets = Vec::new();
            assert_eq!(hide(text, &mut secrets), expected);
            assert_eq!(secrets.iter().map(|(_, s)| s.as_str()).collect::<Vec<_>>(), moved);
        };
        check("mysql://u:p@h:1/c", "mysql://u:${DYNO_SECRET_0}@h:1/c", &["p"]);
        check("--on=mysql://u:p@q@h/c", "--on=mysql://u:${DYNO_SECRET_0}@h/c", &["p@q"]);
        check("mysql://u:${X}@h/c", "mysql://u:${X}@h/c", &[]);
        check("mysql://u@h:3306/c", "mysql://u@h:3306/c", &[]);
        check("mysql://h:3306/c?x=a:b@c", "mysql://h:3306/c?x=a:b@c", &[]);
        check("sqlite", "sqlite", &[]);
        check("host=h password=p x=1", "host=h password=${DYNO_SECRET_0} x=1", &["p"]);
        check("password='p q'", "password=${DYNO_SECRET_0}", &["'p q'"]);
        check("--setting=password=x", "--setting=password=x", &[]);
    }

    #[test]
    fn password_files_are_their_owner_s_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        let check = |text: &str, mode: u32, expected: Result<&str, &str>| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            match (read_password(&path), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found.reveal(), expected),
                (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
                (found, expected) => panic!("{found:?} is not {expected:?}"),
            }
        };
        check("p w\n", 0o600, Ok("p w"));
        check("p", 0o400, Ok("p"));
        check("p\n", 0o640, Err("can be read by other users"));
        check("", 0o600, Err("is empty"));
        assert!(read_password(folder.path()).is_err());
        assert!(read_password(&folder.path().join("none")).unwrap_err().contains("cannot be read"));
    }

    #[test]
    fn variables_are_named() {
        assert_eq!(variables("a://u:${X}@${HOST_2}/c"), ["X", "HOST_2"]);
        assert_eq!(variables("a://u:${X"), [""; 0]);
    }

    #[test]
    fn variables_are_expanded_or_missed() {
        let lookup = |name: &str| (name == "X").then(|| "secret".to_owned());
        assert_eq!(expand_with("a://u:${X}@h/c", &lookup).unwrap(), "a://u:secret@h/c");
        assert!(expand_with("a://u:${Y}@h/c", &lookup).unwrap_err().to_string().contains("Y"));
        assert!(expand_with("a://u:${X@h/c", &lookup).is_err());
    }
}
