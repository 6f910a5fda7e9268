//! The cost of declaring a workload: oltp_read_write in a study beside the built-in one.

use std::process::Command;

use anyhow::{Context, bail, ensure};

use super::peer::Perf;
use super::table::{Effort, Figure, Goal, Row};

/// Says as well what is the same.
const STUDY: &str = include_str!("../../../studies/declared/oltp-read-write.toml");

const NAME: &str = "oltp_read_write, declared, MariaDB, 8 clients";

/// By trial: workload, block, transactions per second, the workers' user CPU per transaction in µs.
const QUERY: &str = "SELECT v.workload, t.block, r.throughput, s.generator_user_s * 1e6 / r.committed \
                     FROM result r JOIN step_total s USING(trial, step) JOIN trial t USING(trial) \
                     JOIN variant v USING(variant) WHERE t.state = 'finished' ORDER BY t.block";

#[derive(Clone, Debug, PartialEq)]
struct Found {
    is_declared: bool,
    block: String,
    throughput: f64,
    user_us: f64,
}

const FIGURES: [Figure<Found>; 2] = [
    ("throughput", "transactions/s", Goal::AtLeast(0.95), |found| found.throughput),
    ("user CPU", "µs/transaction", Goal::AtMost(1.05), |found| found.user_us),
];

/// A block of the study's run is a pair.
pub(crate) fn measure(perf: &Perf) -> anyhow::Result<Vec<Row>> {
    const WHAT: (&str, &str) = (NAME, "built in");
    if perf.rows(WHAT, &FIGURES, &[]).is_empty() {
        return Ok(Vec::new());
    }
    crate::shell::say(&format!("{NAME}: {} pairs", perf.effort.pairs));
    let folder = tempfile::tempdir()?;
    let (study, run) = (folder.path().join("study.toml"), folder.path().join("run"));
    std::fs::write(&study, shortened(STUDY, perf.effort)?)?;
    crate::shell::output(Command::new(&perf.dyno).arg("run").arg(&study).arg("--out").arg(&run))?;
    let sql =
        crate::shell::output(Command::new(&perf.dyno).arg("sql").arg(&run).args(["--tsv", QUERY]))?;
    let pairs = pairs(&read(&sql)?);
    ensure!(!pairs.is_empty(), "no block of the run has both workloads");
    Ok(perf.rows(WHAT, &FIGURES, &pairs))
}

fn shortened(study: &str, effort: Effort) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut n_changed = 0;
    for line in study.lines() {
        let changed = match line.split_once(" = ").map(|(key, _)| key) {
            Some("repetitions") => Some(format!("repetitions = {}", effort.pairs)),
            Some("duration") => Some(format!("duration = \"{}s\"", effort.seconds)),
            Some("warm_up") => Some("warm_up = \"1s\"".to_owned()),
            _ => None,
        };
        n_changed += usize::from(changed.is_some());
        text.push_str(changed.as_deref().unwrap_or(line));
        text.push('\n');
    }
    ensure!(
        n_changed == 3,
        "the study does not say how long it takes in the lines that are changed"
    );
    Ok(text)
}

fn read(table: &str) -> anyhow::Result<Vec<Found>> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [workload, block, throughput, user] = fields[..] else {
            bail!("four fields were expected, not `{line}`");
        };
        Ok(Found {
            is_declared: workload == "declared",
            block: block.to_owned(),
            throughput: throughput.parse().context("no throughput")?,
            user_us: user.parse().context("no CPU time")?,
        })
    };
    table.lines().skip(1).map(line).collect()
}

/// Declared, built in.
fn pairs(found: &[Found]) -> Vec<(Found, Found)> {
    let (declared, built_in): (Vec<_>, Vec<_>) =
        found.iter().cloned().partition(|one| one.is_declared);
    let pair = |one: Found| {
        let peer = built_in.iter().find(|other| other.block == one.block)?.clone();
        Some((one, peer))
    };
    declared.into_iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_study_is_shortened_and_stays_the_same_otherwise() {
        let text = shortened(STUDY, Effort { pairs: 2, seconds: 7 }).unwrap();
        let differing: Vec<&str> =
            text.lines().zip(STUDY.lines()).filter(|(a, b)| a != b).map(|(a, _)| a).collect();
        assert_eq!(differing, ["repetitions = 2", "duration = \"7s\"", "warm_up = \"1s\""]);
        assert!(shortened("title = \"x\"", Effort { pairs: 2, seconds: 7 }).is_err());
    }

    #[test]
    fn trials_are_paired_by_their_blocks() {
        let table = "workload\tblock\tthroughput\tuser\noltp_read_write\t0\t500.5\t40\n\
                     declared\t0\t490\t42\ndeclared\t1\t480\t44\n";
        let found = read(table).unwrap();
        let pairs = pairs(&found);
        assert_eq!(pairs.len(), 1);
        assert_eq!((pairs[0].0.user_us, pairs[0].1.user_us), (42.0, 40.0));
        assert!(read("a\nb\tc\n").is_err());
    }
}
