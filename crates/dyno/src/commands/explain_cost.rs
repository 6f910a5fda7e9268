//! `dyno explain-cost`: the engine's counters before and after one statement.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use dyno_database::{
    Access, Cost, CostPlan, CostSource, CounterCost, Endpoint, Place, Products, Server, ServerSpec,
    Spread, explain_cost, note_tables,
};
use dyno_lab::Lab;
use dyno_model::StepRequest;
use dyno_units::{ByteCount, Nanoseconds, Seed};
use dyno_workload::catalog::Catalog;
use dyno_workload::{Connection, Row, Workload};

use crate::commands::bench::arguments::{on_help, products, workloads};
use crate::commands::counted;
use crate::commands::products::{named, shown};
use crate::written::{pair, settings};
use crate::{End, hints, lab, secrets, terminal};

fn with_costs(products: &Products) -> Vec<&str> {
    let has_costs = |spec: &&dyno_database::ProductSpec| spec.dialect.is_some() && spec.stores_data;
    products.specs().filter(has_costs).map(|spec| &*spec.name).collect()
}

/// Per commit while populating.
const CHUNK_ROWS: u64 = 50_000;

/// Options of `dyno explain-cost`.
#[derive(clap::Args)]
pub(crate) struct ExplainCostOptions {
    /// The statement
    #[arg(value_name = "SQL")]
    sql: String,
    #[arg(long, value_name = "DATABASE", help = on_help(&with_costs(&Products::built_in())), value_parser = products(), hide_possible_values = true)]
    on: String,
    /// Measured runs, after one warm-up run
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = runs)]
    runs: u32,
    /// Allow the statement to change data (INSERT, UPDATE, DELETE, REPLACE, MERGE); each run is
    /// rolled back
    #[arg(long)]
    writes: bool,
    /// Create and fill the tables of this workload first (private servers only)
    #[arg(long, value_name = "WORKLOAD", value_parser = workloads(), hide_possible_values = true)]
    workload: Option<String>,
    /// An option of the workload; may be repeated
    #[arg(long = "option", value_name = "NAME=VALUE", requires = "workload")]
    options: Vec<String>,
    /// A statement to run first, such as CREATE TABLE (private servers only); may be repeated
    #[arg(long, value_name = "SQL")]
    setup: Vec<String>,
    /// Storage engine, if the product has several
    #[arg(long, value_name = "ENGINE")]
    engine: Option<String>,
    /// Folder with the server's programs
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
    /// A setting of the private server; may be repeated
    #[arg(long = "setting", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Folder in which a private server keeps its data
    #[arg(long, value_name = "FOLDER")]
    data_folder: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

fn runs(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(runs @ 1..=10_000) => Ok(runs),
        _ => Err("give a number of runs from 1 to 10000".to_owned()),
    }
}

pub(crate) fn run(options: &ExplainCostOptions) -> anyhow::Result<End> {
    let access = if options.writes { Access::RolledBack } else { Access::ReadOnly };
    if let Err(reason) = dyno_database::check_statement(&options.sql, access) {
        let hint = if options.writes { "" } else { " (--writes)" };
        return Err(crate::usage_error(anyhow::anyhow!("{reason}{hint}")));
    }
    let lab = lab::make(options.data_folder.as_deref())?;
    let cost = if options.on.contains("://") {
        let endpoint = endpoint_of(&options.on).map_err(crate::usage_error)?;
        if options.is_private_asked() {
            return Err(crate::usage_error(anyhow::anyhow!(
                "--workload, --setup, --engine, --programs and --setting are for private servers; \
                 Dyno does not change a server that is already running"
            )));
        }
        let connector = endpoint.protocol.checked_connector(&endpoint);
        let source = endpoint.protocol.cost_source(&connector, access, &lab.clock);
        explained(options, &lab, source)
    } else {
        let spec = options.spec(&lab).map_err(crate::usage_error)?;
        let workload = options.workload().map_err(crate::usage_error)?;
        let server =
            lab.products.start(&spec, &Place::under(&lab.keeper), &lab.clock).map_err(|error| {
                error.log.iter().for_each(|line| terminal::say(&format!("  server log: {line}")));
                anyhow::Error::new(error)
            })?;
        let cost = prepare(options, workload.as_deref(), server.as_ref())
            .and_then(|()| explained(options, &lab, server.cost_source(access, &lab.clock)));
        server.stop()?;
        cost
    };
    let Some(cost) = cost? else { return Ok(End::Interrupted) };
    terminal::out(&cost);
    Ok(End::Good)
}

/// Replaces variables in the URL; warns if a password would be sent in the clear.
pub(crate) fn endpoint_of(url: &str) -> anyhow::Result<Endpoint> {
    let endpoint = Endpoint::from_url_of_server(&secrets::expand(url)?)?;
    terminal::warn_of_login(&endpoint);
    Ok(endpoint)
}

impl ExplainCostOptions {
    /// Whether an option was given that needs a private server.
    fn is_private_asked(&self) -> bool {
        self.workload.is_some()
            || !self.setup.is_empty()
            || self.engine.is_some()
            || self.programs.is_some()
            || !self.settings.is_empty()
    }

    fn workload(&self) -> anyhow::Result<Option<Arc<dyn Workload>>> {
        let Some(name) = &self.workload else { return Ok(None) };
        let catalog = Catalog::built_in();
        let Some(spec) = catalog.find(name) else {
            let names: Vec<&str> =
                catalog.workloads().iter().map(|one| one.name.as_ref()).collect();
            let hint = hints::did_you_mean(name, &names);
            let hint = hint.unwrap_or_else(|| format!("there are {}", names.join(", ")));
            bail!("--workload: there is no workload `{name}`; {hint}");
        };
        let pair = |text: &String| {
            let (name, value) = pair("--option", text)?;
            anyhow::Ok((name.to_owned(), value.to_owned()))
        };
        let options = self.options.iter().map(pair).collect::<anyhow::Result<_>>()?;
        Ok(Some(spec.plan(&options, StepRequest::LEAST, Seed(1))?))
    }

    fn spec(&self, lab: &Lab) -> anyhow::Result<ServerSpec> {
        let products = Products::built_in();
        let (product, version) = named(&self.on);
        if products.find(product).is_none() {
            let hint = hints::for_product(product, &products);
            bail!("--on: there is no product `{}`; {hint}", shown(&self.on));
        }
        let memory = ByteCount(lab.environment.usable_memory_bytes());
        Ok(ServerSpec {
            engine: self.engine.clone(),
            programs: self.programs.clone(),
            settings: settings("--setting", &self.settings, memory)?,
            version: version.map(str::to_owned),
            ..ServerSpec::new(product)
        })
    }
}

fn prepare(
    options: &ExplainCostOptions,
    workload: Option<&dyn Workload>,
    server: &dyn Server,
) -> anyhow::Result<()> {
    let mut connection = (server.connector())()?;
    if let Some(workload) = workload {
        workload.check(server.dialect()).map_err(anyhow::Error::msg)?;
        populate(connection.as_mut(), workload)?;
    }
    for sql in &options.setup {
        connection.query(sql).with_context(|| format!("--setup `{sql}`"))?;
    }
    Ok(())
}

fn populate(connection: &mut dyn Connection, workload: &dyn Workload) -> anyhow::Result<()> {
    let tables = workload.tables(connection.dialect());
    let names: Vec<String> = tables.iter().map(|table| table.name.clone()).collect();
    note_tables(connection, &names)?;
    for (table_idx, table) in tables.iter().enumerate() {
        connection.query(&table.create)?;
        let mut number = 0;
        while number < table.rows {
            let end = (number + CHUNK_ROWS).min(table.rows);
            connection.load_rows(&table.name, &table.columns, &mut |row: &mut Row| {
                if number == end {
                    return false;
                }
                row.clear();
                workload.fill_row(table_idx, number, row);
                number += 1;
                true
            })?;
        }
    }
    for statement in tables.iter().flat_map(|table| &table.after) {
        connection.query(statement)?;
    }
    Ok(())
}

/// None if the user stopped it.
fn explained(
    options: &ExplainCostOptions,
    lab: &Lab,
    source: Result<Box<dyn CostSource>, String>,
) -> anyhow::Result<Option<String>> {
    let mut source = source.map_err(anyhow::Error::msg)?;
    let access = if options.writes { Access::RolledBack } else { Access::ReadOnly };
    let plan = CostPlan { runs: options.runs, access };
    let clock = Arc::clone(&lab.clock);
    let is_stopped = || lab.abort.is_raised();
    let cost = explain_cost(source.as_mut(), &options.sql, plan, clock.as_ref(), &is_stopped)
        .map_err(anyhow::Error::msg)?;
    let rendered = |cost: Cost| match options.json {
        true => json(&options.sql, &cost),
        false => Ok(text(&cost)),
    };
    cost.map(rendered).transpose()
}

fn spread(spread: &Spread) -> serde_json::Value {
    serde_json::json!({"median": spread.median, "low": spread.low, "high": spread.high})
}

fn json(sql: &str, cost: &Cost) -> anyhow::Result<String> {
    let counter = |one: &CounterCost| {
        let (per_run, idle) = (spread(&one.per_run), spread(&one.idle));
        serde_json::json!({"name": one.name, "per_run": per_run, "idle": idle})
    };
    Ok(serde_json::to_string_pretty(&serde_json::json!({
        "format": super::JSON_FORMAT,
        "sql": sql,
        "runs": cost.runs,
        "rows": cost.rows,
        "changed": cost.changed,
        "seconds": spread(&cost.seconds),
        "counters": cost.counters.iter().map(counter).collect::<Vec<_>>(),
        "counters_read": cost.n_counters,
        "plan": cost.plan.as_ref().ok(),
        "plan_missing": cost.plan.as_ref().err(),
    }))?)
}

fn text(cost: &Cost) -> String {
    let mut out = table(cost);
    match &cost.plan {
        Ok(lines) => {
            out += "plan (the optimizer's, asked for after the last run; not executed):\n";
            lines.iter().for_each(|line| out += &format!("  {line}\n"));
        }
        Err(why) => out += &format!("no plan: {why}\n"),
    }
    out
}

fn table(cost: &Cost) -> String {
    let Cost { seconds, .. } = cost;
    let mut out = format!(
        "{}, median {} ({} to {}); {} returned, {} changed\n",
        counted(cost.runs as usize, "run"),
        time(seconds.median),
        time(seconds.low),
        time(seconds.high),
        counted(cost.rows as usize, "row"),
        cost.changed,
    );
    if cost.counters.is_empty() {
        out += &format!(
            "None of {} counters moved more than on an idle server, judged by {}.\n",
            cost.n_counters,
            idle_intervals(cost.runs),
        );
        return out;
    }
    let mut rows =
        vec![["counter", "per run", "lowest", "highest", "idle (subtracted)"].map(str::to_owned)];
    rows.extend(cost.counters.iter().map(|counter| {
        let run = &counter.per_run;
        let numbers = [run.median, run.low, run.high, counter.idle.median].map(amount);
        let [median, low, high, idle] = numbers;
        [counter.name.clone(), median, low, high, idle]
    }));
    out + &super::table(&rows, &[1, 2, 3, 4])
        + &format!(
            "{} of {} counters moved more than while idle; the others are omitted. Their movement \
         while idle (last column: median of {}, including the cost of Dyno's own reads of the \
         counters) has been subtracted.\n",
            cost.counters.len(),
            cost.n_counters,
            idle_intervals(cost.runs),
        )
}

fn time(seconds: f64) -> String {
    Nanoseconds::from_secs_f64(seconds).to_string()
}

fn idle_intervals(runs: u32) -> String {
    match runs {
        1 => "1 idle interval, too few to judge the noise: increase --runs".to_owned(),
        _ => format!("{runs} idle intervals"),
    }
}

/// Up to six decimal places.
fn amount(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    let text = if value.abs() < 1.0 { format!("{value:.6}") } else { format!("{value:.3}") };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_gets_a_table() {
        let spread = |median: f64| Spread { median, low: median - 1.0, high: median + 1.5 };
        let cost = Cost {
            runs: 5,
            rows: 1,
            changed: 0,
            seconds: Spread { median: 0.0125, low: 0.01, high: 2.0 },
            counters: vec![CounterCost {
                name: "handler_read_rnd_next".to_owned(),
                per_run: spread(10_001.0),
                idle: Spread::default(),
            }],
            n_counters: 400,
            plan: Ok(vec!["SCAN t".to_owned(), "  USING INDEX k".to_owned()]),
        };
        let expected = "5 runs, median 12.5 ms (10 ms to 2 s); 1 row returned, 0 changed\n\
             counter  per run  lowest  highest  idle (subtracted)\n\
             handler_read_rnd_next  10001  10000  10002.5     0\n";
        let found = table(&cost);
        let blank = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(blank(&found).starts_with(&blank(expected)), "{found}");
        assert!(found.contains("1 of 400 counters moved"));
        assert!(found.contains("median of 5 idle intervals"), "{found}");
        let whole = text(&cost);
        let plan = "plan (the optimizer's, asked for after the last run; not executed):\n  SCAN t\n    USING INDEX k\n";
        assert!(whole.starts_with(&found) && whole.ends_with(plan), "{whole}");
        let without = text(&Cost {
            plan: Err("a statement that begins with SHOW has none".to_owned()),
            ..cost.clone()
        });
        assert!(
            without.ends_with("no plan: a statement that begins with SHOW has none\n"),
            "{without}"
        );
        let none = table(&Cost { counters: Vec::new(), runs: 1, ..cost });
        assert!(none.contains("None of 400") && none.contains("judged by 1 idle"), "{none}");
    }

    #[test]
    fn amounts_are_short() {
        let check = |value: f64, expected: &str| assert_eq!(amount(value), expected);
        check(10_001.0, "10001");
        check(-3.0, "-3");
        check(0.001_25, "0.00125");
        check(2.5, "2.5");
        check(1_234.567_89, "1234.568");
        check(0.0, "0");
    }
}
