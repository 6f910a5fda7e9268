//! Checks the workspace's dependencies against the border table of ARCHITECTURE.md and the README.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::shell::root;

fn metadata() -> serde_json::Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline", "--locked"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo prints JSON")
}

/// Direct dependencies by crate, without those of tests.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("there are packages");
    packages
        .iter()
        .map(|package| {
            let normal = package["dependencies"]
                .as_array()
                .expect("a package has dependencies")
                .iter()
                .filter(|dependency| dependency["kind"].is_null())
                .map(|dependency| dependency["name"].as_str().expect("it has a name").to_owned());
            let name = package["name"].as_str().expect("a package has a name").to_owned();
            (name, normal.collect())
        })
        .collect()
}

fn reached(name: &str, direct: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut open = vec![name.to_owned()];
    while let Some(next) = open.pop() {
        for dependency in direct.get(&next).into_iter().flatten() {
            if seen.insert(dependency.clone()) {
                open.push(dependency.clone());
            }
        }
    }
    seen
}

/// Rows of the table in ARCHITECTURE.md: crate, what it may use, what it must not know.
fn table() -> Vec<(String, BTreeSet<String>, BTreeSet<String>)> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("it is there");
    let start = text.find("<!-- borders -->").expect("the table has its first marker");
    let end = text.find("<!-- /borders -->").expect("the table has its last marker");
    let names = |cell: &str| {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<String>>()
    };
    text[start..end]
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            (cells[1].trim_matches('`').to_owned(), names(cells[2]), names(cells[3]))
        })
        .collect()
}

#[test]
fn every_crate_is_in_the_table_and_keeps_its_borders() {
    let direct = dependencies();
    let rows = table();
    let listed: BTreeSet<String> = rows.iter().map(|(name, _, _)| name.clone()).collect();
    let crates: BTreeSet<String> = direct.keys().filter(|name| *name != "xtask").cloned().collect();
    assert_eq!(listed, crates, "ARCHITECTURE.md lists other crates than there are");
    for (name, may_use, must_not) in rows {
        let own: BTreeSet<String> =
            direct[&name].iter().filter(|used| crates.contains(*used)).cloned().collect();
        assert_eq!(own, may_use, "{name} uses other crates than ARCHITECTURE.md says");
        let known = reached(&name, &direct);
        let broken: Vec<&String> = must_not.intersection(&known).collect();
        assert!(broken.is_empty(), "{name} must not know {broken:?}");
    }
}

/// `cargo run`, the README's first command, needs exactly one program in the default members.
#[test]
fn cargo_runs_dyno() {
    let metadata = metadata();
    let default = metadata["workspace_default_members"].as_array().expect("it has members");
    let packages = metadata["packages"].as_array().expect("there are packages");
    let is_program = |target: &&serde_json::Value| target["kind"][0] == "bin";
    let programs: Vec<&str> = packages
        .iter()
        .filter(|package| default.contains(&package["id"]))
        .flat_map(|package| package["targets"].as_array().expect("a package has targets"))
        .filter(is_program)
        .filter_map(|target| target["name"].as_str())
        .collect();
    assert_eq!(programs, ["dyno"]);
}

#[test]
fn there_are_at_most_fourteen_crates_with_descriptive_names() {
    let names = dependencies();
    assert!(names.len() <= 14 + 1, "fourteen crates and xtask");
    for name in names.keys() {
        for vague in ["core", "common", "utils", "types", "helpers"] {
            assert!(!name.ends_with(vague), "{name} says nothing");
        }
    }
}

/// In the second column of a table between two markers.
fn quoted_between(document: &str, first: &str, last: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(document)).expect("it is there");
    let start = text.find(first).expect("the first marker");
    let end = text.find(last).expect("the last marker");
    let rows = text[start..end].lines().filter(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(2));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned)).collect()
}

#[test]
fn the_files_of_where_to_look_exist() {
    let places = quoted_between("CONTRIBUTING.md", "<!-- places -->", "<!-- /places -->");
    assert!(places.len() > 30, "{places:?}");
    let missing: Vec<_> = places.iter().filter(|place| !root().join(place).exists()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_tests_that_security_names_are_there() {
    let files = quoted_between("SECURITY.md", "<!-- properties -->", "<!-- /properties -->");
    assert!(files.len() > 15, "{files:?}");
    let is_test = |text: String| text.contains("proptest! {") || text.contains("fuzz_target!(");
    let is_there = |file: &&String| std::fs::read_to_string(root().join(file)).is_ok_and(is_test);
    let missing: Vec<_> = files.iter().filter(|file| !is_there(file)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The suite builds no fuzz targets: each needs a line in the package and in SECURITY.md, a corpus, and a test.
#[test]
fn fuzz_targets_are_complete() {
    let fuzz = root().join("fuzz");
    let read = |name: &str| std::fs::read_to_string(root().join(name)).expect("it is text");
    let (package, security) = (read("fuzz/Cargo.toml"), read("SECURITY.md"));
    let sources: String = crate::tidy::sources().into_iter().map(|(_, text)| text).collect();
    let targets = std::fs::read_dir(fuzz.join("targets")).expect("there are targets");
    let files = targets.map(|entry| entry.expect("the entry can be read").file_name());
    let files: Vec<String> = files.map(|name| name.to_string_lossy().into_owned()).collect();
    assert!(files.len() > 10, "{files:?}");
    for file in &files {
        let name = file.strip_suffix(".rs").expect("it is a source");
        assert!(package.contains(&format!("path = \"targets/{file}\"")), "{file} is not built");
        assert!(security.contains(&format!("`fuzz/targets/{file}`")), "{file} is not named");
        assert!(sources.contains(&format!("mutations::run(\"{name}\", ")), "{name} is not run");
        assert!(fuzz.join("corpus").join(name).is_dir(), "{name} has no corpus");
    }
    assert_eq!(package.matches("[[bin]]").count(), files.len(), "a target has no file");
}
