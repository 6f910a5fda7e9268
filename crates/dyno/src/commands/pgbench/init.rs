//! `dyno pgbench -i`: makes and fills pgbench's tables.

use std::io::Write;

use dyno_units::{Clock, Nanoseconds};
use dyno_workload::{Connection, StatementError, TextRows};

use super::options::{Options, PartitionMethod};
use crate::terminal;

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

    fn query(&mut self, sql: &str) -> Result<TextRows, Failed> {
        self.connection.query(sql).map_err(|error| Failed { error, sql: sql.to_owned() })
    }

    fn execute(&mut self, sql: &str) -> Result<(), Failed> {
        self.query(sql).map(|_| ())
    }

    fn drop_tables(&mut self) -> Result<(), Failed> {
        terminal::say("dropping old tables...");
        for table in TABLES {
            let rows = self.query(&format!("select to_regclass('{table}')"))?;
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
        partition_method.map_or(Ok(()), |method| self.create_partitions(method))
    }

    fn server_version(&mut self) -> Result<u32, Failed> {
        let rows = self.query("show server_version_num")?;
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
                    let bound = |below: i64| match below {
                        0 => "minvalue".to_owned(),
                        below if below == partitions => "maxvalue".to_owned(),
                        below => (below * size + 1).to_string(),
                    };
                    format!("from ({}) to ({})", bound(part - 1), bound(part))
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
        self.copy("pgbench_branches", 1)?;
        self.copy("pgbench_tellers", TELLERS)?;
        self.copy("pgbench_accounts", ACCOUNTS)?;
        self.execute("commit")
    }

    /// Fills a table that has so many rows for each branch.
    fn copy(&mut self, table: &str, of_branch: i64) -> Result<(), Failed> {
        let n_rows = of_branch * self.scale();
        let is_accounts = table == "pgbench_accounts";
        // Rows of a table that was just truncated can be stored frozen; a partitioned one takes none.
        let is_plain = !is_accounts || self.options.partition_method.is_none();
        let freeze = if is_plain { " with (freeze on)" } else { "" };
        let sql = format!("copy {table} from stdin{freeze}");
        let mut progress = Progress::new(self.options.is_quiet, n_rows, self.clock);
        let mut number = 0;
        let result = self.connection.copy_rows(&sql, &mut |row| {
            if is_accounts {
                progress.tell(number);
            }
            if number == n_rows {
                return false;
            }
            row.push_integer(number + 1);
            if of_branch > 1 {
                row.push_integer(number / of_branch + 1);
            }
            row.push_integer(0);
            if is_accounts {
                row.push_text(b"")
            } else {
                row.push_null()
            }
            number += 1;
            true
        });
        progress.end();
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
        let tablespace = self.options.index_tablespace.as_deref().map(quoted);
        let place = tablespace.map(|name| format!(" using index tablespace {name}"));
        let place = place.unwrap_or_default();
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
