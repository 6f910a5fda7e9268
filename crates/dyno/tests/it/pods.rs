//! Hosts in pods of a Kubernetes cluster, with a script for `kubectl`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use serde_json::Value;

use crate::agents::{committed, kill, study, summary};
use crate::reach::{Database, agents_with, names, trials};
use crate::support::{Answer, DataFolder, Running, Workbench, await_end, await_that};

/// Its Dyno finds that `kubectl`.
struct Pods {
    bench: Workbench,
}

impl Pods {
    fn new() -> Pods {
        let bench = Workbench::new();
        fs::create_dir(bench.path("bin")).unwrap();
        bench.write("bin/kubectl", include_str!("kubectl.sh"));
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(bench.path("bin/kubectl"), executable).unwrap();
        Pods { bench }
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = self.bench.command(arguments);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.bench.path("bin").display()));
        command.env("XDG_CACHE_HOME", self.bench.path("cache"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Answer {
        Answer::from(self.command(arguments).output().unwrap())
    }

    /// Waits until the first trial is measured.
    fn measuring(&self) -> Running {
        let mut run = Running::of(self.command(&["run", "study.toml"]));
        run.wait_for(&["trial 1/", "measuring"]);
        run
    }

    /// As the end of its container does.
    fn kill_agent(&self, pod: &str) {
        let state = self.bench.path("bin/state");
        let agents = agents_with(&[("TEST_PODS", state.to_str().unwrap()), ("TEST_POD", pod)]);
        assert_eq!(agents.len(), 1, "{agents:?}");
        kill(agents[0], Signal::KILL);
    }

    /// Commands of `kubectl` with these words.
    fn count(&self, words: &str) -> usize {
        fs::read_to_string(self.state("log")).unwrap().matches(words).count()
    }

    fn state(&self, name: &str) -> std::path::PathBuf {
        self.bench.path("bin/state").join(name)
    }

    fn hosts(image: &str) -> String {
        let is_refused =
            ["never/", "restricted/", "invalid/"].iter().any(|one| image.starts_with(one));
        let wait = if is_refused { "3s" } else { "120s" };
        format!(
            "[host.load]\nkubernetes = {{ image = \"{image}\", replicas = 2, namespace = \"perf\", \
             cpu = 2, memory = \"1Gi\", node_selector = \"disk=ssd\", avoid = \"app=mysql\", \
             wait = \"{wait}\" }}\nprogram = \"{}\"",
            env!("CARGO_BIN_EXE_dyno")
        )
    }
}

/// A server that nobody has started, as hosts come first.
fn without_server(hosts: &str) -> String {
    let text = study(hosts, "duration = \"1s\"\ngenerators = \"load\"");
    text.replace("product = \"null-mysql\"", "url = \"mysql://me@127.0.0.1:1/test\"")
}

#[test]
fn pods_are_started_used_and_deleted() {
    let (pods, database) = (Pods::new(), Database::start());
    let design = "duration = \"1s\"\nrepetitions = 2";
    pods.bench.write("study.toml", &database.study(&Pods::hosts("reg/dyno:1"), design));
    let answer = pods.run(&["run", "study.toml"]);
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    assert!(
        answer.err.contains("0 of 2 pods run (pod-1: Unschedulable: 0/3 nodes"),
        "{}",
        answer.err
    );
    let step = &summary(&pods.bench, "study", 2)["steps"][0];
    assert_eq!(names(step), ["load-1", "load-2"]);
    let machine = step["hosts"][1]["machine"].as_str().unwrap();
    assert!(machine.ends_with(", pod pod-2 on k2"), "{machine}");
    let log = fs::read_to_string(pods.state("log")).unwrap();
    assert!(log.lines().all(|line| line.starts_with("--namespace=perf ")), "{log}");
    assert_eq!(log.matches("apply").count(), 1, "once a run: {log}");
    assert!(!pods.state("job").exists());
    // The applied manifest is the plan's with another token, which is in the selectors.
    let manifest = fs::read_to_string(pods.state("manifest")).unwrap();
    let applied: Value = serde_json::from_str(&manifest).unwrap();
    let token = applied["metadata"]["labels"]["dyno-token"].as_str().unwrap().to_owned();
    assert!(token.len() == 12 && log.contains(&format!("delete job dyno-load-{token} ")));
    let shown = pods.run(&["plan", "study.toml", "--manifests"]);
    let shown: Value = serde_json::from_str(&shown.out.replace("000000000000", &token)).unwrap();
    assert_eq!(shown, applied);
    // Fields of a Job in API version batch/v1.
    assert_eq!((&applied["apiVersion"], &applied["kind"]), (&"batch/v1".into(), &"Job".into()));
    let spec = &applied["spec"];
    for (field, value) in [("completions", 2), ("parallelism", 2), ("activeDeadlineSeconds", 3600)]
    {
        assert_eq!(spec[field], value, "{field}");
    }
    let pod = &spec["template"]["spec"];
    assert_eq!(pod["nodeSelector"]["disk"], "ssd");
    assert_eq!(pod["containers"][0]["resources"]["limits"]["memory"], "1Gi");
    assert_eq!(pod["containers"][0]["resources"]["requests"]["cpu"], "2");
    let apart =
        &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(apart[0]["labelSelector"]["matchExpressions"][0]["key"], "dyno-token");
    assert_eq!(apart[1]["labelSelector"]["matchLabels"]["app"], "mysql");
    assert_eq!(apart[1]["topologyKey"], "kubernetes.io/hostname");
    assert_eq!(spec["template"]["metadata"]["labels"]["dyno-token"], token.as_str());
}

#[test]
fn pods_are_deleted_whatever_happens() {
    let (pods, database) = (Pods::new(), Database::start());
    let write = |image: &str, design: &str| {
        pods.bench.write("study.toml", &database.study(&Pods::hosts(image), design));
    };
    for (image, expected) in [
        ("refused/image", "forbidden: no quota"),
        ("never/image", "does not run 2 pods within 3 s: 0 of 2 pods run (pod-1: Unschedulable"),
        ("invalid/image", "does not run 2 pods: 0 of 2 pods run (pod-1: InvalidImageName"),
    ] {
        write(image, "duration = \"1s\"");
        let answer = pods.run(&["run", "study.toml", "--new"]);
        assert_eq!(answer.code, 1, "{}", answer.err);
        assert!(
            answer.err.contains("host load: ") && answer.err.contains(expected),
            "{}",
            answer.err
        );
        assert!(!pods.state("job").exists());
    }
    write("reg/dyno:1", "duration = \"20s\"");
    for signal in [Signal::INT, Signal::KILL] {
        let mut run = Running::of(pods.command(&["run", "study.toml", "--new"]));
        run.wait_for(&["trial 1/1", "measuring"]);
        assert!(pods.state("job").exists());
        let agents = crate::agents::agents(run.child.id());
        assert_eq!(agents.len(), 2);
        run.signal(signal);
        run.child.wait().unwrap();
        await_that("the pods are deleted", || !pods.state("job").exists());
        agents.into_iter().for_each(await_end);
    }
}

#[test]
fn the_program_is_copied_to_pods() {
    let (pods, database) = (Pods::new(), Database::start());
    let hosts = Pods::hosts("reg/dyno:1").replace("replicas = 2", "replicas = 1");
    let hosts = format!("{hosts}\ncopy = true");
    pods.bench.write("study.toml", &database.study(&hosts, "duration = \"1s\""));
    let answer = pods.run(&["run", "study.toml"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let copies: Vec<_> = fs::read_dir(pods.bench.path("cache/dyno/agents")).unwrap().collect();
    let [Ok(copy)] = &copies[..] else { panic!("{copies:?}") };
    let length = fs::metadata(env!("CARGO_BIN_EXE_dyno")).unwrap().len();
    assert_eq!(copy.metadata().unwrap().len(), length);
    assert!(committed(&summary(&pods.bench, "study", 1)["steps"][0]) > 0.0);
}

#[test]
fn a_job_that_has_ended_is_requested_again() {
    let (pods, database) = (Pods::new(), Database::start());
    let design = "duration = \"4s\"\nworkers = 1\nrepetitions = 2";
    pods.bench.write("study.toml", &database.study(&Pods::hosts("reg/dyno:1"), design));
    let mut run = pods.measuring();
    let condition =
        r#""conditions":[{"type":"Failed","status":"True","reason":"DeadlineExceeded"}]"#;
    fs::write(pods.state("job"), condition).unwrap();
    fs::write(pods.state("pods"), "").unwrap();
    pods.kill_agent("pod-1");
    run.wait_for(&["Job dyno-load-", "has ended (DeadlineExceeded); requesting it again"]);
    assert_eq!(run.end(), 1);
    let trials = trials(&pods.bench);
    let message = trials[0]["message"].as_str().unwrap();
    assert!(message.contains("its agent's command ended with exit code 137"), "{message}");
    assert_eq!(trials[1]["state"], "finished", "{:#}", trials[1]);
    assert_eq!(pods.count("apply"), 2);
}

#[test]
fn why_a_cluster_refuses_pods_is_said() {
    let (pods, database) = (Pods::new(), Database::start());
    let hosts = Pods::hosts("restricted/image:1");
    pods.bench.write("study.toml", &database.study(&hosts, "duration = \"1s\""));
    let answer = pods.run(&["run", "study.toml"]);
    assert_eq!(answer.code, 1, "{}", answer.err);
    for part in [
        "Kubernetes: Warning: would violate PodSecurity \"restricted:latest\"",
        "within 3 s: 0 of 2 pods run (FailedCreate: Error creating: pods are forbidden",
        "`user = 1000`",
    ] {
        assert!(answer.err.contains(part), "{part} is not in {}", answer.err);
    }
    // As the message advises, so that the profile admits them.
    let hosts = hosts.replace("replicas = 2", "replicas = 2, user = 1000").replace("3s", "120s");
    pods.bench.write("study.toml", &database.study(&hosts, "duration = \"1s\""));
    let answer = pods.run(&["run", "study.toml", "--new"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let manifest = fs::read_to_string(pods.state("manifest")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let pod = &manifest["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsUser"], 1000);
    let container = &pod["containers"][0]["securityContext"];
    assert_eq!(container["capabilities"]["drop"][0], "ALL");
    assert_eq!(container["allowPrivilegeEscalation"], false);
}

#[test]
fn a_pod_takes_the_place_of_the_one_that_was_deleted() {
    let (pods, database) = (Pods::new(), Database::start());
    let design = "duration = \"10s\"\nworkers = 1\nrepetitions = 2";
    pods.bench.write("study.toml", &database.study(&Pods::hosts("reg/dyno:1"), design));
    let mut run = pods.measuring();
    fs::write(pods.state("pods"), "1 pod-2 k2\n0 pod-9 k9\n").unwrap();
    pods.kill_agent("pod-1");
    run.wait_for(&["Kubernetes: pod pod-9 is in place of pod-1"]);
    assert_eq!(run.end(), 1);
    let hosts = &summary(&pods.bench, "study", 2)["steps"][0]["hosts"];
    let machine = |nth: usize| hosts[nth]["machine"].as_str().unwrap();
    assert!(machine(0).ends_with(", pod pod-9 on k9"), "{}", machine(0));
    assert!(machine(1).ends_with(", pod pod-2 on k2"), "{}", machine(1));
}

#[test]
fn trials_run_in_the_pod_that_is_there_now() {
    let (pods, data) = (Pods::new(), DataFolder::new());
    let text = format!(
        "title = \"Does it follow its pod?\"\n[database.a]\nproduct = \"sqlite\"\ntrials_on = \"load\"\n\
         [workload.oltp_point_select]\ntable_size = 1000\n{}\n[design]\nclients = 1\nrepetitions = 2\n\
         warm_up = \"0s\"\nduration = \"4s\"\nrest = \"0s\"\nvoid_blocks = \"keep\"\n\
         data_folder = \"{}\"\n",
        Pods::hosts("reg/dyno:1"),
        data.text()
    );
    pods.bench.write("study.toml", &text);
    let mut run = pods.measuring();
    // The second trial should run in that pod.
    fs::write(pods.state("pods"), "0 pod-1 k1\n1 pod-9 k9\n").unwrap();
    run.wait_for(&["Kubernetes: pod pod-9 is in place of pod-2"]);
    assert_eq!(run.end(), 0);
    let host = &summary(&pods.bench, "study", 2)["host"];
    assert_eq!((&host["name"], &host["place"]), (&"load-2".into(), &"pod pod-9 on k9".into()));
}

#[test]
fn a_run_goes_on_with_the_pods_that_are_left_if_the_study_says_so() {
    let (pods, database) = (Pods::new(), Database::start());
    // A lost pod has a minute to come back, but at most the time that pods are waited for.
    let hosts = format!("{}\nlost = \"continue\"", Pods::hosts("reg/dyno:1"));
    let hosts = hosts.replace("120s", "8s");
    let design = "duration = \"10s\"\nworkers = 1\nrepetitions = 3";
    pods.bench.write("study.toml", &database.study(&hosts, design));
    let mut run = pods.measuring();
    fs::write(pods.state("pods"), "0 pod-1 k1\n").unwrap();
    pods.kill_agent("pod-2");
    run.wait_for(&["host load-2", "not found", "the run continues with the other hosts"]);
    assert_eq!(run.end(), 1);
    let trials = trials(&pods.bench);
    for (nth, trial) in trials.iter().enumerate().skip(1) {
        assert_eq!(trial["state"], "finished", "{trial:#}");
        let step = &summary(&pods.bench, "study", nth as u32 + 1)["steps"][0];
        assert_eq!((step["due"].as_u64(), names(step)), (Some(6000), vec!["load-1"]));
    }
}

#[test]
fn pods_that_do_not_come_back_end_the_run() {
    let (pods, database) = (Pods::new(), Database::start());
    let hosts = Pods::hosts("reg/dyno:1").replace("120s", "8s");
    let design = "duration = \"10s\"\nworkers = 1\nrepetitions = 3";
    pods.bench.write("study.toml", &database.study(&hosts, design));
    let mut run = pods.measuring();
    fs::write(pods.state("pods"), "0 pod-1 k1\n").unwrap();
    pods.kill_agent("pod-2");
    run.wait_for(&["host load: Kubernetes does not run 2 pods within 8 s: 1 of 2 pods run"]);
    run.wait_for(&["earlier trials used this host", "the same command requests hosts again"]);
    assert_eq!(run.end(), 1);
    let begun = fs::read_dir(pods.bench.path("runs/study/trials")).unwrap().count();
    assert_eq!(begun, 2, "the third one was not begun");
    await_that("the pods are deleted", || !pods.state("job").exists());
}

#[test]
fn an_api_server_that_is_away_for_a_while_is_waited_for() {
    let (pods, database) = (Pods::new(), Database::start());
    let design = "duration = \"10s\"\nworkers = 1\nrepetitions = 2";
    pods.bench.write("study.toml", &database.study(&Pods::hosts("reg/dyno:1"), design));
    let mut run = pods.measuring();
    fs::write(pods.state("away"), "").unwrap();
    // Connections to pods pass through it.
    pods.kill_agent("pod-1");
    run.wait_for(&["get job,pods", "10.0.0.1:6443 was refused", "retrying"]);
    fs::remove_file(pods.state("away")).unwrap();
    assert_eq!(run.end(), 1);
    let trials = trials(&pods.bench);
    assert_eq!((&trials[0]["state"], &trials[1]["state"]), (&"failed".into(), &"finished".into()));
    assert_eq!(pods.count("apply"), 1, "the pods were there all the time");
    assert!(!pods.state("job").exists());
}

#[test]
fn pods_are_waited_for_by_the_clock() {
    let pods = Pods::new();
    fs::create_dir_all(pods.state("")).unwrap();
    // Each look takes a second; pods are waited for for three.
    fs::write(pods.state("slow"), "").unwrap();
    pods.bench.write("study.toml", &without_server(&Pods::hosts("never/image")));
    let answer = pods.run(&["run", "study.toml"]);
    assert_eq!(answer.code, 1, "{}", answer.err);
    let looks = pods.count("get job,pods");
    assert!((1..=3).contains(&looks), "{looks} looks");
}

#[test]
fn a_time_that_is_too_short_is_told_beforehand() {
    let bench = Workbench::new();
    let hosts = Pods::hosts("reg/dyno:1").replace("replicas = 2", "replicas = 2, time = \"1s\"");
    bench.write("study.toml", &without_server(&hosts));
    let told = "the hosts of `load` are requested for 1 s";
    let answer = bench.dyno_good(&["check", "study.toml"]);
    assert!(answer.out.contains("warning: ") && answer.out.contains(told), "{}", answer.out);
    let answer = bench.dyno_good(&["plan", "study.toml"]);
    assert!(answer.out.contains(told), "{}", answer.out);
}

#[test]
fn a_job_that_cannot_be_deleted_is_named() {
    let (pods, database) = (Pods::new(), Database::start());
    let hosts = Pods::hosts("reg/dyno:1");
    pods.bench.write("study.toml", &database.study(&hosts, "duration = \"1s\""));
    fs::create_dir_all(pods.state("")).unwrap();
    fs::write(pods.state("keeps"), "").unwrap();
    let answer = pods.run(&["run", "study.toml"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let manifest = fs::read_to_string(pods.state("manifest")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let job = manifest["metadata"]["name"].as_str().unwrap();
    for part in [
        "the hosts of load could not be released: ",
        &format!("`kubectl --namespace=perf delete job {job} --ignore-not-found --wait=false`"),
        &format!("the cluster ends Job {job} 1 h after its start"),
    ] {
        assert!(answer.err.contains(part), "{part} is not in {}", answer.err);
    }
    // The guard continues to try.
    fs::remove_file(pods.state("keeps")).unwrap();
    await_that("the Job is deleted", || !pods.state("job").exists());
}

#[test]
fn only_pods_have_a_manifest() {
    let bench = Workbench::new();
    bench.write("study.toml", &study("[host.load]", "duration = \"1s\"\ngenerators = \"load\""));
    let answer = bench.dyno_good(&["plan", "study.toml", "--manifests"]);
    assert!(
        answer.out.is_empty() && answer.err.contains("no hosts of this study"),
        "{}",
        answer.err
    );
}
