//! The options of all subcommands.

use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use dyno_units::{Nanoseconds, Seed};

use crate::commands::{
    agent, bench, capture, check, compare, convert, datasets, deployments, doctor, explain_cost,
    gate, hold, import, pgbench, plan, products, reference, report, run, serve, sql, sysbench, up,
    watch,
};
#[cfg(feature = "servers")]
use crate::commands::{archive, calibrate, dump};
use crate::{End, examples, hints, signals, terminal, values};

/// Benchmark databases: a study file describes the question; Dyno runs the trials and answers it,
/// with confidence intervals and the evidence in a report.
#[derive(Parser)]
#[command(name = "dyno", version, max_term_width = 100, subcommand_required = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a study, or resume it: plan, deploy, load, watch, record, analyse, report
    Run(run::RunOptions),
    /// Check a study file and show all its errors
    Check {
        /// The study file
        study: PathBuf,
        /// Also start each private server that a declared workload runs on, with ten rows in each table;
        /// prepare the workload's statements there, and execute each kind of transaction once
        #[arg(long)]
        start_servers: bool,
    },
    /// Show the trials of a study in order, with the time and disk space they will take
    Plan {
        /// The study file
        study: PathBuf,
        /// The seed, if the study sets none
        #[arg(long, value_parser = values::seed)]
        seed: Option<Seed>,
        /// Print the canonical text instead: everything that the trials depend on. A run is continued
        /// only if this text is the same
        #[arg(long)]
        canonical: bool,
        /// Print the Kubernetes manifest of the study's hosts instead: what `dyno run` applies, with
        /// zeros in place of the random token of each run
        #[arg(long, conflicts_with = "canonical")]
        manifests: bool,
    },
    /// Print the JSON Schema of study files for editors, or the reference of all keys
    Schema {
        /// What to print
        #[arg(long, value_enum, default_value = "json")]
        format: reference::SchemaFormat,
    },
    /// Rewrite a run's report, or write one report for several runs
    Report(report::ReportOptions),
    /// Compare a run with an earlier one; with --gate, the exit code says whether it is worse
    Compare(compare::CompareOptions),
    /// Benchmark two builds in interleaved trials; the exit code says whether the new one is worse
    Gate(Box<gate::GateOptions>),
    /// Show all runs of a folder in a browser, on this machine only: search, reports, comparisons,
    /// and running studies live
    Serve(serve::ServeOptions),
    /// Query a run's record with SQL (tables: run, variant, step, trial, result, interval, reading
    /// …)
    Sql {
        /// The run's folder
        run: PathBuf,
        /// The query; `.schema` shows the tables with their columns, `.tables` their names
        query: String,
        /// Print tab-separated values instead of a table
        #[arg(long)]
        tsv: bool,
    },
    /// Import the output of sysbench, pgbench, iibench.py or HammerDB as a run, and report on it
    Import(import::ImportOptions),
    /// Convert another benchmark's configuration (RonDB's autobench.conf) to a study, and print it
    Convert(convert::ConvertOptions),
    /// Make a study from a server's log, with the log's mix of transactions and the distributions
    /// of their values
    Capture(capture::CaptureOptions),
    /// Watch a running server, a process or this host, without putting load on it
    Watch(watch::WatchOptions),
    /// Execute a statement several times and show how much each of the engine's counters grows per
    /// execution
    ExplainCost(explain_cost::ExplainCostOptions),
    /// Write the tables of a database into a folder of text files, over several connections at once
    #[cfg(feature = "servers")]
    Dump(dump::DumpArguments),
    /// Restore a dump made by `dyno dump`
    #[cfg(feature = "servers")]
    Restore(dump::RestoreArguments),
    /// Move old rows of a table to another database in batches, and delete them from the source
    #[cfg(feature = "servers")]
    Archive(archive::ArchiveArguments),
    /// Check whether this machine is fit for benchmarking, and say what to change
    Doctor {
        /// The folder in which servers would keep their data
        #[arg(long, value_name = "FOLDER")]
        data_folder: Option<PathBuf>,
    },
    /// Measure the load generator's own capacity on this machine; later runs report how much of it
    /// they used
    Calibrate {
        /// Duration of each of the eight measurements
        #[arg(long, value_name = "TIME", default_value = "2s", value_parser = values::duration)]
        duration: Nanoseconds,
        /// Keep the result even if other processes disturbed it; everything that uses it then says so
        #[arg(long)]
        keep_disturbed: bool,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// List the data sets kept for later trials, and the initial data of new servers, or remove some
    Datasets(datasets::DataSetsOptions),
    /// Run pgbench command lines and scripts: same output, plus a record
    #[command(disable_help_flag = true)]
    Pgbench {
        /// The options and operands of pgbench; `dyno pgbench --help` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Run sysbench command lines and Lua scripts: same output, plus a record
    #[command(disable_help_flag = true)]
    Sysbench {
        /// The options, script and command of sysbench; `dyno sysbench --help` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Start a private server that runs until `dyno down`
    Up(Box<up::UpOptions>),
    /// List the servers that `dyno up` has started
    Ls {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Open the product's own client on a server that `dyno up` has started
    Connect {
        /// The server's name, as `dyno ls` lists it; append /MEMBER for a member other than the first
        name: String,
        /// More arguments for the client
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Print the last messages of a server that `dyno up` has started
    Logs {
        /// The server's name, as `dyno ls` lists it; append /MEMBER for a member other than the first
        name: String,
        /// How many lines
        #[arg(long, short = 'n', default_value_t = 100)]
        lines: usize,
    },
    /// Stop servers that `dyno up` has started, and remove them with their data
    Down {
        /// The servers' names, as `dyno ls` lists them
        #[arg(value_name = "NAME", required_unless_present = "all")]
        names: Vec<String>,
        /// All of them
        #[arg(long, conflicts_with = "names")]
        all: bool,
    },
    /// Generate load or start a server for a study that runs on another machine (protocol on standard input and
    /// output); a study with `generators` or `on` starts it
    #[command(hide = true)]
    Agent(agent::AgentOptions),
    /// Keep servers for `dyno up`
    #[command(hide = true)]
    Hold,
    /// List installed and fetched database servers with their versions; fetch more, check or remove
    /// fetched ones
    Products(products::ProductsOptions),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print a page of the documentation that is made from the program itself
    #[command(hide = true)]
    Reference {
        /// Which page
        page: reference::ReferencePage,
    },
    /// Write the manual pages of all commands into a folder
    #[cfg(feature = "man")]
    #[command(hide = true)]
    Man {
        /// The folder
        folder: std::path::PathBuf,
    },
}

pub(crate) fn run() -> anyhow::Result<End> {
    // clap would take options of its own out of the tool's words.
    let mut given = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    match given.next().as_deref() {
        Some("pgbench") => return pgbench::run(&given.collect::<Vec<String>>()),
        Some("sysbench") => return sysbench::run(&given.collect::<Vec<String>>()),
        _ => {}
    }
    signals::listen()?;
    let matches = command().try_get_matches().unwrap_or_else(|error| refuse(error));
    if let Some(("bench", matches)) = matches.subcommand() {
        return bench::run(matches);
    }
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match cli.command {
        Command::Run(options) => run::run(&options),
        Command::Check { study, start_servers } => check::run(&study, start_servers),
        Command::Plan { study, manifests: true, .. } => plan::show_manifests(&study),
        Command::Plan { study, seed, canonical, .. } => plan::run(&study, seed, canonical),
        Command::Schema { format } => reference::schema(format),
        Command::Report(options) => report::run(&options),
        Command::Compare(options) => compare::run(&options),
        Command::Gate(options) => gate::run(&options),
        Command::Serve(options) => serve::run(&options),
        Command::Sql { run, query, tsv } => sql::run(&run, &query, tsv),
        Command::Import(options) => import::run(&options),
        Command::Convert(options) => convert::run(&options),
        Command::Capture(options) => capture::run(&options),
        Command::Watch(options) => watch::run(&options),
        Command::ExplainCost(options) => explain_cost::run(&options),
        #[cfg(feature = "servers")]
        Command::Dump(options) => dump::run(&options),
        #[cfg(feature = "servers")]
        Command::Restore(options) => dump::restore(&options),
        #[cfg(feature = "servers")]
        Command::Archive(options) => archive::run(&options),
        Command::Doctor { data_folder } => doctor::run(data_folder),
        #[cfg(feature = "servers")]
        Command::Calibrate { duration, keep_disturbed, json } => {
            calibrate::run(duration, keep_disturbed, json)
        }
        #[cfg(not(feature = "servers"))]
        Command::Calibrate { .. } => anyhow::bail!(
            "`dyno calibrate` needs the null servers: {}",
            dyno_database::LEFT_OUT.unwrap_or_default()
        ),
        Command::Datasets(options) => datasets::run(&options),
        Command::Pgbench { words } => pgbench::run(&words),
        Command::Sysbench { words } => sysbench::run(&words),
        Command::Up(options) => up::run(&options),
        Command::Ls { json } => deployments::ls(json),
        Command::Connect { name, arguments } => deployments::connect(&name, &arguments),
        Command::Logs { name, lines } => deployments::logs(&name, lines),
        Command::Down { names, all } => deployments::down(&names, all),
        Command::Agent(options) => agent::run(&options),
        Command::Hold => hold::run(),
        Command::Products(options) => products::run(&options),
        Command::Completions { shell } => reference::completions(shell, command()),
        Command::Reference { page } => reference::run(page, command()),
        #[cfg(feature = "man")]
        Command::Man { folder } => reference::man(&folder, command()),
    }
}

/// Ends with the message of clap (help or a usage error), in which passwords are masked.
fn refuse(mut error: clap::Error) -> ! {
    let given = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let given: Vec<String> = given.collect();
    hints::enrich(&mut error, &given, &command);
    let unknown = hints::unknown_workload(&error, &given);
    let is_of_clap = unknown.is_none();
    let message = unknown.unwrap_or_else(|| error.to_string());
    let shown = without_passwords(&message, &given);
    if is_of_clap && (!error.use_stderr() || shown == message) {
        error.exit();
    }
    terminal::say(shown.trim_end());
    std::process::exit(error.exit_code());
}

fn without_passwords(text: &str, given: &[String]) -> String {
    let values = given.iter().map(|word| match word.split_once('=') {
        Some((option, value)) if option.starts_with("--") => value,
        _ => word,
    });
    let masked = values.map(|word| (word, dyno_units::redact_name_or_url(word)));
    let masked = masked.filter(|(word, masked)| word != masked);
    masked.fold(text.to_owned(), |text, (word, masked)| text.replace(word, &masked))
}

/// `bench` has a subcommand for each workload of the catalog.
pub(crate) fn command() -> clap::Command {
    examples::with_examples(Cli::command()).subcommand(bench::command())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }

    #[test]
    fn words_that_may_hold_a_password_are_masked_in_refusals() {
        let check = |word: &str, text: &str, expected: &str| {
            assert_eq!(super::without_passwords(text, &[word.to_owned()]), expected);
        };
        check(
            "me:pw@h",
            "unexpected argument 'me:pw@h' found",
            "unexpected argument 'me:***@h' found",
        );
        check("--bogus=me:pw@h", "--bogus 'me:pw@h'", "--bogus 'me:***@h'");
        check("mysql:/me:hush", "unexpected 'mysql:/me:hush'", "unexpected 'mysql:/me:***'");
        check("127.0.0.1:x", "invalid '127.0.0.1:x'", "invalid '127.0.0.1:x'");
    }
}
