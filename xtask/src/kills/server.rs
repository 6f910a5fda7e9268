//! A server that outlives killed commands: what they move is neither lost nor doubled.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::place::{Fault, Place, Wrong};

const NAME: &str = "standing";
/// Of each table.
const N_ROWS: u64 = 50_000;
/// Not archived.
const N_KEPT: u64 = 100;
const N_LOGGED: u64 = 2000;
/// Row count, and a sum of all values.
const SUMS: &str = "SELECT CONCAT(COUNT(*), ' ', COALESCE(SUM(CRC32(CONCAT(id, c))), 0)) FROM";
const TABLES: &str = "SELECT GROUP_CONCAT(TABLE_SCHEMA, '.', TABLE_NAME ORDER BY 1) \
    FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ('dyno', 'other')";
const SESSIONS: &str = "SELECT GROUP_CONCAT(ID, ' ', COMMAND, ' ', COALESCE(INFO, '')) FROM \
    information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND USER <> 'system user'";
/// For sessions of killed commands to end.
const SESSION_LIMIT: Duration = Duration::from_secs(20);

/// MariaDB from `dyno up`, stopped on drop.
pub(super) struct Server {
    place: Place,
    url: String,
    other: String,
    /// Of the table `kept`.
    sums: String,
    tables: String,
    log: String,
    /// Output of `dyno capture` on the log.
    pub(super) captured: String,
}

impl Server {
    /// With its tables, a dump of one, and a log.
    pub(super) fn start(dyno: &Path, below: &Path) -> anyhow::Result<Server> {
        let place = Place::of_server(dyno, below)?;
        let url = place.good(&["up", "mariadb", "--name", NAME, "--data-folder", "data"])?;
        let url = url.trim().to_owned();
        let other = url.replace("/dyno?", "/other?");
        let [sums, tables, log, captured] = Default::default();
        let mut server = Server { place, url, other, sums, tables, log, captured };
        server.sql(&format!(
            "CREATE DATABASE other; CREATE TABLE kept (id INT PRIMARY KEY, c VARCHAR(40), KEY (c)); \
             INSERT INTO kept SELECT seq, MD5(seq) FROM seq_1_to_{N_ROWS}; \
             CREATE TABLE moved (id INT PRIMARY KEY, c VARCHAR(40)); CREATE TABLE other.moved LIKE moved; \
             CREATE TABLE stock (id INT PRIMARY KEY, n INT NOT NULL); \
             INSERT INTO stock SELECT seq, 0 FROM seq_1_to_200; SET GLOBAL general_log = 1"
        ))?;
        let transaction = |n: u64| {
            format!("BEGIN; UPDATE stock SET n = n - 1 WHERE id = {}; COMMIT;", n * 7 % 200 + 1)
        };
        for _ in 0..10 {
            server.sql(&(0..N_LOGGED / 10).map(transaction).collect::<String>())?;
        }
        server.sql("SET GLOBAL general_log = 0")?;
        server.log = server.sql("SELECT CONCAT(@@datadir, @@general_log_file)")?;
        server.captured = server.place.good(&["capture", &server.log, "--url", &server.url])?;
        server.sums = server.sql(&format!("{SUMS} kept"))?;
        server.tables = server.sql(TABLES)?;
        server.place.good(&["dump", &server.url, "whole", "--table", "kept"])?;
        Ok(server)
    }

    fn sql(&self, sql: &str) -> anyhow::Result<String> {
        let found = self.place.good(&["connect", NAME, "--", "-N", "-e", sql])?;
        Ok(found.trim().to_owned())
    }

    pub(super) fn capture(&self) -> Vec<String> {
        words(&["capture", &self.log, "--url", &self.url, "--out", "captured.toml"])
    }

    pub(super) fn dump(&self) -> Vec<String> {
        words(&["dump", &self.url, "dumped", "--table", "kept", "--rows", "1000"])
    }

    pub(super) fn restore(&self) -> Vec<String> {
        words(&["restore", &self.place.path("whole").display().to_string(), &self.other])
    }

    pub(super) fn archive(&self) -> Vec<String> {
        let rows = format!("id > {N_KEPT}");
        let tables = ["archive", &self.url, &self.other, "--table", "moved"];
        words(&[&tables[..], &["--where", &rows, "--batch", "500"]].concat())
    }

    /// All rows in the source, none in the destination.
    pub(super) fn fill(&self) -> anyhow::Result<()> {
        let sql = "TRUNCATE moved; TRUNCATE other.moved; INSERT INTO moved SELECT id, c FROM kept";
        self.sql(sql).map(drop)
    }

    pub(super) fn drop_restored(&self) -> anyhow::Result<()> {
        self.sql("DROP TABLE IF EXISTS other.kept").map(drop)
    }

    /// A killed dump is complete or refused, and another can be made.
    pub(super) fn complete_dump(&self, place: &Place) -> anyhow::Result<Vec<Wrong>> {
        let restore = ["restore", "dumped", &self.other];
        self.drop_restored()?;
        let mut wrong = Vec::new();
        if place.command(&restore).output().context("cannot run Dyno")?.status.success() {
            wrong.extend(self.compared("other.kept", &self.sums)?);
        } else {
            wrong.extend(self.is_as_before()?);
            if place.path("dumped").exists() {
                std::fs::remove_dir_all(place.path("dumped")).context("cannot remove a dump")?;
            }
            place.good(&self.dump())?;
            place.good(&restore)?;
            wrong.extend(self.compared("other.kept", &self.sums)?);
        }
        // Fails if a lock is still held.
        self.sql("SET lock_wait_timeout = 10; UPDATE kept SET c = c WHERE id = 1")?;
        self.drop_restored()?;
        wrong.extend(self.is_as_before()?);
        Ok(wrong)
    }

    /// After a killed restore, another one of the same tables has all rows once.
    pub(super) fn complete_restore(&self, place: &Place) -> anyhow::Result<Vec<Wrong>> {
        self.drop_restored()?;
        place.good(&self.restore())?;
        let mut wrong = self.compared("other.kept", &self.sums)?;
        self.drop_restored()?;
        wrong.extend(self.is_as_before()?);
        Ok(wrong)
    }

    /// The next archiving completes a killed one, although all remaining rows have changed.
    pub(super) fn complete_archive(&self, place: &Place) -> anyhow::Result<Vec<Wrong>> {
        self.sql(
            "DROP TABLE IF EXISTS changed; CREATE TABLE changed AS SELECT id FROM moved; \
             UPDATE moved SET c = CONCAT(c, '!')",
        )?;
        let all = "(SELECT id, CONCAT(c, IF(id IN (SELECT id FROM changed), '!', '')) AS c FROM kept) AS a";
        let expected = self.sql(&format!("{SUMS} {all}"))?;
        self.sql("DROP TABLE changed")?;
        place.good(&self.archive())?;
        let both = "(SELECT * FROM moved UNION ALL SELECT * FROM other.moved) AS both_tables";
        let mut wrong = self.compared(both, &expected)?;
        let left = self.sql("SELECT COUNT(*) FROM moved")?;
        if left != N_KEPT.to_string() {
            wrong.push((Fault::Left, format!("{left} rows are in the source")));
        }
        wrong.extend(self.is_as_before()?);
        Ok(wrong)
    }

    /// The server has its tables and rows again, and no foreign sessions.
    pub(super) fn is_as_before(&self) -> anyhow::Result<Vec<Wrong>> {
        let mut wrong = self.compared("kept", &self.sums)?;
        let tables = self.sql(TABLES)?;
        if tables != self.tables {
            wrong.push((Fault::Left, format!("tables {tables}, expected {}", self.tables)));
        }
        if self.sql("SELECT COUNT(*) FROM stock")? != "200" {
            wrong.push((Fault::Lost, "rows of the table `stock`".to_owned()));
        }
        let until = Instant::now() + SESSION_LIMIT;
        loop {
            let sessions = self.sql(SESSIONS)?;
            if sessions == "NULL" {
                return Ok(wrong);
            }
            if Instant::now() >= until {
                wrong.push((Fault::Left, format!("sessions {sessions}")));
                return Ok(wrong);
            }
        }
    }

    fn compared(&self, table: &str, expected: &str) -> anyhow::Result<Vec<Wrong>> {
        let found = self.sql(&format!("{SUMS} {table}"))?;
        let n_rows = |sums: &str| sums.split(' ').next().and_then(|n| n.parse::<u64>().ok());
        let fault = if n_rows(&found) > n_rows(expected) { Fault::Doubled } else { Fault::Lost };
        let text = format!("{table}: rows and sum {found}, expected {expected}");
        Ok((found != expected).then_some((fault, text)).into_iter().collect())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The next server removes what stays.
        let _ = self.place.good(&["down", "--all"]).and_then(|_| self.place.remove());
    }
}

pub(super) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
