//! Copies Dyno's program to hosts that lack it. The host needs only `sh`, which reads the instructions,
//! `dd`, which reads the program, and other usual small programs. The file is named by its digest, which
//! is checked before use; until it is complete it has another name.

use std::fs::File;
use std::path::Path;

use dyno_units::{Nanoseconds, clean_text};

use super::tool::{Run, Tools};
use super::{Way, token};
use crate::error::{Context, Result, TrialError};

/// How long copying may take: a hundred megabytes over a slow network.
const COPY_LIMIT: Nanoseconds = Nanoseconds::from_secs(600);

/// What begins the line that is meant for Dyno: whatever runs at login may print others.
const MARK: &str = "dyno-agent:";

/// Says where the file is or is to be. Copies that were not used for a month are removed.
const LOOK: &str = r#"set -eu
umask 077
folder="${XDG_CACHE_HOME:-$HOME/.cache}/dyno/agents"
mkdir -p "$folder"
for made in "$folder" "${folder%/agents}"; do
    if [ -z "$(find "$made" -prune -user "$(id -u)")" ]; then
        echo "$made belongs to another user" >&2
        exit 1
    fi
done
find "$folder" -type f -name 'dyno-*' -mtime +30 -exec rm -f {} + 2>/dev/null || true
file="$folder/dyno-DIGEST"
state=absent
if [ -f "$file" ] && [ "$(sha256sum < "$file" | cut -d ' ' -f 1)" = DIGEST ]; then
    chmod 700 "$file"
    touch "$file"
    state=there
fi
echo "dyno-agent: $state $file"
"#;

/// Checks what has arrived, and gives it its name.
const FINISH: &str = r#"set -eu
part='FILE.TOKEN'
if [ "$(sha256sum < "$part" | cut -d ' ' -f 1)" != DIGEST ]; then
    rm -f "$part"
    echo 'what arrived is not what was sent' >&2
    exit 1
fi
chmod 700 "$part"
mv -f "$part" 'FILE'
"#;

/// Returns the path on the host. Fails, without the host's name, if the program cannot be copied.
pub(super) fn copy(
    way: &dyn Way,
    host: usize,
    program: Option<&Path>,
    tools: &Tools,
) -> Result<String> {
    let program =
        program.context("the path of this program is unknown, so that it cannot be copied")?;
    let digest = dyno_host::file_digest(program)?;
    let shell = way.on_host(host, &["sh"]);
    let tell = |script: String| {
        let script = std::io::Cursor::new(script.into_bytes());
        let said = tools.run(Run::of(&shell, &mut || {}).reading(script));
        said.map(|printed| printed.output)
    };
    let said = tell(LOOK.replace("DIGEST", &digest))?;
    let (is_there, file) = place(&said)?;
    if is_there {
        return Ok(file);
    }
    let token = token()?;
    let content = File::open(program);
    let content = content.context(format_args!("{} cannot be read", program.display()))?;
    let write = way.write_on_host(host, &format!("{file}.{token}"));
    let filled = |script: &str| {
        script.replace("DIGEST", &digest).replace("TOKEN", &token).replace("FILE", &file)
    };
    let written = tools.run(Run::of(&write, &mut || {}).reading(content).within(COPY_LIMIT));
    if let Err(error) = written {
        // Nor does half of it stay.
        let _ = tell(filled("rm -f 'FILE.TOKEN'"));
        return Err(error.before("the program cannot be copied: "));
    }
    tell(filled(FINISH)).map_err(|error| error.before("the program was not copied: "))?;
    Ok(file)
}

/// Whether the file is there, and its path, from what the host said.
fn place(said: &str) -> Result<(bool, String)> {
    let wrong = |why: String| TrialError::new(format!("the program cannot be copied: {why}"));
    let line = said.lines().find_map(|line| line.trim().strip_prefix(MARK));
    let (state, file) = line
        .and_then(|line| line.trim().split_once(' '))
        .ok_or_else(|| wrong("the host's shell did not say where to".to_owned()))?;
    // The path is in commands that one shell or none may read.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    if !file.starts_with('/') || !file.chars().all(is_plain) {
        let file = clean_text(file);
        return Err(wrong(format!("the path `{file}` has characters that a shell would change")));
    }
    Ok((state == "there", file.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_read_among_other_lines() {
        let check = |said: &str, expected: Option<(bool, &str)>| {
            let found = place(said).ok();
            let found = found.as_ref().map(|(is_there, file)| (*is_there, file.as_str()));
            assert_eq!(found, expected, "{said}");
        };
        check("Welcome!\ndyno-agent: there /home/me/x-1\n", Some((true, "/home/me/x-1")));
        check("dyno-agent: absent /a/b\n", Some((false, "/a/b")));
        check("dyno-agent: absent /a b/$(c)\n", None);
        check("dyno-agent: absent a/b\n", None);
        check("Welcome!\n", None);
    }

    #[test]
    fn a_folder_of_another_user_is_not_used() {
        let cache = tempfile::tempdir().unwrap();
        let look = || {
            let script = LOOK.replace("DIGEST", "none");
            let mut shell = std::process::Command::new("sh");
            let ended = shell.args(["-c", &script]).env("XDG_CACHE_HOME", cache.path()).output();
            String::from_utf8(ended.unwrap().stdout).unwrap()
        };
        let expected = format!("{}/dyno/agents/dyno-none", cache.path().display());
        assert_eq!(place(&look()).unwrap(), (false, expected));
        // Only root can give it away.
        if std::os::unix::fs::chown(cache.path().join("dyno"), Some(54_321), None).is_ok() {
            assert_eq!(look(), "");
        }
    }
}
