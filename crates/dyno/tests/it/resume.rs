//! Runs that are killed, interrupted, and continued.

use rustix::process::Signal;

use crate::support::{DataFolder, Workbench, is_alive, read_json, server_pid, trial_folder};

const STUDY: &str = r#"
title = "Does it go on?"
[database.mariadb]
product = "mariadb"
settings = { innodb_buffer_pool_size = "64MiB" }
[workload.oltp_point_select]
table_size = 1000
[design]
clients = 2
rate = 500
repetitions = 4
warm_up = "0s"
duration = "1s"
rest = "0s"
# Another test beside this one must not void a block: trials are compared byte for byte.
void_blocks = "keep"
"#;

/// Longer trials, which can be ended while they are measured.
fn longer() -> String {
    STUDY.replace("\"1s\"", "\"3s\"")
}

#[test]
fn a_killed_run_keeps_its_trials_and_leaves_no_server() {
    // Not in a shared folder, where other runs may clean up first.
    let (bench, folder) = (Workbench::new(), DataFolder::new());
    bench.write("study.toml", &longer());
    let command = ["run", "study.toml", "--no-reuse", "--data-folder", folder.text()];
    let mut running = bench.start(&command);
    running.wait_for(&["trial 3/4", "measuring"]);
    running.signal(Signal::KILL);
    running.end();
    let run = bench.path("runs/study");
    let orphan = server_pid(&trial_folder(&run, 3));
    assert!(is_alive(orphan), "the server was there to be left over");
    let first = std::fs::read(trial_folder(&run, 1).join("summary.json")).unwrap();
    let seed = read_json(&run.join("manifest.json"))["seed"].clone();

    let answer = bench.dyno_good(&command);
    assert!(!is_alive(orphan), "the server of the killed run is still there");
    assert!(answer.err.contains("cleaned up"), "{}", answer.err);
    assert_eq!(std::fs::read(trial_folder(&run, 1).join("summary.json")).unwrap(), first);
    assert_eq!(read_json(&run.join("manifest.json"))["seed"], seed);
    let findings = read_json(&run.join("findings.json"));
    let finished = findings["trials"].as_array().unwrap();
    assert!(finished.iter().all(|trial| trial["state"] == "finished"), "{finished:#?}");
}

#[test]
fn ctrl_c_stops_the_servers_and_reports_what_is_done() {
    let bench = Workbench::new();
    bench.write("study.toml", &longer());
    let mut running = bench.start(&["run", "study.toml"]);
    running.wait_for(&["trial 2/4", "measuring"]);
    running.signal(Signal::INT);
    assert_eq!(running.end(), 130);
    let run = bench.path("runs/study");
    let server = server_pid(&trial_folder(&run, 2));
    assert!(!is_alive(server), "the server outlived Ctrl-C");
    let findings = read_json(&run.join("findings.json"));
    let states: Vec<_> = findings["trials"].as_array().unwrap().iter().collect();
    assert_eq!(states.iter().filter(|trial| trial["state"] == "finished").count(), 1);
    assert!(findings["caveats"].to_string().contains("missing_trials"));
}

#[test]
fn a_folder_of_another_study_is_refused() {
    let bench = Workbench::new();
    let study = |service: &str| {
        format!(
            "title = \"x\"\n[database.a]\nproduct = \"simulated\"\n\
             settings = {{ service_time = \"{service}\" }}\n[workload.oltp_point_select]\n\
             [design]\nrepetitions = 1\nduration = \"2s\"\nwarm_up = \"0s\"\nseed = 1\n"
        )
    };
    bench.write("one.toml", &study("1ms"));
    bench.write("two.toml", &study("2ms"));
    bench.dyno_good(&["run", "one.toml", "--out", "here"]);
    let before = std::fs::read(bench.path("here/manifest.json")).unwrap();
    let answer = bench.dyno(&["run", "two.toml", "--out", "here"]);
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("another study"), "{}", answer.err);
    assert!(answer.err.contains("setting service_time` was 1ms, is now 2ms"), "{}", answer.err);
    assert!(answer.err.contains("`dyno run --new`"), "{}", answer.err);
    assert_eq!(std::fs::read(bench.path("here/manifest.json")).unwrap(), before);

    std::fs::create_dir(bench.path("mine")).unwrap();
    bench.write("mine/letter.txt", "dear …");
    let answer = bench.dyno(&["run", "one.toml", "--out", "mine"]);
    assert!(answer.err.contains("not empty") && answer.code == 2, "{}", answer.err);
    assert!(!answer.err.contains("no report"), "{}", answer.err);
    assert!(bench.path("mine/letter.txt").exists());
}

#[test]
fn a_run_goes_on_with_the_studys_own_probes_or_not_at_all() {
    let bench = Workbench::new();
    let study = |probe: &str| {
        format!(
            "title = \"x\"\n[database.a]\nproduct = \"simulated\"\n[workload.oltp_point_select]\n\
             [design]\nrepetitions = 1\nduration = \"2s\"\nwarm_up = \"0s\"\nseed = 1\n{probe}"
        )
    };
    let probe = |sql: &str| format!("[probe.mine]\nsql = \"{sql}\"\n");
    bench.write("one.toml", &study(&probe("SELECT 1 AS a")));
    bench.write("two.toml", &study(&probe("SELECT 2 AS a")));
    bench.write("none.toml", &study(""));
    let off = format!("probes_off = [\"responsiveness\"]\n{}", probe("SELECT 1 AS a"));
    bench.write("off.toml", &study(&off));
    bench.dyno_good(&["run", "one.toml", "--out", "here"]);
    bench.dyno_good(&["run", "one.toml", "--out", "here"]);
    for other in ["two.toml", "none.toml", "off.toml"] {
        let answer = bench.dyno(&["run", other, "--out", "here"]);
        assert_eq!(answer.code, 2, "{other}");
        assert!(answer.err.contains("another study"), "{}", answer.err);
    }
}

#[test]
fn a_run_does_not_go_on_where_the_data_would_be_on_another_filesystem() {
    let bench = Workbench::new();
    bench.write(
        "study.toml",
        "title = \"x\"\n[database.a]\nproduct = \"simulated\"\n[workload.oltp_point_select]\n\
         [design]\nrepetitions = 1\nduration = \"2s\"\nwarm_up = \"0s\"\nseed = 1\n",
    );
    bench.dyno_good(&["run", "study.toml"]);
    bench.dyno_good(&["run", "study.toml"]);
    // As if it had begun elsewhere.
    let mut manifest = bench.json("runs/study/manifest.json");
    manifest["environment"]["facts"]["filesystem"] = "elsewhere".into();
    bench.write("runs/study/manifest.json", &manifest.to_string());
    let answer = bench.dyno(&["run", "study.toml"]);
    assert_eq!(answer.code, 2, "{}", answer.err);
    for part in ["kept their data on elsewhere", "--data-folder", "`dyno run --new`", "--out"] {
        assert!(answer.err.contains(part), "{part}: {}", answer.err);
    }
    bench.dyno_good(&["run", "study.toml", "--new"]);
}

/// These parts can change.
fn simulated(title: &str, repetitions: u32, threshold: &str) -> String {
    format!(
        "title = \"{title}\"\n[database.a]\nproduct = \"simulated\"\nprice_per_hour = \"1 EUR\"\n\
         [workload.oltp_point_select]\n[design]\nvary = {{ option = {{ tables = [1, 2] }} }}\n\
         repetitions = {repetitions}\nthreshold = \"{threshold}\"\nduration = \"3s\"\n\
         warm_up = \"0s\"\nseed = 1\n"
    )
}

#[test]
fn a_study_that_asks_for_more_goes_on_with_the_same_run() {
    let bench = Workbench::new();
    bench.write("study.toml", &simulated("Is it?", 2, "3%"));
    bench.dyno_good(&["run", "study.toml"]);
    let summary = |number: u32| {
        std::fs::read(trial_folder(&bench.path("runs/study"), number).join("summary.json")).unwrap()
    };
    let before = summary(1);
    bench.write("study.toml", &simulated("Is it really?", 3, "5%").replace("1 EUR", "2 EUR"));
    let answer = bench.dyno_good(&["run", "study.toml"]);
    assert_eq!(summary(1), before);
    let findings = bench.json("runs/study/findings.json");
    assert_eq!(findings["title"], "Is it really?");
    assert_eq!(findings["variants"][0]["durability"], "simulated");
    // More repetitions after results could be seen count as a second look.
    assert_eq!(findings["repeated_looks"]["looks"], 2);
    let states: Vec<_> = findings["trials"].as_array().unwrap().iter().collect();
    assert!(states.len() == 6 && states.iter().all(|t| t["state"] == "finished"), "{}", answer.err);
    let manifest = bench.json("runs/study/manifest.json");
    assert_eq!(manifest["extensions"][0]["trials_before"], 4);
    assert_eq!(manifest["extensions"][0]["trials_ended"], 4);
    assert_eq!(manifest["threshold"], 0.05);
    // Fewer repetitions, or incomparable trials, are refused by name.
    bench.write("study.toml", &simulated("Is it?", 1, "3%"));
    let answer = bench.dyno(&["run", "study.toml"]);
    assert!(answer.code == 2 && answer.err.contains("`repetitions` was lowered"), "{}", answer.err);
    bench.write("study.toml", &simulated("Is it?", 3, "3%").replace("\"3s\"", "\"4s\""));
    let answer = bench.dyno(&["run", "study.toml"]);
    assert!(answer.err.contains("duration_s was 3.0, is now 4.0"), "{}", answer.err);
}

#[test]
fn two_at_once_do_not_mix_their_records() {
    let bench = Workbench::new();
    let text = STUDY
        .replace("\"mariadb\"\nsettings = { innodb_buffer_pool_size = \"64MiB\" }", "\"sqlite\"");
    bench.write("study.toml", &text.replace("repetitions = 4", "repetitions = 2"));
    let mut first = bench.start(&["run", "study.toml"]);
    first.wait_for(&["trial 1/2", "measuring"]);
    // It stands still until the other is refused.
    first.signal(Signal::STOP);
    let second = bench.dyno(&["run", "study.toml"]);
    first.signal(Signal::CONT);
    assert_eq!(second.code, 1);
    let message = format!("another Dyno (process {}) is writing this run", first.child.id());
    assert!(second.err.contains(&message), "{}", second.err);
    assert_eq!(first.end(), 0);
    bench.dyno_good(&["run", "study.toml"]);
}

#[test]
fn a_folder_may_have_any_name() {
    use std::os::unix::ffi::OsStrExt;
    let bench = Workbench::new();
    bench.write("study.toml", &simulated("Is it?", 1, "3%"));
    let out = std::ffi::OsStr::from_bytes(b"out\xff\xfe");
    let mut command = bench.command(&["run", "study.toml"]);
    let output = command.arg("--out").arg(out).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(bench.path("").join(out).join("report.html").exists());
}

#[test]
fn a_record_of_a_newer_version_is_refused() {
    let bench = Workbench::new();
    bench.write("manifest.json", r#"{"format": 99, "dyno": "7.0.0"}"#);
    let answer = bench.dyno(&["report", "."]);
    assert_eq!(answer.code, 1);
    assert!(answer.err.contains("7.0.0") && answer.err.contains("format 99"), "{}", answer.err);
}
