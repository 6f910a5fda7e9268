//! Every file of the catalogue is right, fits the schema, and keeps its promises.

use std::path::{Path, PathBuf};

use dyno_units::{Nanoseconds, Seed};

use crate::fixture::study;
use crate::schema::tests::misfit_of_study;
use crate::{Plan, plan};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies")
}

/// All study files below `folder`.
fn study_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder of studies is readable");
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("the entry is readable").path();
        if path.is_dir() {
            files.extend(study_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn plan_of(path: &Path) -> Plan {
    let source = std::fs::read_to_string(path).expect("the study is readable");
    plan::plan(&study(&source), Seed(1))
}

/// Studies with one variant: how it holds up over time is the question, or what it is compared with needs other
/// settings and has a file of its own.
const ALONE: [&str; 6] = [
    "throttled-filesystems/zfs-arc-bias.toml",
    "throttled-filesystems/zfs.toml",
    "tpcc-volumes/full.toml",
    "tpcc-volumes/small-server.toml",
    "zfs-tpcc/full.toml",
    "zfs-tpcc/zfs.toml",
];

#[test]
fn every_study_is_right_and_fits_the_schema() {
    let files = study_files(&folder());
    assert!(files.len() >= 8, "only {files:?}");
    for path in files {
        let source = std::fs::read_to_string(&path).expect("the study is readable");
        let plan = plan_of(&path);
        let is_alone = ALONE.iter().any(|name| path.ends_with(name));
        assert_eq!(plan.variants.len() == 1, is_alone, "{}: variants", path.display());
        assert_eq!(misfit_of_study(&source), None, "{}", path.display());
        let first = source.lines().next().expect("a first line");
        assert!(first.starts_with("#:schema ") && first.ends_with("study.schema.json"), "{first}");
        let budget = study(&source).design.budget;
        assert!(budget.is_none_or(|budget| plan.load_time() < budget), "{}", path.display());
    }
}

#[test]
fn every_study_is_in_the_list() {
    let list = std::fs::read_to_string(folder().join("README.md")).expect("the list is readable");
    for path in study_files(&folder()) {
        let name = path.strip_prefix(folder()).expect("it is in the folder").display().to_string();
        assert!(list.contains(&format!("({name})")), "{name} is not in README.md");
        let title = plan_of(&path).title;
        let is_same_question = name == "durability/full.toml";
        assert!(is_same_question || list.contains(&title), "the question of {name}: {title}");
    }
}

#[test]
fn times_are_what_the_texts_say() {
    let check = |name: &str, least_s: u64, most_s: u64| {
        let time = plan_of(&folder().join(name)).load_time();
        let is_within =
            Nanoseconds::from_secs(least_s) <= time && time <= Nanoseconds::from_secs(most_s);
        assert!(is_within, "{name} takes {time}");
    };
    check("quickstart.toml", 30, 40);
    check("cpu-shootout/bench-top.toml", 4 * 60, 6 * 60);
    check("durability/bench-top.toml", 4 * 60, 6 * 60);
    check("connections/bench-top.toml", 3 * 60, 4 * 60);
    check("connections/full.toml", 7 * 3600, 9 * 3600);
    check("aa/bench-top.toml", 7 * 60, 9 * 60);
    check("aa/full.toml", 5 * 1800, 7 * 1800);
    check("pgbench/bench-top.toml", 150, 4 * 60);
    check("pgbench/full.toml", 5 * 3600, 7 * 3600);
    check("cpu-shootout/full.toml", 11 * 3600, 13 * 3600);
    check("durability/full.toml", 7 * 3600, 9 * 3600);
}
