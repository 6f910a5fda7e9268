//! `file-io` and `fsync`: files that are really read, written and synced, and refusals.

use serde_json::Value;

use crate::bench::check_audit;
use crate::support::{DataFolder, Workbench, read_json, trial_folder};

const LENGTH: [&str; 4] = ["--duration", "1s", "--warm-up", "100ms"];

fn run(folder: &DataFolder, arguments: &[&str]) -> Value {
    let place = ["--on", "files", "--data-folder", folder.text()];
    Workbench::new().bench(&[arguments, &place, &LENGTH].concat())
}

#[track_caller]
fn check(folder: &DataFolder, arguments: &[&str], kinds: &[&str]) {
    let result = run(folder, arguments);
    check_audit(&result, &arguments.join(" "));
    assert!(result["transactions"].as_u64() > Some(0), "{result:#}");
    // Each client has a thread, so that all have an operation in flight.
    assert_eq!(result["generator"]["workers"], result["clients"], "{result:#}");
    let found: Vec<&str> = result["kinds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kind| kind["name"].as_str().unwrap())
        .collect();
    assert_eq!(found, kinds, "{arguments:?}");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
    let folders =
        left.iter().filter(|entry| entry.file_name().to_string_lossy().contains("files-"));
    assert_eq!(folders.count(), 0, "{left:?}");
}

#[test]
fn files_are_read_and_written_as_asked() {
    let folder = DataFolder::on_disk();
    let io = ["file-io", "--total-size", "8MiB", "--direct", "off", "--clients", "3"];
    let check = |more: &[&str], kinds: &[&str]| check(&folder, &[&io[..], more].concat(), kinds);
    check(&[], &["read"]);
    check(&["--access", "sequential", "--rate", "300"], &["read"]);
    check(
        &[
            "--operation",
            "mixed",
            "--distribution",
            "zipfian",
            "--files",
            "4",
            "--sync",
            "fsync",
            "--sync-every",
            "5",
        ],
        &["read", "write", "synced write"],
    );
    check(&["--operation", "rewrite", "--block-size", "1000", "--compress-ratio", "4"], &["write"]);
    let direct = ["file-io", "--total-size", "8MiB", "--alignment", "4KiB"];
    match folder_takes_direct(&folder) {
        true => self::check(&folder, &direct, &["read"]),
        false => eprintln!("skipped: {} has no O_DIRECT", folder.text()),
    }
}

fn folder_takes_direct(folder: &DataFolder) -> bool {
    use std::os::unix::fs::OpenOptionsExt;
    let path = folder.path().join("probe");
    let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
    let opened = std::fs::File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .custom_flags(flags)
        .open(&path);
    let _ = std::fs::remove_file(path);
    opened.is_ok()
}

#[test]
fn each_write_is_synced() {
    let folder = DataFolder::on_disk();
    for more in [
        &["--sync", "fsync"][..],
        &["--sync", "fdatasync", "--position", "append", "--append-limit", "10000"],
        &["--sync", "dsync", "--clients", "2"],
        &["--sync", "none", "--bytes", "100"],
    ] {
        check(&folder, &[&["fsync"], more].concat(), &["fsync"]);
    }
    let answer = Workbench::new().dyno_good(&[
        "bench",
        "fsync",
        "--on",
        "files",
        "--operations",
        "20",
        "--clients",
        "2",
        "--data-folder",
        folder.text(),
    ]);
    assert!(
        answer.out.contains("20 operations") && answer.out.contains("committed 40"),
        "{}",
        answer.out
    );
}

#[test]
fn what_does_not_fit_together_is_refused_before_anything_is_made() {
    let bench = Workbench::new();
    for (arguments, expected) in [
        (&["oltp_read_only", "--on", "files"][..], "needs a database, but `files` is not one"),
        (&["file-io", "--on", "sqlite"], "works on files, but sqlite is a database"),
        (&["fsync", "--on", "mysql://me@h/c"], "works on files, but a server with a URL"),
        (&["file-io", "--on", "files", "--block-size", "1000"], "not a multiple of 512"),
        (&["file-io", "--on", "files", "--setting", "x=1"], "files have no settings"),
    ] {
        let answer = bench.dyno(&[&["bench"], arguments].concat());
        assert_eq!(answer.code, 2, "{arguments:?}: {}", answer.err);
        assert!(answer.err.contains(expected), "{}", answer.err);
    }
}

/// A run continues only with its original sizes.
#[test]
fn sizes_are_the_same_however_they_are_written() {
    let bench = Workbench::new();
    let study = |size: &str| {
        let text = format!(
            "title = 'x'\n[database.a]\nproduct = 'files'\n[workload.fsync]\nbytes = {size}\n\
             [design]\nrepetitions = 2\nduration = '1s'\nseed = 1\n"
        );
        bench.write("study.toml", &text);
    };
    study("'8KiB'");
    bench.dyno_good(&["run", "study.toml", "--out", "run"]);
    for same in ["8192", "'8192'", "'8 k'", "'8.192 kB'"] {
        study(same);
        // Another size would be refused.
        bench.dyno_good(&["run", "study.toml", "--out", "run"]);
    }
    study("'16KiB'");
    assert_eq!(bench.dyno(&["run", "study.toml", "--out", "run"]).code, 2);
    for (size, expected) in
        [("'x'", "is not a size"), ("true", "a size such as"), ("1.5", "a size such as")]
    {
        study(size);
        let answer = bench.dyno(&["check", "study.toml"]);
        assert_eq!(answer.code, 2, "{size}: {}", answer.err);
        assert!(answer.err.contains(expected), "{size}: {}", answer.err);
    }
}

#[test]
fn files_that_do_not_fit_fail_the_trial_with_what_is_free() {
    let folder = DataFolder::on_disk();
    let size = ["--total-size", "1024TiB", "--data-folder", folder.text()];
    let answer =
        Workbench::new().dyno(&[&["bench", "file-io", "--on", "files"], &size[..]].concat());
    assert_eq!(answer.code, 1, "{}", answer.err);
    assert!(answer.err.contains("they need 1024 TiB, but only "), "{}", answer.err);
}

const ON_A_VOLUME: &str = r#"
title = "What is under it?"
[database.files]
product = "files"
[volume.v]
filesystem = "ext4"
size = "64MiB"
[workload.file-io]
total_size = "TOTAL"
compress_ratio = 2
operation = "rewrite"
[design]
repetitions = 1
warm_up = "0s"
duration = "1s"
rest = "0s"
void_blocks = "keep"
"#;

#[test]
fn a_volume_is_measured_and_one_that_is_full_fails_the_trial() {
    let (bench, folder) = (Workbench::new(), DataFolder::on_disk());
    bench.write("study.toml", &ON_A_VOLUME.replace("TOTAL", "16MiB"));
    let can = bench.dyno(&["check", "study.toml"]);
    if can.code != 0 {
        assert!(
            can.err.contains("needs root privileges") || can.err.contains("missing"),
            "{}",
            can.err
        );
        eprintln!("skipped: {}", can.err.trim());
        return;
    }
    bench.dyno_good(&["run", "study.toml", "--data-folder", folder.text()]);
    let summary = read_json(&trial_folder(&bench.path("runs/study"), 1).join("summary.json"));
    let place = &summary["members"][0]["place"];
    assert_eq!(place["filesystem"], "ext4");
    assert!(place["loop_file"].as_str().is_some_and(|path| path.starts_with('/')), "{place}");
    assert!(place["is_loop_direct"].is_boolean(), "{place}");
    let findings = read_json(&bench.path("runs/study/findings.json"));
    let figures = &findings["cells"][0]["metrics"];
    for id in ["io.data_rate", "io.cpu_per_operation"] {
        assert!(figures[id]["value"].as_f64() > Some(0.0), "{id}: {figures}");
    }
    // Compressible data might fit; these do not.
    bench.write("study.toml", &ON_A_VOLUME.replace("TOTAL", "128MiB"));
    let full = bench.dyno(&["run", "study.toml", "--new", "--data-folder", folder.text()]);
    assert_eq!(full.code, 1, "{}", full.err);
    assert!(full.err.contains("No space left on device"), "{}", full.err);
}
