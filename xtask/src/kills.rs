//! `cargo xtask kills`: runs of deployments of three members and more that are killed (`SIGKILL` to Dyno) at random
//! moments, and what is left of them after the next command of Dyno: processes, folders, sockets, shared memory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use dyno_units::Seed;

const USAGE: &str = "\
usage: cargo xtask kills [--runs N] [--seed N] [--within SECONDS] [--dyno PROGRAM] [--folder FOLDER]
The folder is for data, empty, and one that the servers' user can enter.";

/// The deployments, by turns: a name, and the lines of their database.
const DEPLOYMENTS: [(&str, &str); 4] = [
    ("PostgreSQL, 2 replicas", "product = \"postgresql\"\nreplicas = 2"),
    ("MariaDB, Galera of 3", "product = \"mariadb\"\ncluster = \"galera\"\nnodes = 3"),
    (
        "PostgreSQL, 1 replica, pgbouncer",
        "product = \"postgresql\"\nreplicas = 1\nbehind = { product = \"pgbouncer\" }",
    ),
    ("MariaDB, 2 shards and router", "product = \"mariadb\"\nshards = 2"),
];

/// The variable by which Dyno marks the processes of its servers.
const MARK: &str = "DYNO_FOLDER=";

/// Between two looks at what is left.
const POLL: Duration = Duration::from_millis(50);

/// How long what has been killed may take to be gone from the table of processes.
const GONE_LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Plan {
    runs: u64,
    seed: u64,
    within: f64,
    dyno: Option<PathBuf>,
    folder: Option<PathBuf>,
}

/// Kills the runs and prints a line for each; an error if anything is left of one.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let plan = parsed(arguments)?;
    let dyno = match &plan.dyno {
        Some(dyno) => dyno.clone(),
        None => crate::perf::build()?,
    };
    let own;
    let data = match &plan.folder {
        Some(folder) => folder.clone(),
        None => {
            own = tempfile::tempdir_in("/var/tmp").context("cannot make a folder for data")?;
            open(own.path())?;
            own.path().join("data")
        }
    };
    let bench = tempfile::tempdir().context("cannot make a folder for studies")?;
    let mut random = Seed(plan.seed).derive("kills", 0).stream();
    let before = shared_memory();
    let mut n_left = 0;
    for nth in 0..plan.runs {
        let (name, database) = DEPLOYMENTS[(nth % DEPLOYMENTS.len() as u64) as usize];
        let after = Duration::from_secs_f64(0.2 + random.unit() * plan.within);
        let said = killed(&dyno, bench.path(), &data, (nth, database), after)?;
        let n_servers = marked(&data).len();
        clean(&dyno, bench.path(), &data, nth)?;
        let left = left(&data, &before);
        n_left += usize::from(!left.is_empty());
        let verdict = if left.is_empty() { "nothing left".to_owned() } else { left.join("; ") };
        crate::say(&format!(
            "{:>2} {name}: killed after {:.1} s ({said}), {n_servers} processes were left alive; then: {verdict}",
            nth + 1,
            after.as_secs_f64()
        ));
    }
    match n_left {
        0 => {
            crate::say(&format!("{} runs killed, nothing left of any", plan.runs));
            Ok(())
        }
        n => bail!("of {n} of {} runs something is left", plan.runs),
    }
}

/// Lets the servers' user enter a folder.
fn open(folder: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot open {}", folder.display()))
}

fn parsed(arguments: &[String]) -> anyhow::Result<Plan> {
    let mut plan = Plan { runs: 20, seed: 1, within: 12.0, dyno: None, folder: None };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("`{word}` wants a value\n{USAGE}"));
        match word.as_str() {
            "--runs" => plan.runs = value()?.parse().context("--runs is a number")?,
            "--seed" => plan.seed = value()?.parse().context("--seed is a number")?,
            "--within" => plan.within = value()?.parse().context("--within is a number")?,
            "--dyno" => plan.dyno = Some(PathBuf::from(value()?)),
            "--folder" => plan.folder = Some(PathBuf::from(value()?)),
            other => bail!("`{other}` is unknown\n{USAGE}"),
        }
    }
    if plan.runs == 0 || !(0.0..3600.0).contains(&plan.within) {
        bail!("there must be a run, and it must be killed within an hour\n{USAGE}");
    }
    Ok(plan)
}

/// A study of one deployment.
fn study(database: &str) -> String {
    format!(
        "title = \"Is anything left?\"\n[database.a]\n{database}\n[workload.oltp_read_only]\ntables = 2\n\
         table_size = 1000\n[design]\nclients = 2\nrepetitions = 3\nwarm_up = \"0s\"\nduration = \"5s\"\nrest = \"0s\"\n"
    )
}

/// Starts a run and kills it; returns the last line that it had printed.
fn killed(
    dyno: &Path,
    bench: &Path,
    data: &Path,
    (nth, database): (u64, &str),
    after: Duration,
) -> anyhow::Result<String> {
    let file = bench.join(format!("{nth}.toml"));
    std::fs::write(&file, study(database)).context("cannot write the study")?;
    let log = bench.join(format!("{nth}.log"));
    let out = std::fs::File::create(&log).context("cannot write a log")?;
    let mut command = Command::new(dyno);
    command.arg("run").arg(&file).arg("--out").arg(bench.join(format!("run-{nth}")));
    command.arg("--data-folder").arg(data).stdin(Stdio::null()).stdout(Stdio::null()).stderr(out);
    let mut child = command.spawn().with_context(|| format!("cannot run {}", dyno.display()))?;
    std::thread::sleep(after);
    if child.try_wait().context("cannot wait for the run")?.is_some() {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        bail!("the run had ended before it was killed: {text}");
    }
    child.kill().context("cannot kill the run")?;
    child.wait().context("cannot wait for the run")?;
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    Ok(last.unwrap_or("nothing said").trim().to_owned())
}

/// The next command in the same data folder, which cleans up.
fn clean(dyno: &Path, bench: &Path, data: &Path, nth: u64) -> anyhow::Result<()> {
    let mut command = Command::new(dyno);
    command.args([
        "bench",
        "oltp_read_only",
        "--tables",
        "1",
        "--table-size",
        "100",
        "--on",
        "sqlite",
    ]);
    command.args(["--duration", "2s", "--warm-up", "0s"]);
    command.arg("--out").arg(bench.join(format!("next-{nth}"))).arg("--no-reuse");
    command.arg("--data-folder").arg(data).stdin(Stdio::null());
    let output = command.output().with_context(|| format!("cannot run {}", dyno.display()))?;
    if !output.status.success() {
        bail!("the next command failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// The processes that Dyno has marked as those of servers below a folder: id and command.
fn marked(data: &Path) -> Vec<String> {
    let mark = format!("{MARK}{}", data.display());
    let is_marked = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|one| one.starts_with(mark.as_bytes()))
    };
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let command = |pid: i32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        format!("process {pid} ({})", name.trim())
    };
    pids.filter(is_marked).map(command).collect()
}

/// Segments of shared memory of System V, and files in the file system of POSIX's.
fn shared_memory() -> BTreeSet<String> {
    let table = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let ids = table.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1));
    let ids = ids.map(|id| format!("shared memory {id}"));
    let files = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    ids.chain(files.map(|file| file.path().display().to_string())).collect()
}

/// What is left of runs: all but data sets in the folder, marked processes, and shared memory that was not there.
fn left(data: &Path, before: &BTreeSet<String>) -> Vec<String> {
    let until = Instant::now() + GONE_LIMIT;
    loop {
        let mut all = left_in(data);
        all.extend(shared_memory().difference(before).cloned());
        if all.is_empty() || Instant::now() >= until {
            return all;
        }
        std::thread::sleep(POLL);
    }
}

/// Marked processes, and what is in the folder but data sets.
fn left_in(data: &Path) -> Vec<String> {
    let mut all = marked(data);
    let entries = std::fs::read_dir(data).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    // Data sets are for later runs, and the folder's own lock stays.
    let is_left = |name: &String| !name.starts_with("dataset") && !name.starts_with('.');
    all.extend(names.filter(is_left).map(|name| format!("folder {name}")));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let plan = parsed(&words("--runs 3 --seed 7 --within 2.5")).unwrap();
        assert_eq!((plan.runs, plan.seed, plan.within), (3, 7, 2.5));
        assert!(parsed(&words("--runs 0")).is_err());
        assert!(parsed(&words("--kill 1")).unwrap_err().to_string().contains("usage"));
    }

    #[test]
    fn what_is_left_is_seen() {
        let data = tempfile::tempdir().unwrap();
        let mut child = Command::new("sleep")
            .arg("1000")
            .env("DYNO_FOLDER", data.path().join("mariadb-1"))
            .spawn()
            .unwrap();
        // The mark is seen once the program has taken the place of the fork.
        let until = Instant::now() + Duration::from_secs(60);
        while marked(data.path()).is_empty() && Instant::now() < until {
            std::thread::yield_now();
        }
        assert_eq!(marked(data.path()).len(), 1);
        child.kill().unwrap();
        child.wait().unwrap();
        std::fs::create_dir(data.path().join("datasets")).unwrap();
        assert_eq!(left_in(data.path()), Vec::<String>::new());
    }
}
