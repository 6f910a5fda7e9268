//! Filesystems made for trials: what lies on them, what is left of them, and what is refused.

use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{DataFolder, Workbench, read_json, trial_folder};

fn study(volume: &str, vary: &str) -> String {
    format!(
        r#"
title = "What lies under it?"
[database.a]
product = "sqlite"
settings = {{ journal_mode = "wal", synchronous = "full" }}
[volume.v]
{volume}
[workload.oltp_point_select]
table_size = 1000
[design]
{vary}
repetitions = 1
warm_up = "0s"
duration = "1s"
rest = "0s"
void_blocks = "keep"
"#
    )
}

/// Whether volumes of this study can be made here; if not, says why.
fn can_be_made(bench: &Workbench) -> bool {
    let answer = bench.dyno(&["check", "study.toml"]);
    if answer.code == 0 {
        return true;
    }
    let reasons = ["needs the rights", "is missing", "this kernel", "control group"];
    assert!(reasons.iter().any(|reason| answer.err.contains(reason)), "{}", answer.err);
    eprintln!("skipped: {}", answer.err.trim());
    false
}

fn mounts_under(folder: &Path) -> usize {
    let folder = folder.canonicalize().unwrap();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.lines().filter(|line| line.contains(&*folder.to_string_lossy())).count()
}

fn images_under(folder: &Path) -> usize {
    let folder = folder.canonicalize().unwrap();
    let devices = std::fs::read_dir("/sys/block").unwrap().flatten();
    let files = devices
        .filter_map(|device| std::fs::read_to_string(device.path().join("loop/backing_file")).ok());
    files.filter(|file| file.starts_with(&*folder.to_string_lossy())).count()
}

#[test]
fn each_variant_lies_on_the_filesystem_it_names() {
    let (bench, folder) = (Workbench::new(), DataFolder::new());
    let vary = r#"vary = { "volume.filesystem" = ["ext4", "xfs", "btrfs", "tmpfs"] }"#;
    bench.write(
        "study.toml",
        &study("filesystem = \"ext4\"\nsize = \"320MiB\"\nmount_options = \"noatime\"", vary),
    );
    if !can_be_made(&bench) {
        return;
    }
    bench.dyno_good(&["run", "study.toml", "--data-folder", folder.text()]);
    let run = bench.path("runs/study");
    let findings = read_json(&run.join("findings.json"));
    let variants = findings["variants"].as_array().unwrap();
    assert_eq!(variants.len(), 4);
    for trial in findings["trials"].as_array().unwrap() {
        assert_eq!(trial["state"], "finished", "{trial}");
    }
    let mut found: Vec<String> = (1..=4)
        .map(|number| {
            let summary = read_json(&trial_folder(&run, number).join("summary.json"));
            let place: &Value = &summary["members"][0]["place"];
            assert!(place["options"].as_str().unwrap().contains("noatime"), "{place}");
            assert_eq!(
                place["kind"],
                format!("{} mount=noatime", place["filesystem"].as_str().unwrap())
            );
            place["filesystem"].as_str().unwrap().to_owned()
        })
        .collect();
    found.sort();
    assert_eq!(found, ["btrfs", "ext4", "tmpfs", "xfs"]);
    assert_eq!((mounts_under(folder.path()), images_under(folder.path())), (0, 0));
}

#[test]
fn a_killed_run_leaves_no_mount_after_the_next_command() {
    let (bench, folder) = (Workbench::new(), DataFolder::new());
    let volume = "filesystem = \"ext4\"\nsize = \"64MiB\"\nlimit = { write_iops = 5000 }";
    bench.write("study.toml", &study(volume, "clients = 2"));
    if !can_be_made(&bench) {
        return;
    }
    let command = ["run", "study.toml", "--data-folder", folder.text()];
    let mut running = bench.start(&command);
    running.wait_for(&["measure"]);
    assert_eq!((mounts_under(folder.path()), images_under(folder.path())), (1, 1));
    running.signal(Signal::KILL);
    running.end();
    assert_eq!(mounts_under(folder.path()), 1, "it was there to be left over");
    let answer = bench.dyno_good(&command);
    assert!(answer.err.contains("cleaned up"), "{}", answer.err);
    assert_eq!((mounts_under(folder.path()), images_under(folder.path())), (0, 0));
}

#[test]
fn a_volume_that_is_too_small_fails_its_trial_alone() {
    let (bench, folder) = (Workbench::new(), DataFolder::new());
    let sizes = r#"vary = { "volume.size" = ["16MiB", "256MiB"] }"#;
    let text = study("filesystem = \"ext4\"\nsize = \"1GiB\"", sizes).replace("1000", "200000");
    bench.write("study.toml", &text);
    if !can_be_made(&bench) {
        return;
    }
    let answer = bench.dyno(&["run", "study.toml", "--data-folder", folder.text()]);
    assert_eq!(answer.code, 1, "{}", answer.err);
    let findings = read_json(&bench.path("runs/study/findings.json"));
    let mut states: Vec<&str> = findings["trials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trial| trial["state"].as_str().unwrap())
        .collect();
    states.sort_unstable();
    assert_eq!(states, ["failed", "finished"]);
    assert!(answer.err.contains("full"), "{}", answer.err);
    assert_eq!((mounts_under(folder.path()), images_under(folder.path())), (0, 0));
}

#[test]
fn what_cannot_be_a_volume_is_refused_with_its_reason() {
    let bench = Workbench::new();
    let check = |volume: &str, expected: &str| {
        bench.write("study.toml", &study(volume, "clients = 1"));
        let answer = bench.dyno(&["check", "study.toml"]);
        assert_eq!(answer.code, 2, "{volume}: {}", answer.out);
        assert!(answer.err.contains(expected), "{volume}: {}", answer.err);
    };
    check("filesystem = \"ext5\"\nsize = \"1GiB\"", "unknown filesystem `ext5`");
    check("filesystem = \"ext4\"", "neither `size` nor `device`");
    check("filesystem = \"ext4\"\nsize = \"900TiB\"", "choose another disk with `data_folder`");
    check("filesystem = \"ext4\"\ndevice = \"/dev/null\"", "it is not a block device");
    check("size = \"1GiB\"", "names no filesystem");
    check(
        "filesystem = \"tmpfs\"\nsize = \"1GiB\"\nlimit = { writes = 1 }",
        "unknown limit `writes`",
    );
    check("filesystem = \"tmpfs\"\nsize = \"1GiB\"\nlimit = { write_iops = 1 }", "lies in memory");
    check(
        "filesystem = \"ext4\"\nsize = \"1GiB\"\nproperties = { recordsize = \"16k\" }",
        "no properties",
    );
}
