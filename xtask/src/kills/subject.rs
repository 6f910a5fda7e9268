//! The commands to kill, how to complete them, and what is compared then.

use anyhow::Context;

use super::place::{Fault, Place, Wrong};
use super::server::{Server, words};

pub(super) struct Kind {
    pub(super) name: &'static str,
    subject: Subject,
}

enum Subject {
    /// The study's database with its tables, and keys of its design.
    Run(&'static str, &'static str),
    /// A run of the study that `dyno capture` made, against the server of the log.
    Captured,
    Capture,
    Import,
    Up,
    Down,
    Dump,
    Restore,
    Archive,
}

const fn run(name: &'static str, database: &'static str, design: &'static str) -> Kind {
    Kind { name, subject: Subject::Run(database, design) }
}

pub(super) const KINDS: [Kind; 19] = [
    run("run: replicas", "product = \"postgresql\"\nreplicas = 2", ""),
    run("run: galera", "product = \"mariadb\"\ncluster = \"galera\"\nnodes = 3", ""),
    run("run: shards", "product = \"mariadb\"\nshards = 2", ""),
    run(
        "run: pooler",
        "product = \"postgresql\"\nreplicas = 1\nbehind = { product = \"pgbouncer\" }",
        "",
    ),
    run(
        "run: job and probe",
        "product = \"mariadb\"\n[job.work]\ncommand = [\"sh\", \"-c\", \"sleep 2 & wait\"]\n\
         load = \"until-done\"\n[probe.slow]\ncommand = [\"sh\", \"-c\", \"sleep 3; echo n 1\"]",
        "vary = { job = [\"work\"] }",
    ),
    run(
        "run: faults",
        "product = \"mariadb\"\n[fault.crash]\ndo = \"kill\"\nat = \"1s\"\nstart_after = \"500ms\"\n\
         [fault.pause]\ndo = \"stop\"\nat = \"1s\"\nfor = \"1s\"",
        "vary = { fault = [\"crash\", \"pause\"] }\nduration = \"4s\"\nrepetitions = 1",
    ),
    run(
        "run: volumes",
        "product = \"mariadb\"\nmemory = \"1GiB\"\ncpu_weight = 50\nkernel = { \"vm.swappiness\" = 10 }\n\
         [volume.v]\nfilesystem = \"ext4\"\nsize = \"640MiB\"\nlimit = { write_iops = 5000 }\n\
         dips = { every = \"500ms\", for = \"100ms\", write_iops = 100 }",
        "vary = { \"volume.filesystem\" = [\"ext4\", \"xfs\", \"btrfs\"] }\nrepetitions = 1",
    ),
    run(
        "run: zfs",
        "product = \"sqlite\"\n[volume.v]\nfilesystem = \"zfs\"\nsize = \"320MiB\"",
        "",
    ),
    run(
        "run: hosts",
        "product = \"mariadb\"\nreplicas = 1\non = \"sql\"\n[host.sql]\nnames = [\"sql1\", \"sql2\"]",
        "generators = \"sql\"",
    ),
    run(
        "run: hosts with volumes",
        "product = \"postgresql\"\non = \"sql\"\n[host.sql]\nnames = [\"sql1\"]\n\
         [volume.v]\nfilesystem = \"ext4\"\nsize = \"640MiB\"",
        "",
    ),
    run(
        "run: trials on hosts",
        "product = \"postgresql\"\ntrials_on = \"sql\"\n[host.sql]\nnames = [\"sql1\", \"sql2\"]",
        "",
    ),
    Kind { name: "run: captured", subject: Subject::Captured },
    Kind { name: "capture", subject: Subject::Capture },
    Kind { name: "import", subject: Subject::Import },
    Kind { name: "up", subject: Subject::Up },
    Kind { name: "down", subject: Subject::Down },
    Kind { name: "dump", subject: Subject::Dump },
    Kind { name: "restore", subject: Subject::Restore },
    Kind { name: "archive", subject: Subject::Archive },
];

const DESIGN: &str = "\
clients = 2\nwarm_up = \"0s\"\nrest = \"0s\"\nvoid_blocks = \"keep\"\n";
/// Defaults of the design.
const USUAL: [(&str, &str); 2] = [("duration", "\"1s\""), ("repetitions", "2")];

const RUN: [&str; 6] = ["run", "study.toml", "--out", "run", "--data-folder", "data"];
const UP: [&str; 6] = ["up", "mariadb", "--name", "killed", "--data-folder", "data"];
const DOWN: [&str; 2] = ["down", "--all"];
const IMPORT: [&str; 4] = ["import", "log=logs", "--out", "run"];

/// Logs to import, and lines of each.
const N_LOGS: u64 = 30;
const N_LINES: u64 = 1000;

fn study(database: &str, design: &str) -> String {
    let volume = if database.contains("[volume.v]") { "volume = \"v\"\n" } else { "" };
    let workload = "[workload.oltp_read_only]\ntables = 2\ntable_size = 1000";
    format!("{}{volume}", whole(&format!("[database.a]\n{database}\n{workload}"), design))
}

fn whole(tables: &str, design: &str) -> String {
    let usual = USUAL.iter().filter(|(key, _)| !design.contains(key));
    let usual = usual.map(|(key, value)| format!("{key} = {value}\n")).collect::<String>();
    format!("title = \"Is anything left?\"\n{tables}\n[design]\n{DESIGN}{usual}{design}\n")
}

fn captured(server: &Server) -> anyhow::Result<String> {
    let (tables, _) = server.captured.split_once("[design]").context("a study has a design")?;
    let (_, tables) = tables.split_once("title = ").context("a study has a title")?;
    let (_, tables) = tables.split_once('\n').context("a study has tables")?;
    Ok(whole(tables, ""))
}

impl Kind {
    pub(super) fn prepare(&self, place: &Place, server: &Server) -> anyhow::Result<()> {
        match self.subject {
            Subject::Run(database, design) => place.write("study.toml", &study(database, design)),
            Subject::Captured => place.write("study.toml", &captured(server)?),
            Subject::Import => {
                let line = |n: u64| {
                    format!("{} {n} {} 0 {} 0\n", n % 4, 900 + n % 77, 1_700_000_000 + n / 100)
                };
                let log = (0..N_LINES).map(line).collect::<String>();
                std::fs::create_dir(place.path("logs")).context("cannot make a folder")?;
                (1..=N_LOGS).try_for_each(|n| place.write(&format!("logs/{n}.log"), &log))
            }
            Subject::Down => place.good(&UP).map(drop),
            Subject::Restore => server.drop_restored(),
            Subject::Archive => server.fill(),
            Subject::Capture | Subject::Up | Subject::Dump => Ok(()),
        }
    }

    pub(super) fn command(&self, server: &Server) -> Vec<String> {
        match self.subject {
            Subject::Run(..) | Subject::Captured => words(&RUN),
            Subject::Capture => server.capture(),
            Subject::Import => words(&IMPORT),
            Subject::Up => words(&UP),
            Subject::Down => words(&DOWN),
            Subject::Dump => server.dump(),
            Subject::Restore => server.restore(),
            Subject::Archive => server.archive(),
        }
    }

    /// Fails if the command cannot be completed.
    pub(super) fn complete(&self, place: &Place, server: &Server) -> anyhow::Result<Vec<Wrong>> {
        match self.subject {
            Subject::Run(..) => place.good(&RUN).map(|_| Vec::new()),
            Subject::Captured => {
                place.good(&RUN)?;
                server.is_as_before()
            }
            Subject::Capture => {
                // `dyno capture` overwrites nothing.
                if !place.path("captured.toml").exists() {
                    place.good(&server.capture())?;
                }
                let text = std::fs::read_to_string(place.path("captured.toml"))?;
                let is_whole = text == server.captured;
                Ok((!is_whole)
                    .then(|| (Fault::Lost, "a part of the study".to_owned()))
                    .into_iter()
                    .collect())
            }
            Subject::Import => {
                if !place.path("run").exists() {
                    place.good(&IMPORT)?;
                }
                place.good(&["report", "run"]).map(|_| Vec::new())
            }
            Subject::Up | Subject::Down => {
                place.good(&DOWN)?;
                // The next command in the folder removes what was not yet listed.
                place.good(&UP)?;
                place.good(&DOWN).map(|_| Vec::new())
            }
            Subject::Dump => server.complete_dump(place),
            Subject::Restore => server.complete_restore(place),
            Subject::Archive => server.complete_archive(place),
        }
    }
}
