//! `dyno pgbench -i`: makes and fills pgbench's tables.

use std::io::Write;

use dyno_units::{Clock, Nanoseconds};
use dyno_workload::{Connection, Row, StatementError};

use super::options::{Options, PartitionMethod};
use crate::terminal;

/// Rows for each unit of scale.
const ACCOUNTS: i64 = 100_000;
const TELLERS: i64 = 10;

/// From this scale on, numbers of accounts take 64 bits.
const WIDE_SCALE: i64 = 20_000;

/// The tables, in the order in which pgbench names them.
const TABLES: [&str; 4] =
    ["pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers"];

/// Names, columns and whether they have a fill factor; `AID` is the type of an account's number.
const COLUMNS: [(&str, &str, bool); 4] = [
    ("pgbench_history", "tid int,bid int,aid AID,delta int,mtime timestamp,filler char(22)", false),
    ("pgbench_tellers", "tid int not null,bid int,tbalance int,filler char(84)", true),
    ("pgbench_accounts", "aid AID not null,bid int,abalance int,filler char(84)", true),
    ("pgbench_branches", "bid int not null,bbalance int,filler char(88)", true),
];

/// The first version that refuses unlogged partitioned tables.
const NO_UNLOGGED_PARENTS: u32 = 180_000;

/// Time between two lines of progress with `--quiet`.
const QUIET: Nanoseconds = Nanoseconds::from_secs(5);

pub(super) struct Failed {
    pub(super) error: StatementError,
    pub(super) sql: String,
}

pub(super) fn run(
    options: &Options,
    connection: &mut dyn Connection,
    clock: &dyn Clock,
) -> Result<(), Failed> {
    let mut maker = Maker { options, connection, clock };
    let mut done = Vec::new();
    let mut whole = 0.0;
    for step in options.steps.chars() {
        let began = clock.now();
        let name = match step {
            'd' => maker.drop_tables().map(|()| "drop tables")?,
            't' => maker.create_tables().map(|()| "create tables")?,
            'g' => maker.generate_here().map(|()| "client-side generate")?,
            'G' => maker.generate_there().map(|()| "server-side generate")?,
            'v' => maker.vacuum().map(|()| "vacuum")?,
            'p' => maker.primary_keys().map(|()| "primary keys")?,
            'f' => maker.foreign_keys().map(|()| "foreign keys")?,
            _ => continue,
        };
        let seconds = (clock.now() - began).as_secs_f64();
        done.push(format!("{name} {seconds:.2} s"));
        whole += seconds;
    }
    terminal::say(&format!("done in {whole:.2} s ({}).", done.join(", ")));
    Ok(())
}

struct Maker<'a> {
    options: &'a Options,
    connection: &'a mut dyn Connection,
    clock: &'a dyn Clock,
}

impl Maker<'_> {
    fn scale(&self) -> i64 {
        self.options.scale.max(1)
    }

    fn execute(&mut self, sql: &str) -> Result<(), Failed> {
        let failed = |error| Failed { error, sql: sql.to_owned() };
        self.connection.query(sql).map(|_| ()).map_err(failed)
    }

    fn drop_tables(&mut self) -> Result<(), Failed> {
        terminal::say("dropping old tables...");
        for table in TABLES {
            let sql = format!("select to_regclass('{table}')");
            let rows = self.connection.query(&sql).map_err(|error| Failed { error, sql })?;
            if rows.first().is_some_and(|row| row.first().is_some_and(Option::is_none)) {
                terminal::say(&format!("NOTICE:  table \"{table}\" does not exist, skipping"));
            }
        }
        self.execute(&format!("drop table if exists {}", TABLES.join(", ")))
    }

    fn create_tables(&mut self) -> Result<(), Failed> {
        terminal::say("creating tables...");
        let Options { fillfactor, is_unlogged, partition_method, .. } = *self.options;
        let account = if self.scale() >= WIDE_SCALE { "bigint" } else { "int" };
        let parents_can = is_unlogged && self.server_version()? < NO_UNLOGGED_PARENTS;
        for (table, columns, has_fillfactor) in COLUMNS {
            let columns = columns.replace("AID", account);
            // A partitioned table has no storage of its own; later servers refuse an unlogged one.
            let is_parted = partition_method.filter(|_| table == "pgbench_accounts");
            let is_unlogged = is_unlogged && (is_parted.is_none() || parents_can);
            let unlogged = if is_unlogged { " unlogged" } else { "" };
            let mut sql = format!("create{unlogged} table {table}({columns})");
            match is_parted {
                Some(method) => sql += &format!(" partition by {} (aid)", method.word()),
                None if has_fillfactor => sql += &format!(" with (fillfactor={fillfactor})"),
                None => {}
            }
            if let Some(tablespace) = &self.options.tablespace {
                sql += &format!(" tablespace {}", quoted(tablespace));
            }
            self.execute(&sql)?;
        }
        match partition_method {
            Some(method) => self.create_partitions(method),
            None => Ok(()),
        }
    }

    fn server_version(&mut self) -> Result<u32, Failed> {
        let sql = "show server_version_num".to_owned();
        let rows = self.connection.query(&sql).map_err(|error| Failed { error, sql })?;
        let version = rows.into_iter().flatten().next().flatten();
        Ok(version.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    fn create_partitions(&mut self, method: PartitionMethod) -> Result<(), Failed> {
        let Options { partitions, fillfactor, is_unlogged, .. } = *self.options;
        terminal::say(&format!("creating {partitions} partitions..."));
        let size = (ACCOUNTS * self.scale() + partitions - 1) / partitions;
        let unlogged = if is_unlogged { " unlogged" } else { "" };
        for part in 1..=partitions {
            let bounds = match method {
                PartitionMethod::Hash => {
                    format!("with (modulus {partitions}, remainder {})", part - 1)
                }
                // The first and the last one are open, so that any number has a place.
                PartitionMethod::Range => {
                    let from = match part {
                        1 => "minvalue".to_owned(),
                        _ => ((part - 1) * size + 1).to_string(),
                    };
                    let to = match part == partitions {
                        true => "maxvalue".to_owned(),
                        false => (part * size + 1).to_string(),
                    };
                    format!("from ({from}) to ({to})")
                }
            };
            self.execute(&format!(
                "create{unlogged} table pgbench_accounts_{part}\n  partition of \
                 pgbench_accounts\n  for values {bounds} with (fillfactor={fillfactor})"
            ))?;
        }
        Ok(())
    }

    fn truncate(&mut self) -> Result<(), Failed> {
        self.execute(&format!("truncate table {}", TABLES.join(", ")))
    }

    /// Fills the tables with rows from here, all in one transaction.
    fn generate_here(&mut self) -> Result<(), Failed> {
        terminal::say("generating data (client-side)...");
        self.execute("begin")?;
        self.truncate()?;
        let scale = self.scale();
        self.copy("pgbench_branches", scale, &|row, number| {
            row.push_integer(number + 1);
            row.push_integer(0);
            row.push_null();
        })?;
        self.copy("pgbench_tellers", TELLERS * scale, &|row, number| {
            row.push_integer(number + 1);
            row.push_integer(number / TELLERS + 1);
            row.push_integer(0);
            row.push_null();
        })?;
        self.copy("pgbench_accounts", ACCOUNTS * scale, &|row, number| {
            row.push_integer(number + 1);
            row.push_integer(number / ACCOUNTS + 1);
            row.push_integer(0);
            row.push_text(b"");
        })?;
        self.execute("commit")
    }

    fn copy(
        &mut self,
        table: &str,
        n_rows: i64,
        fill: &dyn Fn(&mut Row, i64),
    ) -> Result<(), Failed> {
        // Rows of a table that was just truncated can be stored frozen; a partitioned one takes none.
        let is_plain = table != "pgbench_accounts" || self.options.partition_method.is_none();
        let freeze = if is_plain { " with (freeze on)" } else { "" };
        let sql = format!("copy {table} from stdin{freeze}");
        let mut progress = Progress::new(self.options.is_quiet, n_rows, self.clock);
        let is_shown = table == "pgbench_accounts";
        let mut number = 0;
        let result = self.connection.copy_rows(&sql, &mut |row| {
            if is_shown {
                progress.tell(number);
            }
            if number == n_rows {
                return false;
            }
            fill(row, number);
            number += 1;
            true
        });
        if is_shown {
            progress.end();
        }
        result.map(|_| ()).map_err(|error| Failed { error, sql })
    }

    /// Fills the tables with rows that the server makes.
    fn generate_there(&mut self) -> Result<(), Failed> {
        terminal::say("generating data (server-side)...");
        self.execute("begin")?;
        self.truncate()?;
        let scale = self.scale();
        self.execute(&format!(
            "insert into pgbench_branches(bid,bbalance) select bid, 0 from generate_series(1, \
             {scale}) as bid"
        ))?;
        self.execute(&format!(
            "insert into pgbench_tellers(tid,bid,tbalance) select tid, (tid - 1) / {TELLERS} + 1, 0 \
             from generate_series(1, {}) as tid",
            TELLERS * scale
        ))?;
        self.execute(&format!(
            "insert into pgbench_accounts(aid,bid,abalance,filler) select aid, (aid - 1) / \
             {ACCOUNTS} + 1, 0, '' from generate_series(1, {}) as aid",
            ACCOUNTS * scale
        ))?;
        self.execute("commit")
    }

    fn vacuum(&mut self) -> Result<(), Failed> {
        terminal::say("vacuuming...");
        for table in ["branches", "tellers", "accounts", "history"] {
            self.execute(&format!("vacuum analyze pgbench_{table}"))?;
        }
        Ok(())
    }

    fn primary_keys(&mut self) -> Result<(), Failed> {
        terminal::say("creating primary keys...");
        let place = match &self.options.index_tablespace {
            Some(tablespace) => format!(" using index tablespace {}", quoted(tablespace)),
            None => String::new(),
        };
        for (table, column) in [("branches", "bid"), ("tellers", "tid"), ("accounts", "aid")] {
            self.execute(&format!(
                "alter table pgbench_{table} add primary key ({column}){place}"
            ))?;
        }
        Ok(())
    }

    fn foreign_keys(&mut self) -> Result<(), Failed> {
        terminal::say("creating foreign keys...");
        for (table, column, target) in [
            ("tellers", "bid", "branches"),
            ("accounts", "bid", "branches"),
            ("history", "bid", "branches"),
            ("history", "tid", "tellers"),
            ("history", "aid", "accounts"),
        ] {
            self.execute(&format!(
                "alter table pgbench_{table} add constraint pgbench_{table}_{column}_fkey foreign \
                 key ({column}) references pgbench_{target}"
            ))?;
        }
        Ok(())
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Lines on the rows that were sent: one for each hundred thousand, or one every five seconds.
struct Progress<'a> {
    is_quiet: bool,
    is_terminal: bool,
    n_rows: i64,
    clock: &'a dyn Clock,
    began: Nanoseconds,
    next: Nanoseconds,
    length: usize,
}

impl Progress<'_> {
    fn new(is_quiet: bool, n_rows: i64, clock: &dyn Clock) -> Progress<'_> {
        let began = clock.now();
        let is_terminal = terminal::is_interactive();
        Progress { is_quiet, is_terminal, n_rows, clock, began, next: began + QUIET, length: 0 }
    }

    fn tell(&mut self, n: i64) {
        let is_step = if self.is_quiet { n % 100 == 0 } else { n % 100_000 == 0 };
        if n == 0 || !is_step {
            return;
        }
        let now = self.clock.now();
        if self.is_quiet {
            if n < self.n_rows && now < self.next {
                return;
            }
            self.next = now + QUIET;
        }
        let elapsed = (now - self.began).as_secs_f64();
        let remaining = (self.n_rows - n) as f64 * elapsed / n as f64;
        let line = format!(
            "{n} of {} tuples ({}%) done (elapsed {elapsed:.2} s, remaining {remaining:.2} s)",
            self.n_rows,
            n * 100 / self.n_rows
        );
        if self.is_terminal {
            let length = line.len();
            let _ = write!(std::io::stderr(), "{line:<width$}\r", width = self.length.max(length));
            self.length = length;
        } else {
            terminal::say(&line);
        }
    }

    fn end(&self) {
        if self.is_terminal && self.length > 0 {
            let _ = write!(std::io::stderr(), "{:width$}\r", "", width = self.length);
        }
    }
}
