//! The work of the jobs that `dyno bench` knows by name.

use anyhow::{anyhow, bail, ensure};
use clap::{Arg, ArgAction, ArgMatches};
use dyno_database::{DumpCommands, DumpOrder, MoveOrder, Product};

use super::arguments::{option, proposing, text};
use crate::written::{Written, scalar};

pub(super) enum Work {
    Statements(&'static [&'static str]),
    /// Of the workload's tables, by the product's fastest way that Dyno knows.
    Dump,
    Restore,
    /// Moves the rows of a table to another child of the same parent, in batches.
    Inheritance,
}

const BATCH: &str = "1000";
const PAUSE: &str = "200ms";
const THREADS: &str = "2";
const THREADS_MOST: u32 = 1000;
/// Per unit of pgbench's scale.
const ACCOUNTS: u64 = 100_000;

impl Work {
    /// Default of what the load does meanwhile.
    pub(super) fn load(&self) -> &'static str {
        match self {
            Work::Inheritance => "until-done",
            _ => "off",
        }
    }

    /// Allowed values; tables that are being restored cannot be loaded.
    pub(super) fn loads(&self) -> &'static [&'static str] {
        match self {
            Work::Restore => &[],
            _ => &["off", "until-done", "on"],
        }
    }

    pub(super) fn arguments(&self) -> Vec<Arg> {
        match self {
            Work::Statements(statements) => {
                let all = statements.join("; ");
                let sql = format!("A statement of the job; may be repeated [default: {all}]");
                let check = "A statement sent after the job; unless it returns a true value, the \
                             trial fails";
                vec![
                    option("sql", "STATEMENT", sql).action(ArgAction::Append),
                    option("at-once", "N", "Statements to run in parallel [default: 1]"),
                    option("check", "STATEMENT", check),
                ]
            }
            Work::Dump | Work::Restore => {
                let help =
                    format!("Threads or connections that work in parallel [default: {THREADS}]");
                vec![option("threads", "N", help)]
            }
            Work::Inheritance => {
                let locked = "What a batch does with locked rows. skip: leave them for a later \
                              batch; wait: wait for them [default: skip]";
                vec![
                    option("batch", "ROWS", format!("Rows per batch [default: {BATCH}]")),
                    option("pause", "TIME", format!("Pause between batches [default: {PAUSE}]")),
                    proposing(option("locked", "WORD", locked), ["skip", "wait"]),
                ]
            }
        }
    }

    /// `product` is that of a server that Dyno starts. Fails if the server lacks the job, or for a
    /// wrong option.
    pub(super) fn write(
        &self,
        study: &mut Written,
        matches: &ArgMatches,
        product: Option<&Product>,
    ) -> anyhow::Result<()> {
        match self {
            Work::Statements(statements) => {
                match matches.get_many::<String>("sql") {
                    Some(given) => study.line("sql", given.cloned().collect::<Vec<String>>()),
                    None => study.fixed("sql", statements.to_vec()),
                }
                if let Some(at_once) = text(matches, "at-once") {
                    study.line("at_once", scalar(at_once));
                }
                if let Some(check) = text(matches, "check") {
                    study.line("check", &**check);
                }
            }
            Work::Dump => {
                let DumpCommands { dump, .. } = programs(matches, product)?;
                study.fixed("command", shell(&dump));
            }
            Work::Restore => {
                let DumpCommands { dump, restore } = programs(matches, product)?;
                let tables = text(matches, "option:tables").map_or("1", String::as_str);
                let tables: u64 = tables.parse().unwrap_or(1);
                let drop = |table: u64| format!("DROP TABLE sbtest{table}");
                study.fixed("setup", shell(&dump));
                study.fixed("before", (1..=tables).map(drop).collect::<Vec<String>>());
                study.fixed("command", shell(&restore));
                study.fixed("same_tables", true);
            }
            Work::Inheritance => inheritance(study, matches, product)?,
        }
        Ok(())
    }
}

/// The shell expands the variables of its environment.
fn shell(line: &str) -> Vec<String> {
    ["sh", "-c", line].map(str::to_owned).into()
}

fn programs(matches: &ArgMatches, product: Option<&Product>) -> anyhow::Result<DumpCommands> {
    let given = text(matches, "threads").map_or(THREADS, String::as_str);
    let threads: u32 = given.parse().unwrap_or(0);
    ensure!(
        (1..=THREADS_MOST).contains(&threads),
        "--threads: `{given}` is not a whole number from 1 to {THREADS_MOST}"
    );
    let dump =
        |product: &Product| (product.dump_commands)(&DumpOrder { prefix: "sbtest", threads });
    product.and_then(dump).ok_or_else(|| refusal(&|product| dump(product).is_some()))
}

fn refusal(can: &dyn Fn(&Product) -> bool) -> anyhow::Error {
    let products = dyno_lab::products();
    let names = products.names().into_iter();
    let names: Vec<&str> = names.filter(|name| products.find(name).is_some_and(can)).collect();
    anyhow!("--on: this job is for servers that Dyno starts, one of {}", names.join(", "))
}

fn inheritance(
    study: &mut Written,
    matches: &ArgMatches,
    product: Option<&Product>,
) -> anyhow::Result<()> {
    let given = text(matches, "batch").map_or(BATCH, String::as_str);
    let batch: u64 = given.parse().unwrap_or(0);
    ensure!(batch > 0, "--batch: `{given}` is not a whole number of rows above 0");
    let waits = match text(matches, "locked").map_or("skip", String::as_str) {
        "skip" => false,
        "wait" => true,
        other => bail!("--locked: `{other}` is neither `skip` nor `wait`"),
    };
    let order = MoveOrder { table: "pgbench_accounts", key: "aid", batch, waits };
    let statements = |product: &Product| (product.move_statements)(&order);
    let moves = product.and_then(statements);
    let moves = moves.ok_or_else(|| refusal(&|product| statements(product).is_some()))?;
    let scale = text(matches, "option:scale").and_then(|scale| scale.parse().ok()).unwrap_or(1);
    let accounts = ACCOUNTS.saturating_mul(scale);
    study.fixed("before", moves.before);
    study.fixed("sql", moves.batch);
    study.fixed("repeat", "until-no-rows");
    study.line("pause", text(matches, "pause").map_or(PAUSE, String::as_str));
    study.fixed("check", format!("SELECT count(*) = {accounts} FROM pgbench_accounts"));
    Ok(())
}
