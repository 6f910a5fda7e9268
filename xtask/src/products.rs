//! All that is known of a product is in its folder, so that another product is a folder and a line.

use std::path::{Path, PathBuf};

use crate::shell::root;
use crate::tidy::{is_test, sources};

const NAMES: [&str; 10] = [
    "mariadb",
    "mysql",
    "postgres",
    "sqlite",
    "clickhouse",
    "mongodb",
    "ferretdb",
    "null (",
    "pgbouncer",
    "haproxy",
];

/// Files that may name products, with the reason.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/dyno-database/src/sqlite", "a product's folder"),
    ("crates/dyno-database/src/mysql", "a product's folder"),
    ("crates/dyno-database/src/postgresql", "a product's folder"),
    ("crates/dyno-database/src/clickhouse", "a product's folder"),
    ("crates/dyno-database/src/mongodb", "a product's folder"),
    ("crates/dyno-database/src/recipe", "the protocols that a recipe can have"),
    ("crates/dyno-database/src/pgbouncer", "a router's folder"),
    ("crates/dyno-database/src/haproxy", "a router's folder"),
    ("crates/dyno-database/src/null", "a product's folder"),
    ("crates/dyno-database/src/files", "a product's folder"),
    ("crates/dyno-database/src/products.rs", "the list of the folders"),
    ("crates/dyno-database/src/dialects.rs", "the list of the dialects"),
    ("crates/dyno-database/src/archive", "how values of one product are kept in another"),
    ("crates/dyno-database/src/lib.rs", "the modules"),
    ("crates/dyno-database/src/fuzz.rs", "the fuzz targets of the folders"),
    ("crates/dyno-database/src/probe/debts.rs", "what the parts of a debt mean"),
    ("crates/dyno-model/src/declared.rs", "the dialects as a study names them"),
    ("crates/dyno-workload/src", "each dialect's SQL, and what it cannot do"),
    ("crates/dyno-load/src/null_server.rs", "a connection for tests"),
    ("crates/dyno-lab/src/simulated.rs", "the database with a simulated server's rows"),
    ("crates/dyno-record/src/server.rs", "records of earlier versions"),
    ("crates/dyno-record/src/sqlite.rs", "the record as one SQLite file"),
    ("crates/dyno-record/src/lib.rs", "the record as one SQLite file"),
    ("crates/dyno/src/commands/sql.rs", "the record as one SQLite file"),
    ("crates/dyno/src/examples.rs", "examples of commands"),
    ("crates/dyno/src/hints.rs", "options of other tools"),
    ("crates/dyno/src/commands/convert", "a tool that has options of one product"),
    ("crates/dyno/src/commands/pgbench", "a tool of one product"),
    ("crates/dyno/src/commands/sysbench", "a tool that has options for each product"),
    ("crates/dyno-study/src/parse/by_url.rs", "examples of URLs"),
    ("crates/dyno-study/src/parse/database.rs", "examples of values"),
    ("crates/dyno-study/src/parse/programs.rs", "an example of an image's name"),
    ("crates/dyno-study/src/keys.rs", "an example of a value"),
];

/// With their numbers, without comments and tests.
fn production(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = text.find("\n#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines().enumerate().map(|(idx, line)| (idx + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Names of readings (`mysql.threads_running`) do not count: they are registered.
fn names_a_product(line: &str) -> bool {
    let code = line.split_once(" // ").map_or(line, |(code, _)| code).to_lowercase();
    let is_no_reading = |part: &&str| {
        let is_of_names = |c: char| c.is_ascii_alphanumeric() || "_.*".contains(c);
        !(part.contains('.') && part.chars().all(is_of_names))
    };
    code.split('"').filter(is_no_reading).any(|part| NAMES.iter().any(|name| part.contains(name)))
}

fn relative(path: &Path) -> PathBuf {
    path.strip_prefix(root()).expect("it is in the repository").to_owned()
}

/// Adding a product must not require a search for the others' names.
#[test]
fn no_file_outside_its_folder_names_a_product() {
    let mut found = Vec::new();
    let mut used = vec![false; ALLOWED.len()];
    for (path, text) in sources() {
        let path = relative(&path);
        let is_scanned = path.starts_with("crates") && !is_test(&path);
        let is_other = ["fixture", "examples"].iter().any(|part| path.iter().any(|p| p == *part));
        if !is_scanned || is_other || path.ends_with("fixture.rs") || path.ends_with("fixtures.rs")
        {
            continue;
        }
        let hits: Vec<usize> = production(&text)
            .filter(|(_, line)| names_a_product(line))
            .map(|(number, _)| number)
            .collect();
        let allowed = ALLOWED.iter().position(|(allowed, _)| path.starts_with(allowed));
        match allowed {
            Some(idx) => used[idx] |= !hits.is_empty(),
            None => found.extend(hits.iter().map(|line| format!("{}:{line}", path.display()))),
        }
    }
    assert!(found.is_empty(), "these lines name a product: {found:#?}");
    let idle: Vec<_> = ALLOWED.iter().zip(&used).filter(|(_, used)| !**used).collect();
    assert!(idle.is_empty(), "these need no exception any more: {idle:#?}");
}

#[test]
fn comments_and_tests_do_not_count() {
    let check = |text: &str, expected: usize| {
        let n = production(text).filter(|(_, line)| names_a_product(line)).count();
        assert_eq!(n, expected, "{text}");
    };
    check("let a = \"MariaDB\";", 1);
    check("//! MariaDB\n    /// SQLite\nlet a = 1; // mysql", 0);
    check("latest.get(\"mysql.threads_running\")", 0);
    check("url(\"mysql://me@h/db\")", 1);
    check("fn a() {}\n#[cfg(test)]\nmod tests {\n    \"postgresql\"\n}", 0);
}
