//! Whether a server would take its settings, asked of its programs before anything is started.
//!
//! Server programs read their configuration and say what is wrong with it, without data and without
//! a server. What they cannot say beforehand (settings of plug-ins, values that depend on each other)
//! the first start says.

use std::collections::BTreeMap;
use std::path::Path;

use dyno_host::{Keeper, KeeperError};
use dyno_units::SettingValue;

use crate::DeployError;

/// What a program says that is given a configuration to read: nothing if it takes it, else its
/// lines that tell of an error. It runs as a server would, with no more rights and no other environment.
pub(crate) fn refusal(
    keeper: &Keeper,
    program: &Path,
    arguments: impl Fn(&Path) -> Vec<String>,
    configuration: &str,
) -> Result<Option<String>, DeployError> {
    let failed = |error: KeeperError| {
        DeployError::new(format!("cannot ask {} about its settings: {error}", program.display()))
    };
    let folder = keeper.make_folder("settings").map_err(failed)?;
    let file = keeper.write_file(&folder, "settings.conf", configuration);
    let complaint = file.and_then(|file| {
        let arguments = arguments(&file);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        keeper.complaint(&folder, program, &arguments)
    });
    keeper.remove_folder(&folder).map_err(failed)?;
    let Some(text) = complaint.map_err(failed)? else { return Ok(None) };
    let is_error = |line: &&str| {
        ["ERROR", "FATAL", "LOG:  ", "DETAIL", "HINT"].iter().any(|word| line.contains(word))
            && !["skipping missing", "contains errors"].iter().any(|noise| line.contains(noise))
    };
    let name = format!("{}: ", program.file_name().unwrap_or_default().to_string_lossy());
    let lines: Vec<&str> =
        text.lines().filter(is_error).map(|line| without_time(line, &name)).collect();
    Ok(Some(if lines.is_empty() { text.trim().to_owned() } else { lines.join("; ") }))
}

/// A line of a server's log without the time, the level and the program's name that it begins with.
fn without_time<'a>(line: &'a str, program: &str) -> &'a str {
    for mark in ["[ERROR] ", "LOG:  ", "FATAL:  ", "ERROR:  "] {
        if let Some((_, rest)) = line.split_once(mark) {
            return rest.split_once(program).map_or(rest, |(_, rest)| rest);
        }
    }
    line.trim()
}

/// The first setting whose name is not among those that the server knows, in words.
pub(crate) fn unknown_name(
    settings: &BTreeMap<String, SettingValue>,
    known: &[String],
    normal: impl Fn(&str) -> String,
    product: &str,
) -> Option<String> {
    let unknown: Vec<String> = settings
        .keys()
        .filter(|name| !known.contains(&normal(name)))
        .map(|name| {
            let near = known
                .iter()
                .map(|other| (distance(&normal(name), other), other))
                .min()
                .filter(|(edits, other)| *edits <= (other.len() / 3).clamp(1, 4));
            match near {
                Some((_, near)) => {
                    format!("{product} has no setting `{name}`; did you mean `{near}`?")
                }
                None => format!("{product} has no setting `{name}`"),
            }
        })
        .collect();
    (!unknown.is_empty()).then(|| unknown.join("; "))
}

/// Insertions, deletions and substitutions from one word to the other (Levenshtein 1966).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let edits = (before + usize::from(a != *b)).min(row[j] + 1).min(row[j + 1] + 1);
            before = std::mem::replace(&mut row[j + 1], edits);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Place, Products, ServerSpec};

    fn refused(product: &str, name: &str, value: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), mode).unwrap();
        let keeper = Keeper::new(&folder.path().join("r")).unwrap();
        let place = Place::under(&Arc::new(keeper));
        let value = match value.parse() {
            Ok(number) => SettingValue::Integer(number),
            Err(_) => SettingValue::Text(value.to_owned()),
        };
        let settings = [(name.to_owned(), value)].into();
        let spec = ServerSpec { settings, ..ServerSpec::new(product) };
        let products = Products::built_in();
        products.check_settings(&spec, &place).err().map(|error| error.message)
    }

    #[track_caller]
    fn check(product: &str, (name, value): (&str, &str), expected: Option<&str>) {
        let found = refused(product, name, value);
        match expected {
            None => assert_eq!(found, None),
            Some(part) => {
                let found = found.expect("it is refused");
                assert!(found.contains(part), "{found}");
            }
        }
    }

    #[test]
    fn names_and_values_are_those_of_the_server() {
        check("sqlite", ("synchronous", "normal"), None);
        check("sqlite", ("synchronos", "normal"), Some("did you mean `synchronous`?"));
        check("mariadb", ("innodb-buffer-pool-size", "67108864"), None);
        check(
            "mariadb",
            ("innodb_bufer_pool_size", "1"),
            Some("did you mean `innodb_buffer_pool_size`?"),
        );
        check("mariadb", ("binlog_format", "bad"), Some("binlog_format"));
        check("postgresql", ("shared_buffers", "64MB"), None);
        check("postgresql", ("shared_bufers", "64MB"), Some("did you mean `shared_buffers`?"));
        check("postgresql", ("shared_buffers", "64 bananas"), Some("shared_buffers"));
        check("simulated", ("anything", "1"), None);
    }

    #[test]
    fn words_are_so_many_edits_apart() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }
}
