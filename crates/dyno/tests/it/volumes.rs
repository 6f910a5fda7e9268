//! Filesystems made for trials: their contents, what is left of them, refusals.

use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{DataFolder, Workbench, read_json, server_pid, trial_folder};

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

/// Still being measured when the test looks.
fn longer(study: &str) -> String {
    study.replace("duration = \"1s\"", "duration = \"60s\"")
}

/// Says why not.
pub(crate) fn can_be_made(bench: &Workbench) -> bool {
    let answer = bench.dyno(&["check", "study.toml"]);
    if answer.code == 0 {
        return true;
    }
    let reasons = [
        "needs root privileges",
        "is missing",
        "this kernel",
        "control group",
        "only one zfs-fuse can run",
    ];
    assert!(reasons.iter().any(|reason| answer.err.contains(reason)), "{}", answer.err);
    eprintln!("skipped: {}", answer.err.trim());
    false
}

pub(crate) fn mounts_under(folder: &Path) -> usize {
    let folder = folder.canonicalize().unwrap();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.lines().filter(|line| line.contains(&*folder.to_string_lossy())).count()
}

pub(crate) fn images_under(folder: &Path) -> usize {
    let folder = folder.canonicalize().unwrap();
    let devices = std::fs::read_dir("/sys/block").unwrap().flatten();
    let files = devices
        .filter_map(|device| std::fs::read_to_string(device.path().join("loop/backing_file")).ok());
    files.filter(|file| file.starts_with(&*folder.to_string_lossy())).count()
}

#[test]
fn each_variant_lies_on_the_filesystem_it_names() {
    let (bench, folder) = (Workbench::new(), DataFolder::on_disk());
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
    let (bench, folder) = (Workbench::new(), DataFolder::on_disk());
    let volume = "filesystem = \"ext4\"\nsize = \"64MiB\"\nlimit = { write_iops = 5000 }";
    let text = study(volume, "clients = 2");
    bench.write("study.toml", &text);
    if !can_be_made(&bench) {
        return;
    }
    bench.write("long.toml", &longer(&text));
    let mut running = bench.start(&["run", "long.toml", "--data-folder", folder.text()]);
    running.wait_for(&["measuring"]);
    assert_eq!((mounts_under(folder.path()), images_under(folder.path())), (1, 1));
    running.signal(Signal::KILL);
    running.end();
    assert_eq!(mounts_under(folder.path()), 1, "it was there to be left over");
    let answer = bench.dyno_good(&["run", "study.toml", "--data-folder", folder.text()]);
    assert!(answer.err.contains("cleaned up"), "{}", answer.err);
    assert_eq!((mounts_under(folder.path()), images_under(folder.path())), (0, 0));
}

/// With these prefixes, in order; of phases only the beginnings.
pub(crate) fn events_of(trial: &Path, kinds: &[&str]) -> Vec<Value> {
    let text = crate::support::events(trial);
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|event| kinds.contains(&event["event"].as_str().unwrap())).collect()
}

#[test]
fn a_limit_binds_while_it_is_measured_and_dips_are_recorded() {
    let (bench, folder) = (Workbench::new(), DataFolder::on_disk());
    let volume = "filesystem = \"ext4\"\nsize = \"64MiB\"\nlimit = { write_iops = 5000 }\n\
        dips = { every = \"500ms\", for = \"100ms\", write_iops = 100 }";
    bench.write("study.toml", &study(volume, "clients = 2\ndrop_caches = true"));
    if !can_be_made(&bench) {
        return;
    }
    bench.dyno_good(&["run", "study.toml", "--data-folder", folder.text()]);
    let trial = trial_folder(&bench.path("runs/study"), 1);
    let events = events_of(&trial, &["trial_phase_began", "volume_limited", "caches_dropped"]);
    let words: Vec<String> = events
        .iter()
        .map(|event| match event["event"].as_str().unwrap() {
            "trial_phase_began" => event["phase"].as_str().unwrap().to_owned(),
            "volume_limited" => format!("limit {}", event["limit"]),
            other => other.to_owned(),
        })
        .collect();
    let place = |word: &str| {
        let found = words.iter().position(|one| one == word);
        found.unwrap_or_else(|| panic!("no {word} in {words:?}"))
    };
    let order = [
        "fill",
        "limit \"5000 writes/s\"",
        "drop caches",
        "caches_dropped",
        "step 2 clients",
        "limit null",
        "audit",
    ];
    assert!(order.map(place).is_sorted(), "{words:?}");
    let summary = read_json(&trial.join("summary.json"));
    let dips = summary["steps"][0]["dips"].as_array().unwrap();
    assert!(!dips.is_empty(), "{summary}");
    for dip in dips {
        assert_eq!((&dip["volume"], &dip["limit"]), (&"v".into(), &"100 writes/s".into()));
        assert!(dip["start_s"].as_f64().unwrap() >= 0.4, "{dip}");
    }
    assert_eq!(events_of(&trial, &["volume_dipped"]).len(), dips.len());
    let findings = read_json(&bench.path("runs/study/findings.json"));
    assert_eq!(findings["made_dips"][0]["made"], dips.len());
    assert_eq!((mounts_under(folder.path()), images_under(folder.path())), (0, 0));
}

/// Dyno's pools of this machine; empty without ZFS.
fn pools() -> Vec<String> {
    let answer = std::process::Command::new("zpool").args(["list", "-H", "-o", "name"]).output();
    let text = answer.map(|answer| String::from_utf8(answer.stdout).unwrap()).unwrap_or_default();
    text.lines().filter(|name| name.starts_with("dyno-")).map(str::to_owned).collect()
}

/// One test, as zfs-fuse runs once on a machine.
#[test]
fn zfs_is_made_with_its_properties_and_a_killed_run_leaves_none() {
    let (bench, folder) = (Workbench::new(), DataFolder::on_disk());
    let volume = "filesystem = \"zfs\"\nsize = \"192MiB\"\ncache = \"64MiB\"\narc_size = \"64MiB\"\n\
        properties = { recordsize = \"8k\", compression = \"gzip-1\" }";
    let text = study(volume, "clients = 2");
    bench.write("study.toml", &text);
    if !can_be_made(&bench) {
        return;
    }
    bench.write("long.toml", &longer(&text));
    let mut running = bench.start(&["run", "long.toml", "--data-folder", folder.text()]);
    running.wait_for(&["measuring"]);
    assert_eq!((mounts_under(folder.path()), images_under(folder.path())), (1, 2));
    assert_eq!(pools().len(), 1);
    running.signal(Signal::KILL);
    running.end();
    assert_eq!(mounts_under(folder.path()), 1, "it was there to be left over");
    let answer = bench.dyno_good(&["run", "study.toml", "--data-folder", folder.text()]);
    assert!(answer.err.contains("cleaned up"), "{}", answer.err);
    assert_eq!((mounts_under(folder.path()), images_under(folder.path())), (0, 0));
    assert_eq!(pools(), Vec::<String>::new());
    let summary = read_json(&trial_folder(&bench.path("runs/study"), 1).join("summary.json"));
    let place = &summary["members"][0]["place"];
    assert_eq!(place["kind"], "zfs compression=gzip-1 recordsize=8k");
    let figures = &summary["steps"][0]["figures"];
    for figure in ["data.compression", "data.on_disk", "volume.snapshot_time", "volume.clone_time"]
    {
        assert!(figures[figure].as_f64().is_some_and(|value| value > 0.0), "{figures}");
    }
    assert!(figures["data.compression"].as_f64().unwrap() > 1.1, "{figures}");
    let is_fuse = place["filesystem"] == "fuse.zfs";
    let findings = read_json(&bench.path("runs/study/findings.json"));
    let caveats = findings["caveats"].as_array().unwrap();
    let has_caveat = caveats.iter().any(|one| one["kind"] == "user_space");
    assert_eq!(has_caveat, is_fuse, "{caveats:?}");
}

/// A private server with logs on another volume, and a memory limit.
fn two_drives(product: &str) -> String {
    format!(
        r#"
title = "What does a drive for the log save?"
[database.a]
product = "{product}"
log_volume = "logs"
memory = "768MiB"
[volume.data]
filesystem = "ext4"
size = "512MiB"
[volume.logs]
filesystem = "ext4"
size = "640MiB"
[workload.oltp_insert]
table_size = 1000
[design]
volume = "data"
repetitions = 1
warm_up = "0s"
duration = "1s"
rest = "0s"
void_blocks = "keep"
"#
    )
}

/// In a control group that Dyno has made.
fn is_limited(pid: i32) -> bool {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let mut groups = groups.lines().map(|line| line.splitn(3, ':').collect::<Vec<_>>());
    // Version 2 has one unnamed group for all controllers.
    groups.any(|group| ["memory", ""].contains(&group[1]) && group[2].contains("/dyno-"))
}

#[track_caller]
fn logs_lie_apart(product: &str, log: &str) {
    let (bench, folder) = (Workbench::new(), DataFolder::on_disk());
    bench.write("study.toml", &longer(&two_drives(product)));
    if !can_be_made(&bench) {
        return;
    }
    let command = ["run", "study.toml", "--data-folder", folder.text()];
    let mut running = bench.start(&command);
    running.wait_for(&["measuring"]);
    assert_eq!((mounts_under(folder.path()), images_under(folder.path())), (2, 2));
    let volumes = std::fs::read_dir(folder.path()).unwrap().flatten();
    let files = volumes.map(|volume| volume.path().join("files")).filter(|files| files.is_dir());
    let servers = files.flat_map(|files| std::fs::read_dir(files).unwrap().flatten());
    let logs: Vec<_> =
        servers.map(|server| server.path().join(log)).filter(|log| log.exists()).collect();
    assert!(is_limited(server_pid(&trial_folder(&bench.path("runs/study"), 1))));
    running.signal(Signal::INT);
    assert_eq!(running.end(), 130);
    assert_eq!(logs.len(), 1, "{logs:?}");
    let data = logs[0].parent().unwrap();
    assert!(!data.join("PG_VERSION").exists() && !data.join("ibdata1").exists(), "{logs:?}");
    assert_eq!((mounts_under(folder.path()), images_under(folder.path())), (0, 0));
}

#[test]
fn logs_of_mariadb_lie_on_a_volume_of_their_own() {
    logs_lie_apart("mariadb", "ib_logfile0");
}

#[test]
fn logs_of_postgresql_lie_on_a_volume_of_their_own() {
    // A folder of pg_wal.
    logs_lie_apart("postgresql", "archive_status");
}

#[test]
fn a_volume_that_is_too_small_fails_its_trial_alone() {
    let (bench, folder) = (Workbench::new(), DataFolder::on_disk());
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
    assert!(answer.err.contains("volume v is full"), "{}", answer.err);
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
    check("filesystem = \"tmpfs\"\nsize = \"900TiB\"", "its size is 900 TiB, but this machine has");
    check("filesystem = \"ext4\"\ndevice = \"/dev/null\"", "it is not a block device");
    check("size = \"1GiB\"", "names no filesystem");
    check(
        "filesystem = \"tmpfs\"\nsize = \"1GiB\"\nlimit = { writes = 1 }",
        "unknown limit `writes`",
    );
    check("filesystem = \"tmpfs\"\nsize = \"1GiB\"\nlimit = { write_iops = 1 }", "is in memory");
    check(
        "filesystem = \"ext4\"\nsize = \"1GiB\"\nproperties = { recordsize = \"16k\" }",
        "no properties",
    );
    let volume = "filesystem = \"ext4\"\nsize = \"1GiB\"\n";
    let dips = |keys: &str| format!("{volume}dips = {{ {keys} }}");
    check(&dips("every = \"9s\", write_iops = 5"), "`dips` needs `every`, `for` and a limit");
    check(&dips("every = \"9s\", for = \"1s\""), "`dips` needs `every`, `for` and a limit");
    check(&dips("every = \"1s\", for = \"2s\", write_iops = 5"), "shorter than `every`");
    check(&dips("every = 5, for = \"2s\", write_iops = 5"), "`every` must be a duration");
    check(&dips("every = \"9s\", for = \"1s\", writes = 5"), "unknown limit `writes`");
    check(&format!("{volume}cache = \"64MiB\""), "neither a cache device nor an ARC");
    let text = study(volume, "clients = 1").replace("[volume.v]", "log_volume = \"w\"\n[volume.v]");
    bench.write("study.toml", &text);
    let answer = bench.dyno(&["check", "study.toml"]);
    assert!(answer.err.contains("unknown volume `w`"), "{}", answer.err);
    bench.write("study.toml", &text.replace("log_volume = \"w\"", "log_volume = \"v\""));
    let answer = bench.dyno(&["check", "study.toml"]);
    assert!(answer.err.contains("sqlite keeps its logs with its data"), "{}", answer.err);
}

#[test]
fn logs_may_have_a_volume_like_that_of_the_data_but_not_its_device() {
    let bench = Workbench::new();
    let text = two_drives("postgresql").replace("log_volume = \"logs\"", "log_volume = \"data\"");
    bench.write("study.toml", &text);
    if can_be_made(&bench) {
        let device = text.replace("size = \"512MiB\"", "device = \"/dev/null\"");
        bench.write("study.toml", &device);
        let answer = bench.dyno(&["check", "study.toml"]);
        assert!(answer.err.contains("would be on the same device, /dev/null"), "{}", answer.err);
    }
}

#[test]
fn what_a_server_preallocates_is_not_compressed_until_it_is_restored() {
    let (bench, folder) = (Workbench::new(), DataFolder::on_disk());
    bench.write(
        "study.toml",
        r#"
title = "Which way of loading compresses?"
[database.a]
product = "mariadb"
settings = { innodb_buffer_pool_size = "16MiB", innodb_log_file_size = "16MiB", innodb_use_native_aio = false }
[volume.v]
filesystem = "btrfs"
size = "768MiB"
mount_options = "compress-force=zstd:1"
[workload.oltp_point_select]
table_size = "100k"
[design]
vary = { "database.data" = ["copied", "populated", "restored"] }
repetitions = 1
warm_up = "0s"
duration = "1s"
rest = "0s"
void_blocks = "keep"
"#,
    );
    if !can_be_made(&bench) {
        return;
    }
    bench.dyno_good(&["run", "study.toml", "--data-folder", folder.text()]);
    let manifest = read_json(&bench.path("runs/study/manifest.json"));
    let share = |origin: &str| {
        let variants = manifest["variants"].as_array().unwrap();
        let is_it = |one: &Value| one["name"].as_str().unwrap().contains(origin);
        let variant = variants.iter().position(is_it).unwrap();
        let of_trial = |number| {
            let summary = trial_folder(&bench.path("runs/study"), number).join("summary.json");
            let summary = read_json(&summary);
            (summary["variant"] == variant).then(|| summary["steps"][0]["figures"].clone())
        };
        let figures = (1..=3).find_map(of_trial).unwrap();
        assert!(figures["data.compressibility"].as_f64().unwrap() > 1.2, "{origin}: {figures}");
        figures["data.stored_uncompressed"].as_f64().unwrap()
    };
    let [copied, populated, restored] = ["copied", "populated", "restored"].map(share);
    let shares = format!("copied {copied}, populated {populated}, restored {restored}");
    assert!(copied > 80.0 && restored < 50.0 && populated > restored, "{shares}");
    let findings = read_json(&bench.path("runs/study/findings.json"));
    let caveats = findings["caveats"].as_array().unwrap();
    assert!(caveats.iter().any(|one| one["kind"] == "stored_uncompressed"), "{caveats:?}");
    assert_eq!((mounts_under(folder.path()), images_under(folder.path())), (0, 0));
}
