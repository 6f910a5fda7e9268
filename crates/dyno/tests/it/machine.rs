//! Machine settings for servers: in force while they run, recorded, and restored.

use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::support::{DataFolder, Workbench, read_json, server_pid, trial_folder};

/// No other program notices this change.
const SETTING: &str = "/proc/sys/vm/vfs_cache_pressure";

fn study(database: &str, vary: &str) -> String {
    format!(
        r#"
title = "What does the machine do for it?"
[database.a]
{database}
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

fn setting() -> u32 {
    std::fs::read_to_string(SETTING).unwrap().trim().parse().unwrap()
}

/// Says why not.
fn can_run(bench: &Workbench) -> bool {
    let answer = bench.dyno(&["check", "study.toml"]);
    if answer.code == 0 {
        return true;
    }
    let reasons = ["needs root privileges", "control group", "this kernel has no"];
    assert!(reasons.iter().any(|reason| answer.err.contains(reason)), "{}", answer.err);
    eprintln!("skipped: {}", answer.err.trim());
    false
}

/// One test, as the machine has one kernel.
#[test]
fn settings_of_the_kernel_are_in_force_recorded_and_put_back() {
    let (bench, folder) = (Workbench::new(), DataFolder::new());
    let before = setting();
    let levels = [before + 1, before + 2];
    let vary = format!("vary = {{ \"database.kernel.vm.vfs_cache_pressure\" = {levels:?} }}");
    let text = study("product = \"sqlite\"", &vary);
    bench.write("study.toml", &text);
    if !can_run(&bench) {
        return;
    }
    // However late the test looks, it still runs.
    bench.write("long.toml", &text.replace("\"1s\"", "\"10min\""));
    let command = ["run", "study.toml", "--data-folder", folder.text()];
    let long = ["run", "long.toml", "--new", "--data-folder", folder.text()];
    let mut running = bench.start(&long);
    running.wait_for(&["measuring"]);
    let changed = setting();
    assert!(levels.contains(&changed), "{changed}");
    // No other run can change it meanwhile, whatever its data folder.
    let other = DataFolder::new();
    let answer = bench.dyno(&["run", "study.toml", "--new", "--data-folder", other.text()]);
    assert_eq!(answer.code, 2, "{}", answer.err);
    assert!(answer.err.contains("another Dyno process"), "{}", answer.err);
    running.signal(Signal::KILL);
    running.end();
    // Any next Dyno on this machine restores it, or it would keep the changed value.
    bench.dyno_good(&command);
    assert_eq!(setting(), before);
    assert!(!Path::new("/run/dyno-kernel.json").exists());
    // Also after Ctrl-C.
    let mut running = bench.start(&long);
    running.wait_for(&["measuring"]);
    assert_ne!(setting(), before);
    running.signal(Signal::INT);
    running.end();
    assert_eq!(setting(), before);
    let run = bench.path("runs/study");
    let in_force: Vec<String> = (1..=2)
        .map(|number| {
            let summary = read_json(&trial_folder(&run, number).join("summary.json"));
            summary["server"]["machine"]["vm.vfs_cache_pressure"].as_str().unwrap().to_owned()
        })
        .collect();
    assert!(levels.iter().all(|level| in_force.contains(&level.to_string())), "{in_force:?}");
    let findings = read_json(&run.join("findings.json"));
    let names: Vec<&str> = findings["setting_differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|difference| difference["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"vm.vfs_cache_pressure"), "{names:?}");
}

/// Groups that Dyno made for this server, while it runs.
fn groups_of(pid: i32) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let root = Path::new("/sys/fs/cgroup");
    let group = |line: &str| {
        let [_, controllers, path] = line.splitn(3, ':').collect::<Vec<_>>()[..] else { panic!() };
        path.contains("/dyno-").then(|| root.join(controllers).join(&path[1..]))
    };
    text.lines().filter_map(group).collect()
}

#[test]
fn a_server_has_its_share_of_the_cpus_and_its_swap() {
    let (bench, folder) = (Workbench::new(), DataFolder::new());
    let database = "product = \"postgresql\"\nmemory = \"768MiB\"\nswap = \"0B\"\ncpu_weight = 50";
    let text = study(database, "clients = 1");
    bench.write("study.toml", &text);
    if !can_run(&bench) {
        return;
    }
    bench.write("long.toml", &text.replace("\"1s\"", "\"10min\""));
    let mut running = bench.start(&["run", "long.toml", "--data-folder", folder.text()]);
    running.wait_for(&["measuring"]);
    let groups = groups_of(server_pid(&trial_folder(&bench.path("runs/long"), 1)));
    running.signal(Signal::INT);
    assert_eq!(running.end(), 130);
    assert!(!groups.is_empty());
    assert_eq!(groups.iter().find(|group| group.exists()), None, "of {groups:?}");
    bench.dyno_good(&["run", "study.toml", "--data-folder", folder.text()]);
    let summary = trial_folder(&bench.path("runs/study"), 1).join("summary.json");
    let machine = &read_json(&summary)["server"]["machine"];
    assert_eq!(machine["control_group.cpu_weight"], "50", "{machine}");
    assert_eq!(machine["control_group.memory"], "768 MiB", "{machine}");
}

#[test]
fn what_cannot_be_set_is_refused_with_its_reason() {
    let bench = Workbench::new();
    let check = |database: &str, expected: &str| {
        bench.write("study.toml", &study(database, "clients = 1"));
        let answer = bench.dyno(&["check", "study.toml"]);
        assert_eq!(answer.code, 2, "{database}: {}", answer.out);
        assert!(answer.err.contains(expected), "{database}: {}", answer.err);
    };
    let kernel = |pair: &str| format!("product = \"sqlite\"\nkernel = {{ {pair} }}");
    let unknown = "`vm.drop_caches` is not a kernel setting that Dyno can change";
    check(&kernel("\"vm.drop_caches\" = 3"), unknown);
    check(&kernel("\"vm.swappiness\" = 201"), "a whole number from 0 to 200, not `201`");
    check(&kernel("\"vm.swappiness\" = \"10%\""), "a whole number from 0 to 200");
    check(
        &kernel("\"transparent_hugepage.enabled\" = \"sometimes\""),
        "must be one of always, madvise, never",
    );
    check(&kernel("\"vm.dirty_ratio\" = 5, \"vm.dirty_bytes\" = \"1MiB\""), "exclude each other");
    let url = "url = \"postgresql://me@127.0.0.1:1/a\"\nkernel = { \"vm.swappiness\" = 1 }";
    check(url, "`kernel` cannot be combined with `url`");
    check("product = \"postgresql\"\nswap = \"1GiB\"", "`swap` needs `memory`");
    check("product = \"postgresql\"\ncpu_weight = 0", "`cpu_weight`");
    check("product = \"sqlite\"\ncpu_weight = 5", "cannot be combined with product `sqlite`");
    let swap = "product = \"postgresql\"\nmemory = \"1GiB\"\nswap = \"900TiB\"";
    check(swap, "of swap; add a swap file");
}
