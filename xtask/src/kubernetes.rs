//! `cargo xtask kubernetes`: runs on pods of a real two-node cluster that lose pods, a node or the API server, and
//! what lost runs leave. `scripts/kubernetes` starts the cluster here.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::shell::{output, root, say, succeed};

const USAGE: &str = "\
usage: cargo xtask kubernetes [--programs FOLDER] [--dyno PROGRAM] [--only TRY]
Kubernetes is built into the folder if it is not there (target/kubernetes by default), which takes half an hour.";

/// Returns what is wrong afterwards.
type Try = fn(&Cluster) -> anyhow::Result<Vec<String>>;

const TRIES: [(&str, Try); 14] = [
    ("one-pod", one_pod),
    ("two-pods", two_pods),
    ("copied", copied),
    ("restricted", restricted),
    ("quota", quota),
    ("ended", ended),
    ("deleted-pod", deleted_pod),
    ("drained-node", drained_node),
    ("node-cut-off", node_cut_off),
    ("api-away", api_away),
    ("interrupted", interrupted),
    ("killed", killed),
    ("killed-without-api", killed_without_api),
    ("undeletable", undeletable),
];

const POLL: Duration = Duration::from_millis(200);
/// For a run, and for its output.
const RUN_LIMIT: Duration = Duration::from_secs(600);
/// For pods and Jobs to vanish: a guard that cannot reach the API server pauses.
const GONE_LIMIT: Duration = Duration::from_secs(180);

/// Nodes and their network namespaces.
const NODES: [&str; 2] = ["dyno-k1", "dyno-k2"];

/// Tries all or one, with a line each; fails if anything is wrong.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let (mut programs, mut dyno, mut only) = (root().join("target/kubernetes"), None, None);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("`{word}` wants a value\n{USAGE}"));
        match word.as_str() {
            "--programs" => programs = PathBuf::from(value()?),
            "--dyno" => dyno = Some(PathBuf::from(value()?)),
            "--only" => only = Some(value()?.clone()),
            other => bail!("`{other}` is unknown\n{USAGE}"),
        }
    }
    let is_wanted = |name: &str| only.as_ref().is_none_or(|only| only == name);
    let tries: Vec<_> = TRIES.iter().filter(|(name, _)| is_wanted(name)).collect();
    if tries.is_empty() {
        let names: Vec<&str> = TRIES.iter().map(|(name, _)| *name).collect();
        bail!("there is no such try; there are {}", names.join(", "));
    }
    succeed(Command::new(root().join("scripts/kubernetes-build")).arg(&programs))?;
    let dyno = dyno.map_or_else(crate::perf::build, Ok)?;
    let cluster = Cluster::start(&programs, &dyno)?;
    let mut n_wrong = 0;
    for (name, what) in tries {
        let mut wrong = what(&cluster).unwrap_or_else(|error| vec![format!("{error:#}")]);
        wrong.extend(cluster.left()?);
        n_wrong += usize::from(!wrong.is_empty());
        let verdict = if wrong.is_empty() {
            "as expected, nothing left".to_owned()
        } else {
            wrong.join("; ")
        };
        say(&format!("{name:<20}{verdict}"));
    }
    let folder = cluster.stop()?;
    match n_wrong {
        0 => {
            std::fs::remove_dir_all(&folder).context("the folder of the cluster cannot be removed")
        }
        n => bail!("{n} tries went wrong; logs and records are in {}", folder.display()),
    }
}

/// Stopped on drop.
struct Cluster {
    programs: PathBuf,
    dyno: PathBuf,
    /// Data of the cluster and the studies; kept if something is wrong.
    folder: PathBuf,
}

impl Cluster {
    fn start(programs: &Path, dyno: &Path) -> anyhow::Result<Cluster> {
        // The database's user must reach it.
        let folder = tempfile::tempdir_in("/var/tmp").context("cannot make a folder")?.keep();
        let absolute = |path: &Path| std::path::absolute(path).context("there is no such path");
        let cluster = Cluster { programs: absolute(programs)?, dyno: absolute(dyno)?, folder };
        std::fs::create_dir(cluster.folder.join("bench")).context("cannot make a folder")?;
        // The servers' users enter it.
        std::fs::set_permissions(&cluster.folder, std::fs::Permissions::from_mode(0o755))
            .with_context(|| format!("cannot open {}", cluster.folder.display()))?;
        let [programs, dyno] = [&cluster.programs, &cluster.dyno];
        succeed(cluster.script("up").arg(programs).arg(dyno))?;
        Ok(cluster)
    }

    fn script(&self, what: &str) -> Command {
        let mut command = Command::new(root().join("scripts/kubernetes"));
        command.arg(what).arg(self.folder.join("cluster"));
        command
    }

    fn stop(self) -> anyhow::Result<PathBuf> {
        succeed(&mut self.script("down"))?;
        let folder = self.folder.clone();
        std::mem::forget(self);
        Ok(folder)
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.join("cluster/kubeconfig")
    }

    /// On the first node, with access to the cluster.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", NODES[0])).arg(program);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.programs.display()));
        command.env("KUBECONFIG", self.kubeconfig());
        command.current_dir(self.folder.join("bench")).stdin(Stdio::null());
        command
    }

    fn kubectl(&self, words: &str) -> anyhow::Result<String> {
        output(self.command(Path::new("kubectl")).args(words.split(' ')))
    }

    /// `times`: number of trials, and seconds of each.
    fn run(&self, name: &str, hosts: &str, times: (u32, u32)) -> anyhow::Result<Run> {
        self.run_as(&self.kubeconfig(), (name, hosts), times)
    }

    fn run_as(
        &self,
        kubeconfig: &Path,
        (name, hosts): (&str, &str),
        (repetitions, seconds): (u32, u32),
    ) -> anyhow::Result<Run> {
        let bench = self.folder.join("bench");
        let study = format!(
            "title = \"Pods: {name}\"\n[database.server]\nurl = \"mysql://bench:pods@10.99.0.1/bench\"\n\
             [workload.oltp_point_select]\ntable_size = 1000\n[host.load]\n{hosts}\n[design]\n\
             generators = \"load\"\nclients = 4\nrate = 200\nrepetitions = {repetitions}\n\
             warm_up = \"1s\"\nduration = \"{seconds}s\"\nrest = \"0s\"\nvoid_blocks = \"keep\"\n"
        );
        std::fs::write(bench.join(format!("{name}.toml")), study)?;
        let log = bench.join(format!("{name}.log"));
        let out = std::fs::File::create(&log).context("cannot write a log")?;
        let mut command = self.command(&self.dyno);
        command
            .env("KUBECONFIG", kubeconfig)
            .args(["run", &format!("{name}.toml")])
            .stdout(Stdio::null())
            .stderr(out);
        let child = command.spawn().context("cannot run Dyno")?;
        Ok(Run { child, log, folder: bench.join("runs").join(name) })
    }

    /// Returns once the first trial is measured.
    fn measuring(&self, name: &str, hosts: &str, times: (u32, u32)) -> anyhow::Result<Run> {
        let mut run = self.run(name, hosts, times)?;
        run.wait_for("measuring")?;
        Ok(run)
    }

    fn left(&self) -> anyhow::Result<Vec<String>> {
        let until = Instant::now() + GONE_LIMIT;
        loop {
            let all = self.kubectl("get jobs,pods --all-namespaces --output=name")?;
            if all.is_empty() || Instant::now() >= until {
                return Ok(all.lines().map(|one| format!("{one} is left")).collect());
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Err(error) = succeed(&mut self.script("down")) {
            say(&format!("the cluster in {} could not be ended: {error:#}", self.folder.display()));
        }
    }
}

struct Run {
    child: Child,
    log: PathBuf,
    folder: PathBuf,
}

impl Drop for Run {
    fn drop(&mut self) {
        // Already ended, unless something went wrong.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Ended {
    code: Option<i32>,
    said: String,
    trials: Vec<String>,
}

impl Run {
    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn wait_for(&mut self, words: &str) -> anyhow::Result<()> {
        let until = Instant::now() + RUN_LIMIT;
        while !self.said().contains(words) {
            if self.child.try_wait()?.is_some() || Instant::now() >= until {
                bail!("it did not say “{words}”: {}", self.said());
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = Pid::from_raw(self.child.id().cast_signed()).context("it has no id")?;
        kill_process(pid, signal).context("it cannot be signalled")
    }

    fn end(mut self) -> anyhow::Result<Ended> {
        let until = Instant::now() + RUN_LIMIT;
        let code = loop {
            match self.child.try_wait()? {
                Some(status) => break status.code(),
                None if Instant::now() >= until => {
                    self.child.kill()?;
                    self.child.wait()?;
                    bail!("it did not end: {}", self.said());
                }
                None => std::thread::sleep(POLL),
            }
        };
        let findings = std::fs::read_to_string(self.folder.join("findings.json"));
        let findings: serde_json::Value =
            serde_json::from_str(&findings.unwrap_or_default()).unwrap_or_default();
        let states = findings["trials"].as_array().into_iter().flatten();
        let state = |trial: &serde_json::Value| trial["state"].as_str().map(str::to_owned);
        Ok(Ended { code, said: self.said(), trials: states.filter_map(state).collect() })
    }
}

impl Ended {
    /// Expects this exit code and all these words in the output.
    fn wrong(&self, code: i32, words: &[&str]) -> Vec<String> {
        let mut wrong: Vec<String> = words
            .iter()
            .filter(|words| !self.said.contains(**words))
            .map(|words| format!("it did not say “{words}”"))
            .collect();
        if self.code != Some(code) {
            wrong.push(format!("it ended with {:?} in place of {code}", self.code));
        }
        wrong.extend((!wrong.is_empty()).then(|| format!("it said: {}", self.said)));
        wrong
    }

    /// Also expects that a trial failed and the last one finished.
    fn wrong_after_loss(&self, words: &[&str]) -> Vec<String> {
        let mut wrong = self.wrong(1, words);
        let (first, last) = (self.trials.first(), self.trials.last());
        if first.is_none_or(|state| state != "failed")
            || last.is_none_or(|state| state != "finished")
        {
            wrong.push(format!("its trials are {:?}", self.trials));
        }
        wrong
    }
}

/// The table of hosts for this many pods, with more fields.
fn pods(n: u32, fields: &str) -> String {
    let wait = if fields.contains("wait") { "" } else { ", wait = \"60s\"" };
    format!("kubernetes = {{ image = \"localhost/dyno:1\", replicas = {n}{wait}{fields} }}")
}

fn one_pod(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    Ok(cluster.run("one-pod", &pods(1, ""), (2, 4))?.end()?.wrong(0, &[]))
}

fn two_pods(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let ended = cluster.run("two-pods", &pods(2, ""), (2, 4))?.end()?;
    Ok(ended.wrong(0, &NODES.map(|node| format!(" on {node})")).each_ref().map(String::as_str)))
}

fn copied(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let hosts = format!("{}\ncopy = true", pods(1, ""));
    Ok(cluster.run("copied", &hosts, (1, 4))?.end()?.wrong(0, &[]))
}

/// Pods refused by the namespace's security profile, and pods admitted by it.
fn restricted(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    cluster.kubectl("create namespace strict")?;
    cluster.kubectl("label namespace strict pod-security.kubernetes.io/enforce=restricted")?;
    let fields = ", namespace = \"strict\", wait = \"10s\"";
    let refused = cluster.run("restricted", &pods(1, fields), (1, 4))?.end()?;
    let mut wrong = refused.wrong(1, &["violates PodSecurity", "`user = 1000`"]);
    let fields = ", namespace = \"strict\", user = 1000";
    let admitted = cluster.run("admitted", &pods(1, fields), (1, 4))?.end()?;
    wrong.extend(admitted.wrong(0, &[]));
    let hosts = format!("{}\ncopy = true", pods(1, fields));
    wrong.extend(cluster.run("admitted-copied", &hosts, (1, 4))?.end()?.wrong(0, &[]));
    Ok(wrong)
}

fn quota(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    cluster.kubectl("create namespace full")?;
    cluster.kubectl("create quota none --hard=pods=0 --namespace=full")?;
    let fields = ", namespace = \"full\", wait = \"10s\"";
    Ok(cluster.run("quota", &pods(1, fields), (1, 4))?.end()?.wrong(1, &["exceeded quota"]))
}

/// The Job's time ends during the run.
fn ended(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let ended = cluster.run("ended", &pods(1, ", time = \"20s\""), (4, 12))?.end()?;
    let words = ["has ended (DeadlineExceeded", "requesting it again"];
    let mut wrong = ended.wrong(1, &words);
    if !ended.trials.iter().any(|state| state == "finished") {
        wrong.push(format!("its trials are {:?}", ended.trials));
    }
    let checked = cluster.command(&cluster.dyno).args(["check", "ended.toml"]).output()?;
    if !String::from_utf8_lossy(&checked.stdout).contains("are requested for 20 s") {
        wrong.push("`dyno check` does not say that the time is too short".to_owned());
    }
    Ok(wrong)
}

fn deleted_pod(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let run = cluster.measuring("deleted-pod", &pods(2, ""), (3, 10))?;
    cluster.kubectl("delete pods --field-selector=spec.nodeName=dyno-k2 --wait=false")?;
    Ok(run.end()?.wrong_after_loss(&["is in place of"]))
}

/// The node accepts no pods any more, and its pods are deleted.
fn drained_node(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let hosts = format!("{}\nlost = \"continue\"", pods(2, ", wait = \"20s\""));
    let run = cluster.measuring("drained-node", &hosts, (3, 10))?;
    cluster.kubectl("cordon dyno-k2")?;
    cluster.kubectl("delete pods --field-selector=spec.nodeName=dyno-k2 --wait=false")?;
    let ended = run.end();
    cluster.kubectl("uncordon dyno-k2")?;
    Ok(ended?.wrong_after_loss(&["the run continues with the other hosts"]))
}

fn node_cut_off(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let hosts = format!("{}\nlost = \"continue\"", pods(2, ""));
    let run = cluster.measuring("node-cut-off", &hosts, (3, 10))?;
    succeed(&mut cluster.script("cut"))?;
    let ended = run.end();
    succeed(&mut cluster.script("join"))?;
    cluster.kubectl("wait --for=condition=Ready node/dyno-k2 --timeout=120s")?;
    Ok(ended?.wrong_after_loss(&["the run continues with the other hosts"]))
}

/// Killed, and started again once Dyno waits for it.
fn api_away(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let mut run = cluster.measuring("api-away", &pods(1, ""), (3, 10))?;
    succeed(cluster.script("api").arg("stop"))?;
    let waited = run.wait_for("retrying");
    succeed(cluster.script("api").arg("start"))?;
    waited?;
    Ok(run.end()?.wrong_after_loss(&[]))
}

fn interrupted(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let run = cluster.measuring("interrupted", &pods(2, ""), (1, 60))?;
    run.signal(Signal::INT)?;
    Ok(run.end()?.wrong(130, &[]))
}

fn killed(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let run = cluster.measuring("killed", &pods(2, ""), (1, 60))?;
    run.signal(Signal::KILL)?;
    run.end()?;
    Ok(Vec::new())
}

/// The guard of a killed run tries until the API server is back.
fn killed_without_api(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let run = cluster.measuring("killed-without-api", &pods(1, ""), (1, 60))?;
    succeed(cluster.script("api").arg("stop"))?;
    let killed = run.signal(Signal::KILL).and_then(|()| run.end());
    // Longer than the guard's first two tries.
    std::thread::sleep(POLL * 40);
    succeed(cluster.script("api").arg("start"))?;
    killed.map(|_| Vec::new())
}

/// A user without the right to delete Jobs is told which one is left; the cluster deletes it when its time ends.
fn undeletable(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    cluster.kubectl(
        "create role starts --verb=get,list,create --resource=jobs,pods,pods/exec,events",
    )?;
    cluster.kubectl("create rolebinding starts --role=starts --user=starter")?;
    let kubeconfig = cluster.folder.join("bench/starter.kubeconfig");
    let text = std::fs::read_to_string(cluster.kubeconfig())?;
    std::fs::write(&kubeconfig, text.replace("{token:", "{as: starter, token:"))?;
    let hosts = pods(1, ", time = \"60s\"");
    let run = cluster.run_as(&kubeconfig, ("undeletable", &hosts), (1, 4))?;
    Ok(run
        .end()?
        .wrong(0, &["could not be released", "delete job dyno-load-", "the cluster ends Job"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_ended_otherwise_is_wrong() {
        let check = |(code, said, trials): (i32, &str, &[&str]), expected: usize| {
            let trials = trials.iter().map(|state| (*state).to_owned()).collect();
            let ended = Ended { code: Some(code), said: said.to_owned(), trials };
            let wrong = ended.wrong_after_loss(&["is in place of"]);
            assert_eq!(wrong.len(), expected, "{wrong:?}");
        };
        let said = "pod a is in place of b";
        check((1, said, &["failed", "finished"]), 0);
        check((1, said, &["failed", "failed"]), 1);
        check((1, said, &[]), 1);
        // And what it said.
        check((0, said, &["failed", "finished"]), 2);
        check((1, "pod a", &["failed", "finished"]), 2);
    }

    #[test]
    fn pods_are_waited_for_a_minute_unless_a_try_says_otherwise() {
        assert!(pods(2, ", user = 1000").contains("replicas = 2, wait = \"60s\", user = 1000"));
        assert_eq!(pods(1, ", wait = \"10s\"").matches("wait").count(), 1);
    }
}
