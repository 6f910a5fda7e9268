//! Random statements on real servers: `dyno capture` must find what they committed. Each INSERT has a number, in its
//! text and in its row.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use crate::up::UpBench;

/// Programs connected at once, sessions of each one after the other, statements of a session.
const PROGRAMS: u64 = 3;
const SESSIONS: u64 = 8;
const STATEMENTS: u64 = 24;

/// SplitMix64 (Steele, Lea and Flood).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    fn one_of(&mut self, all: &[&str]) -> String {
        all[self.below(all.len() as u64) as usize].to_owned()
    }
}

const BOTH: &[&str] = &[
    "BEGIN",
    "BEGIN",
    "START TRANSACTION",
    "COMMIT",
    "COMMIT",
    "ROLLBACK",
    "COMMIT AND CHAIN",
    "ROLLBACK AND CHAIN",
    "COMMIT AND NO CHAIN",
    "SAVEPOINT s",
    "SAVEPOINT r",
    "ROLLBACK TO SAVEPOINT s",
    "ROLLBACK TO r",
    "RELEASE SAVEPOINT s",
];
const OF_MARIADB: &[&str] = &[
    "SET autocommit = 0",
    "SET @@session.autocommit = ON",
    "SET autocommit = DEFAULT",
    "SET GLOBAL autocommit = 1",
    "SET completion_type = 1",
    "SET completion_type = 'NO_CHAIN'",
    "SET NAMES utf8mb4",
    "CREATE OR REPLACE TEMPORARY TABLE own (a INT)",
    "DROP TEMPORARY TABLE IF EXISTS own",
    "CREATE TABLE IF NOT EXISTS made (a INT)",
    "DROP TABLE IF EXISTS missing",
    "FLUSH STATUS",
    "UNLOCK TABLES",
    "CHECKSUM TABLE other",
    "/*!40101 SET autocommit = 0 */",
    "SET ROLE NONE",
];
const OF_POSTGRESQL: &[&str] = &[
    "ABORT",
    "END",
    "CREATE TEMPORARY TABLE own (a int)",
    "SET LOCAL work_mem = '1MB'",
    "SELECT 1 FROM missing",
    "INSERT INTO marks SELECT 1/0 AS n0",
];

/// `n` numbers the INSERTs of all sessions.
fn session(random: &mut Random, n: &mut u64, (others, group): (&[&str], &str)) -> Vec<String> {
    let mut statement = || match random.below(20) {
        0..10 => {
            *n += 1;
            format!("INSERT INTO marks SELECT {n} AS n{n}{group}")
        }
        10..15 => random.one_of(BOTH),
        _ => random.one_of(others),
    };
    (0..STATEMENTS).map(|_| statement()).collect()
}

/// The numbers of INSERTs in each transaction that a study commits.
fn committed(study: &str) -> BTreeSet<Vec<u64>> {
    let number = |line: &str| {
        let number = line.strip_prefix("sql = \"INSERT INTO marks SELECT ")?.split(' ').next()?;
        Some(number.parse().unwrap())
    };
    let kinds = study.split("\nweight = ").skip(1);
    let kinds = kinds.filter(|kind| !kind.contains("roll_back = true"));
    kinds.map(|kind| kind.lines().filter_map(number).collect()).collect()
}

/// Runs all programs at once; `run` gets a session's statements.
fn run(seed: u64, kinds: (&[&str], &str), run: &(dyn Fn(&[String]) + Sync)) {
    thread::scope(|scope| {
        for program in 0..PROGRAMS {
            scope.spawn(move || {
                let (mut random, mut n) = (Random(seed + program), program * 1_000_000 + 1000);
                for _ in 0..SESSIONS {
                    run(&session(&mut random, &mut n, kinds));
                }
            });
        }
    });
}

#[test]
fn the_logs_of_mariadb_become_what_it_committed() {
    let bench = UpBench::new();
    let slow = ["--setting", "slow_query_log=ON", "--setting", "long_query_time=0"];
    bench.up(&[&["mariadb", "--name", "here"], &slow[..]].concat());
    let ask = |sql: &str| bench.good(&["connect", "here", "--", "-N", "-e", sql]).out;
    ask(
        "CREATE TABLE marks (n INT PRIMARY KEY); CREATE TABLE other (a INT); SET GLOBAL general_log = 1",
    );
    run(7, (OF_MARIADB, ""), &|statements| {
        // Some fail, such as a rollback to a missing savepoint.
        bench.dyno(&["connect", "here", "--", "--force", "-e", &(statements.join(";\n") + ";")]);
    });
    ask("SET GLOBAL general_log = 0");
    let rows = ask("SELECT n FROM marks ORDER BY n");
    let rows: BTreeSet<u64> = rows.lines().map(|line| line.parse().unwrap()).collect();
    assert!(rows.len() > 50, "{rows:?}");
    for file in ["general_log_file", "slow_query_log_file"] {
        let log = ask(&format!("SELECT CONCAT(@@datadir, @@{file})"));
        let study = bench.good(&["capture", log.trim(), "--kinds", "1000"]).out;
        let found: BTreeSet<u64> = committed(&study).into_iter().flatten().collect();
        let wrong: Vec<_> = found.symmetric_difference(&rows).collect();
        let log = std::fs::read_to_string(log.trim()).unwrap();
        assert!(wrong.is_empty(), "{file}: {wrong:?}\n{log}\n{study}");
    }
}

#[test]
fn the_log_of_postgresql_becomes_what_it_committed() {
    let bench = UpBench::new();
    let settings =
        ["--setting", "log_statement=all", "--setting", "log_line_prefix=%m [%p] %q%u@%d "];
    bench.up(&[&["postgresql", "--name", "here"], &settings[..]].concat());
    let ask = |sql: &str| bench.good(&["connect", "here", "--", "-At", "-c", sql]).out;
    ask("CREATE TABLE marks (n int PRIMARY KEY, t bigint)");
    run(11, (OF_POSTGRESQL, ", txid_current()"), &|statements| {
        let mut arguments = vec!["connect", "here", "--"];
        let mut texts: Vec<String> = Vec::new();
        for statement in statements {
            // Some are sent together with the statement before.
            let joins = |text: &str| {
                ["INSERT", "BEGIN", "COMMIT", "ROLLBACK"].iter().any(|one| {
                    *one == text
                        || (*one == "INSERT" && text.starts_with("INSERT") && !text.contains("1/0"))
                })
            };
            match texts.last_mut() {
                Some(last) if joins(last) && joins(statement) && statement.len() % 3 == 0 => {
                    *last += "; ";
                    *last += statement;
                }
                _ => texts.push(statement.clone()),
            }
        }
        for text in &texts {
            arguments.extend(["-c", text]);
        }
        bench.dyno(&arguments);
    });
    let rows = ask("SELECT n, t FROM marks ORDER BY n");
    let mut transactions: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for line in rows.lines() {
        let (n, transaction) = line.split_once('|').unwrap();
        transactions.entry(transaction).or_default().push(n.parse().unwrap());
    }
    let expected: BTreeSet<Vec<u64>> = transactions.into_values().collect();
    assert!(expected.len() > 30, "{expected:?}");
    let data = bench.good(&["connect", "here", "--", "-At", "-c", "SHOW data_directory"]).out;
    let log = std::path::Path::new(data.trim()).parent().unwrap().join("server.log");
    let study = bench.good(&["capture", &log.display().to_string(), "--kinds", "1000"]).out;
    let mut found = committed(&study);
    // Transactions without an INSERT.
    found.remove(&Vec::new());
    let wrong: Vec<_> = found.symmetric_difference(&expected).collect();
    let log = std::fs::read_to_string(log).unwrap();
    assert!(wrong.is_empty(), "{wrong:?}\n{log}\n{study}");
}
