//! Settings of servers, and lists of words such as their names. A server's programs are asked whether they accept
//! settings, without data and without starting a server; what programs cannot know (settings of plug-ins, values that
//! depend on each other) is reported at the first start.

use std::collections::BTreeMap;
use std::path::Path;

use dyno_host::{Keeper, Program};
use dyno_units::SettingValue;

use crate::error::Result;

/// As a study gives them.
pub(crate) type GivenSettings = BTreeMap<String, SettingValue>;

/// As the product spells them: what is given to its servers, or what they report.
pub(crate) type Settings = BTreeMap<String, String>;

/// Words with blanks between.
#[derive(Clone, Copy)]
pub(crate) struct Words(pub(crate) &'static str);

impl Words {
    pub(crate) fn iter(self) -> impl Iterator<Item = &'static str> {
        self.0.split_ascii_whitespace()
    }

    pub(crate) fn has(self, word: &str) -> bool {
        self.iter().any(|one| one == word)
    }

    /// As a message lists them.
    pub(crate) fn listed(self) -> String {
        self.iter().collect::<Vec<_>>().join(", ")
    }
}

/// Errors that a program reports about a configuration; empty if it accepts it. Runs with a
/// server's rights: a study may name the program, and its settings the code that it loads.
pub(crate) fn refusal(
    keeper: &Keeper,
    program: Program<'_>,
    arguments: impl Fn(&Path) -> Vec<String>,
    configuration: &str,
) -> Result<Option<String>> {
    let answer = keeper.output_with_file(program, configuration, arguments)?;
    if answer.status.success() {
        return Ok(None);
    }
    let text = answer.errors;
    let is_error = |line: &&str| {
        ["ERROR", "FATAL", "LOG:  ", "DETAIL", "HINT"].iter().any(|word| line.contains(word))
            && !["skipping missing", "contains errors"].iter().any(|noise| line.contains(noise))
    };
    let name = format!("{}: ", program.path.file_name().unwrap_or_default().to_string_lossy());
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
    settings: &GivenSettings,
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
pub(crate) fn distance(left: &str, right: &str) -> usize {
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
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use dyno_units::SettingValue;

    use super::*;
    use crate::{Place, Products, ServerSpec};

    fn refused(product: &str, name: &str, value: &str) -> Option<String> {
        refused_by(product, None, (name, value))
    }

    fn refused_by(
        product: &str,
        programs: Option<&Path>,
        (name, value): (&str, &str),
    ) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        // As root, servers' user has to reach it.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let keeper = Arc::new(Keeper::new(&folder.path().join("servers")).unwrap());
        let value = match value.parse() {
            Ok(number) => SettingValue::Integer(number),
            Err(_) => SettingValue::Text(value.to_owned()),
        };
        let spec = ServerSpec {
            settings: [(name.to_owned(), value)].into(),
            programs: programs.map(Path::to_owned),
            ..ServerSpec::new(product)
        };
        let checked = Products::built_in().check_settings(&spec, &Place::under(&keeper));
        let refused = checked.err().map(|error| error.message);
        assert_eq!(fs::read_dir(keeper.root()).unwrap().count(), 0, "something was left");
        refused
    }

    #[test]
    fn programs_that_a_study_names_get_no_rights_and_no_variables() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        // Cargo sets the variable for whatever it runs.
        let script = "#!/bin/sh\ncase $* in *--version*) echo 'x  Ver 10.11.1-MariaDB'; exit;; \
                      esac\necho \"ERROR: user $(id -u), ${CARGO_MANIFEST_DIR:-none}\" >&2; exit 1";
        for name in ["mariadbd", "mariadb-install-db"] {
            fs::write(folder.path().join(name), script).unwrap();
            fs::set_permissions(folder.path().join(name), Permissions::from_mode(0o755)).unwrap();
        }
        let setting = ("max_connections", "10");
        let why = refused_by("mariadb", Some(folder.path()), setting).expect("it refuses");
        let own = std::process::Command::new("id").arg("-u").output().unwrap().stdout;
        let own = String::from_utf8(own).unwrap();
        let is_own = why.contains(&format!("user {},", own.trim()));
        assert_eq!(is_own, own.trim() != "0", "{why}");
        assert!(why.contains(", none"), "{why}");
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
        check("sqlite", ("synchronous", "sometimes"), Some("ignores the setting"));
        check("sqlite", ("cache_size", "-2000"), None);
        check("sqlite", ("journal_mode", "WAL"), None);
        check("sqlite", ("journal_mode", "wall"), Some("delete, truncate, persist"));
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
