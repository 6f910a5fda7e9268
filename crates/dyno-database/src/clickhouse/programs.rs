//! Finds ClickHouse's program on this machine.

use std::io::{self, Read as _};
use std::path::Path;

use dyno_host::Keeper;

use crate::installation::{Finder, builder_in};

pub(super) const PROGRAM: &str = "clickhouse-server";

/// A program that is larger than this is asked for its version.
const READ_MAX: u64 = 16 << 20;

pub(super) static FINDER: Finder = Finder {
    title: "ClickHouse",
    program: PROGRAM,
    places: &["/usr/sbin", "/usr/bin", "/usr/local/bin"],
    advice: "install it (Debian 12: package `clickhouse-server`), or",
    version: version_in,
    builder: |folder, version| match folder.starts_with("/usr/local") {
        true => String::new(),
        // Installed packages of a distribution do not say in their version who built them.
        false => dyno_host::distribution().unwrap_or_else(|| builder_in(version)),
    },
};

/// Old programs refuse `--version`, but contain the version; newer ones are too large to be read, and answer.
fn version_in(folder: &Path, keeper: &Keeper) -> Option<String> {
    let program = folder.join(PROGRAM);
    let size = std::fs::metadata(&program).ok().filter(|facts| facts.is_file())?.len();
    if size <= READ_MAX
        && let Some(version) = read(&program).ok().and_then(|bytes| version_within(&bytes))
    {
        return Some(version);
    }
    let text = keeper.ask(&program, &["--version"]).ok()?;
    let rest = text.split_once(" version ")?.1;
    Some(rest.split_whitespace().next()?.trim_end_matches('.').to_owned())
}

fn read(program: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    dyno_units::open_named(program)?.take(READ_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The version after the product's name in a program: `ClickHouse 18.16.1`.
fn version_within(bytes: &[u8]) -> Option<String> {
    memchr::memmem::find_iter(bytes, b"ClickHouse ").find_map(|at| {
        let rest = &bytes[at + b"ClickHouse ".len()..];
        let is_of_version = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let end = rest.iter().position(|byte| !is_of_version(byte)).unwrap_or(rest.len());
        let version = std::str::from_utf8(&rest[..end]).ok()?;
        let is_whole = version.split('.').count() >= 3 && !version.split('.').any(str::is_empty);
        is_whole.then(|| version.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_in_the_program() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(version_within(text.as_bytes()).as_deref(), expected, "{text}");
        };
        check("x\0ClickHouse server\0ClickHouse 18.16.1\0y", Some("18.16.1"));
        check("ClickHouse 1..2\0", None);
        check("ClickHouse 18", None);
        check("", None);
    }
}
