//! Passwords that URLs name by an environment variable (`mysql://root:${DB_PASSWORD}@db1/test`) or a file
//! (`?password_file=/run/db1`).

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::bail;
use dyno_database::Secret;

const PASSWORD_BYTES_MAX: u64 = 4096;

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
    let file = dyno_units::open_unplanted(path).map_err(unreadable)?;
    let facts = file.metadata().map_err(unreadable)?;
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

pub(crate) fn expand_with(
    url: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> anyhow::Result<String> {
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
        let open = folder.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o1777)).unwrap();
        let link = open.join("link");
        std::fs::write(&path, "p").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(read_password(&link).unwrap().reveal(), "p");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::lchown(&link, Some(54_321), None).unwrap();
            assert!(read_password(&link).unwrap_err().contains("belongs to user 54321"));
        }
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
