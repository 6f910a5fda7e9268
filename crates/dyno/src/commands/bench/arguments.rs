//! The options of `dyno bench`, by the headings of their help.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, StyledStr, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use dyno_database::Products;
use dyno_model::{OptionKind, OptionSpec};
use dyno_workload::Target;
use dyno_workload::catalog::Catalog;

/// Headings of `--help`, in this order.
const DATABASE: &str = "Database";
const LOAD: &str = "Load";
pub(super) const SEARCH: &str = "Search for the highest load";
pub(super) const JOB: &str = "Job";
const TIME: &str = "Time";
const RECORD: &str = "Record and output";
const WORKLOAD: &str = "Options of the workload";

/// The group of options that make the load an open one.
pub(super) const OPEN: &str = "open";

/// None also where a subcommand has no such option.
pub(super) fn text<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a String> {
    matches.try_get_one::<String>(name).ok().flatten()
}

/// False if the command has no option of this name.
pub(super) fn is_given(matches: &ArgMatches, option: &str) -> bool {
    matches.try_contains_id(option).unwrap_or(false)
        && matches.value_source(option) == Some(ValueSource::CommandLine)
}

pub(super) fn option(name: &'static str, value: &'static str, help: impl Into<StyledStr>) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// Completions propose the products; any URL is accepted.
fn on(target: Target) -> Arg {
    let products = dyno_lab::products();
    let names: Vec<&str> =
        products.specs().filter(|spec| spec.target == target).map(|spec| &*spec.name).collect();
    let on = option("on", "DATABASE", on_help(&names)).required(true);
    proposing(on, names)
}

pub(crate) fn on_help(products: &[&str]) -> String {
    match products {
        [only] => (*only).to_owned(),
        _ => format!(
            "{}, a product with its version (PRODUCT@VERSION), or the URL of a running server",
            products.join(", ")
        ),
    }
}

/// Completions propose these words; others are accepted.
pub(super) fn proposing<W: Into<String>>(option: Arg, words: impl IntoIterator<Item = W>) -> Arg {
    option.value_parser(Proposed::of(words)).hide_possible_values(true)
}

fn engines() -> Vec<String> {
    let products = dyno_lab::products();
    let mut engines: Vec<String> =
        products.specs().flat_map(|product| product.engines.clone()).collect();
    engines.sort_unstable();
    engines.dedup();
    engines
}

pub(super) fn database_arguments(target: Target) -> Vec<Arg> {
    let arguments = [
        on(target),
        proposing(
            option("engine", "ENGINE", "Storage engine, if the product has several"),
            engines(),
        ),
        option("setting", "NAME=VALUE", "A setting of the private server; may be repeated")
            .action(ArgAction::Append),
        option("programs", "FOLDER", "Folder with the server's programs")
            .value_hint(ValueHint::DirPath),
        option("image", "IMAGE", "Container image (Podman or Docker) that contains the server"),
        option("data-folder", "FOLDER", "Folder in which a private server keeps its data")
            .value_hint(ValueHint::DirPath),
        flag("no-reuse", "Always populate; neither reuse nor keep data sets"),
        flag(
            "allow-existing-tables",
            "Use a database (by URL) that has tables Dyno did not create; they are left alone",
        ),
        flag(
            "keep-tables",
            "Keep Dyno's tables in the database (by URL); a later run there replaces them",
        ),
    ];
    arguments.map(|argument| argument.help_heading(DATABASE)).into()
}

pub(super) fn load_arguments() -> Vec<Arg> {
    let arguments = [
        option(
            "clients",
            "N",
            "Number of clients; with a rate, the maximum number of transactions in flight \
             [default: 1, or 64 with a rate]",
        ),
        option(
            "rate",
            "R",
            "Offered rate in transactions per second (open-loop load): 500, 2k; or a schedule that \
             repeats: \"500 for 10s, 2k for 5s\"",
        ),
        proposing(
            option(
                "arrivals",
                "WORD",
                "Distribution of arrivals: poisson or constant [default: poisson]",
            ),
            ["poisson", "constant"],
        )
        .requires(OPEN),
        option("workers", "N", "Load generator threads [default: one per CPU]"),
        option("retries", "N", "Retries after a deadlock or another transient error")
            .default_value("3"),
        option("statement-timeout", "TIME", "Time limit of a statement").default_value("60s"),
        option("seed", "N", "Seed of all random streams [default: 1]"),
    ];
    arguments.map(|argument| argument.help_heading(LOAD)).into()
}

pub(super) fn time_arguments() -> Vec<Arg> {
    let arguments = [
        option("duration", "TIME", "How long to measure").default_value("10s"),
        option("warm-up", "TIME", "Warm-up before the measured time").default_value("1s"),
        option(
            "until-steady",
            "TIME",
            "Continue until throughput has been steady for --duration, but at most this long",
        ),
        option(
            "run-off",
            "TIME",
            "Watch the engine catch up after the load, for at most this long",
        ),
    ];
    arguments.map(|argument| argument.help_heading(TIME)).into()
}

pub(super) fn record_arguments() -> Vec<Arg> {
    let arguments = [
        option("out", "FOLDER", "Keep the record in this folder, with a report")
            .value_hint(ValueHint::DirPath),
        flag("json", "Print the result as JSON"),
        flag("print-study", "Print these options as a study file, and run nothing"),
        option(
            "require",
            "LIMIT",
            "Exit with status 1 unless this holds: \"p99 <= 20ms\", \"throughput >= 1000\"; may be repeated",
        )
        .action(ArgAction::Append),
        option(
            "metrics",
            "ADDRESS",
            "Serve the latest numbers as OpenMetrics text on this loopback address, such as 127.0.0.1:9464",
        ),
        Arg::new("probes-off")
            .long("probes-off")
            .value_name("PROBE")
            .help("A probe to leave out; may be repeated")
            .action(ArgAction::Append)
            .value_parser(clap::builder::PossibleValuesParser::new(crate::vocabulary::probes())),
    ];
    arguments.map(|argument| argument.help_heading(RECORD)).into()
}

pub(super) fn workload_argument(spec: &OptionSpec) -> Arg {
    let argument = Arg::new(format!("option:{}", spec.name))
        .long(spec.name.replace('_', "-"))
        .alias(spec.name.clone().into_owned())
        .value_name(match spec.kind {
            OptionKind::Switch => "on|off",
            _ => "VALUE",
        })
        .default_value(spec.default.clone().into_owned())
        .help(with_words(spec))
        .help_heading(WORKLOAD);
    match &spec.kind {
        OptionKind::Word(words) => proposing(argument, words.iter()),
        OptionKind::Switch => proposing(argument, ["on", "off"]),
        OptionKind::Count
        | OptionKind::Size
        | OptionKind::Real
        | OptionKind::Counts
        | OptionKind::Text => argument,
    }
}

fn with_words(spec: &OptionSpec) -> String {
    match &spec.kind {
        OptionKind::Word(words) => {
            let words: Vec<&str> = words.iter().collect();
            format!("{} [possible values: {}]", spec.help, words.join(", "))
        }
        _ => spec.help.clone().into_owned(),
    }
}

/// Accepts any text; the words are for completions.
#[derive(Clone)]
struct Proposed(Vec<String>);

impl Proposed {
    fn of<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Proposed {
        Proposed(words.into_iter().map(Into::into).collect())
    }
}

impl TypedValueParser for Proposed {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

/// For completions of options that clap derives.
pub(crate) fn products() -> impl TypedValueParser<Value = String> {
    Proposed::of(Products::built_in().names())
}

pub(crate) fn workloads() -> impl TypedValueParser<Value = String> {
    let catalog = Catalog::built_in();
    Proposed::of(catalog.workloads().iter().map(|workload| &*workload.name))
}

#[cfg(test)]
mod tests {
    #[test]
    fn completions_have_values() {
        let mut text = Vec::new();
        let mut command = crate::cli::command();
        clap_complete::generate(clap_complete::Shell::Bash, &mut command, "dyno", &mut text);
        let text = String::from_utf8(text).expect("it is text");
        for words in ["sqlite mariadb mysql postgresql", "poisson constant", "on off", "InnoDB"] {
            assert!(text.contains(words), "{words}");
        }
        assert!(
            text.contains("oltp_read_only") && text.contains("tpcb-like"),
            "workloads, scripts"
        );
    }
}
