//! Dyno beside iibench.py on MariaDB. iibench.py is in no package registry: the variable `IIBENCH`
//! names its folder (`bench/ibench` in github.com/mdcallag/mytools), `IIBENCH_PYTHON` its Python
//! (default `python3`), which needs the module MySQLdb (Debian's `python3-mysqldb`).

use std::path::PathBuf;

use anyhow::{Context, bail};
use serde_json::Value;

use super::peer::{Perf, number, process_cpu_us, timed_in};
use super::server::{PrivateServer, Session};
use super::table::{Effort, Figure, Goal, Row};

/// Before l.i1.
const ROWS: u64 = 20_000;

/// In and out in l.i1, for each second of a run.
const ROWS_PER_S: u64 = 20_000;

/// Rows per INSERT in both steps.
const PER_COMMIT: u64 = 50;

/// Rows per second in q100.
const RATE: u64 = 100;

/// Client CPU in µs.
struct Cost {
    per_row: f64,
    per_query: f64,
}

const FIGURES: [Figure<Cost>; 2] = [
    ("l.i1, client CPU", "µs/inserted row", Goal::AtMost(0.1), |cost| cost.per_row),
    ("q100, client CPU", "µs/query", Goal::AtMost(0.1), |cost| cost.per_query),
];

pub(crate) fn measure(perf: &Perf) -> anyhow::Result<Vec<Row>> {
    let (name, peer) = ("insert-benchmark, MariaDB", "iibench.py");
    let rows = perf.rows((name, peer), &FIGURES, &[]);
    if rows.is_empty() {
        return Ok(rows);
    }
    let Some(iibench) = Peer::find() else {
        crate::shell::say(&format!(
            "{name}: iibench.py was not found; name its folder in the environment variable IIBENCH"
        ));
        return Ok(rows);
    };
    let server = PrivateServer::start("mariadb", Session::Own)?;
    let theirs = || iibench.run(&server, perf.effort);
    perf.beside((name, peer), &FIGURES, || with_dyno(perf, &server), theirs)
}

fn rows_i1(effort: Effort) -> u64 {
    ROWS_PER_S * u64::from(effort.seconds)
}

fn with_dyno(perf: &Perf, server: &PrivateServer) -> anyhow::Result<Cost> {
    let result = perf.load(&format!(
        "insert-benchmark --clients 1 --reads q --rows-i0 {ROWS} --rows-i1 {} --rows-i2 0 \
         --rate-1 {RATE} --rate-2 0 --rate-3 0 --settle-s 0 --on {}",
        rows_i1(perf.effort),
        server.url
    ))?;
    let churn = step(&result, "l.i1")?;
    let reads = step(&result, &format!("q{RATE}"))?;
    let queries: f64 =
        ["market", "register", "pdc"].into_iter().map(|kind| transactions(reads, kind)).sum();
    Ok(Cost {
        per_row: cpu_us(churn)? / (transactions(churn, "insert") * PER_COMMIT as f64),
        per_query: cpu_us(reads)? / queries,
    })
}

fn step<'a>(result: &'a Value, name: &str) -> anyhow::Result<&'a Value> {
    let steps = result["steps"].as_array().context("dyno bench reported no steps")?;
    let found = steps.iter().find(|step| step["name"] == name);
    found.with_context(|| format!("dyno bench did not report step {name}"))
}

fn transactions(step: &Value, kind: &str) -> f64 {
    let kinds = step["kinds"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = kinds.iter().find(|one| one["name"] == kind);
    found.and_then(|one| one["transactions"].as_f64()).unwrap_or(0.0)
}

fn cpu_us(step: &Value) -> anyhow::Result<f64> {
    Ok(process_cpu_us(step)? * number(step, "/statements")?)
}

struct Peer {
    folder: PathBuf,
    python: String,
}

impl Peer {
    #[expect(clippy::disallowed_methods, reason = "a command of the developer's own machine")]
    fn find() -> Option<Peer> {
        let folder = PathBuf::from(std::env::var_os("IIBENCH")?);
        let python = std::env::var("IIBENCH_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        folder.join("iibench.py").is_file().then_some(Peer { folder, python })
    }

    /// Cost of l.i1 and q100, less that of a run with one statement, which starts Python, too.
    fn run(&self, server: &PrivateServer, effort: Effort) -> anyhow::Result<Cost> {
        let setup = "--setup --secondary_at_end --num_secondary_indexes=3";
        self.step(server, (ROWS, 100), setup)?;
        let churn = "--delete_per_insert";
        let (idle, _) = self.step(server, (PER_COMMIT, PER_COMMIT), churn)?;
        let rows = rows_i1(effort);
        let (cpu, _) = self.step(server, (rows, PER_COMMIT), churn)?;
        let reads = format!("--delete_per_insert --query_threads=1 --inserts_per_second={RATE}");
        let rows_q = RATE * u64::from(effort.seconds);
        let (cpu_q, queries) = self.step(server, (rows_q, PER_COMMIT), &reads)?;
        if queries <= 0.0 {
            bail!("iibench.py reported no queries");
        }
        Ok(Cost { per_row: (cpu - idle) / rows as f64, per_query: (cpu_q - idle) / queries })
    }

    /// Returns CPU in µs and queries.
    fn step(
        &self,
        server: &PrivateServer,
        (rows, per_commit): (u64, u64),
        more: &str,
    ) -> anyhow::Result<(f64, f64)> {
        let words = format!(
            "iibench.py --dbms=mysql --db_user=root --db_name=dyno --table_name=iibench \
             --engine=innodb --data_length_min=10 --data_length_max=20 --secs_per_report=1 \
             --unique_checks=1 --bulk_load=0 --max_rows={rows} --rows_per_commit={per_commit} \
             --db_socket={} {more}",
            server.socket.display()
        );
        let report = timed_in(&self.folder, &self.python, &words)?;
        Ok((report.cpu_us(), queries(&report.out)))
    }
}

/// The total, in the 14th column of iibench.py's lines.
fn queries(report: &str) -> f64 {
    let of = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        (columns.len() == 17).then(|| columns[13].parse::<f64>().ok()).flatten()
    };
    report.lines().filter_map(of).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::queries;

    #[test]
    fn queries_are_found_in_the_last_line_of_numbers() {
        let line = |total: &str| format!("1.0\t1.0{}\t{total}\t0\t0\t0\n", "\t5".repeat(11));
        let header = format!("i_sec{}\n", "\tx".repeat(16));
        assert_eq!(queries(&format!("{header}{}{}Done\n", line("160"), line("352"))), 352.0);
        assert_eq!(queries("Done"), 0.0);
    }
}
