//! Hints for a wrong command line: the nearest word, and the words of other tools.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use dyno_database::Products;
use dyno_workload::catalog::Catalog;

const NEAREST_MOST: usize = 3;

/// Options of sysbench, pgbench, HammerDB, k6 and others, with their counterparts in `dyno bench`.
const OPTIONS: &[(&str, &str)] = &[
    (
        "--threads --num-threads -c --client --users --vus --connections",
        "set the number of clients with `--clients N`",
    ),
    (
        "--time --max-time -T --runtime --seconds --length",
        "set the measured time with `--duration 30s`",
    ),
    ("-j --jobs", "set the number of load generator threads with `--workers N`"),
    (
        "-s --scale-factor",
        "set the size of the data with an option of the workload: `--scale N` for tpcb, \
         `--warehouses N` for tpcc, `--table-size N` for the oltp_ workloads",
    ),
    ("-R --tps --qps --arrival-rate", "set the offered rate with `--rate 500`"),
    (
        "-L --latency-limit",
        "find the highest load that meets a limit with `--find-rate \"p99 <= 20ms\"`",
    ),
    ("-M", "set pgbench's protocol with `--protocol`, an option of the workload tpcb"),
    (
        "--report-interval -P --progress --histogram -r --report-per-command",
        "each second is shown during the run; `--out FOLDER` keeps them all, with a report",
    ),
    (
        "--events -t --transactions -n --num-transactions",
        "`dyno bench` runs for a given time, not for a number of transactions: `--duration 30s`",
    ),
    ("--warmup --warmup-time --ramp-up", "set the warm-up with `--warm-up 10s`"),
    (
        "-f --file --lua --builtin -b",
        "run scripts with `dyno pgbench` or `dyno sysbench`, and pgbench's built-in ones with \
         `--script` of the workload tpcb; `dyno bench --help` lists the workloads",
    ),
    (
        "--rand-type",
        "set how rows are drawn with `--distribution`, an option of the oltp_ workloads",
    ),
    ("-i --initialize --prepare", "`dyno bench` creates and fills its tables itself"),
    (
        "--db-driver --mysql-host --mysql-user --mysql-db --mysql-password --mysql-port \
         --mysql-socket --pgsql-host --pgsql-user --pgsql-db --pgsql-password --pgsql-port --host \
         --user --password --port --db --database --dbname -U -p -d -H -u",
        "name the server with `--on mysql://user@host:3306/database` or `--on \
         postgresql://user@host:5432/database`; a password may come from the environment: \
         `user:${DB_PASSWORD}@host`",
    ),
    (
        "--repetitions --repeat --runs",
        "`dyno bench` runs one trial; to repeat and compare, write a study (`repetitions`) and \
         run it with `dyno run`",
    ),
    ("--output -o", "keep the record with `--out FOLDER`"),
];

/// Wrong for `dyno run`: these belong in the study.
const OF_A_STUDY: &[(&str, &str)] = &[
    ("--clients --threads -c", "clients"),
    ("--duration --time -T", "duration"),
    ("--warm-up", "warm_up"),
    ("--repetitions --repeat", "repetitions"),
    ("--rate", "rate"),
    ("--threshold", "threshold"),
];

/// Counterparts in `dyno gate`.
const OF_A_GATE: &[(&str, &str)] = &[
    (
        "--threads --num-threads -c --client --users --vus --connections",
        "set the numbers of clients with `--clients 1,8`",
    ),
    (
        "--time --max-time -T --runtime --seconds",
        "set the measured time at each number of clients with `--duration 20s`",
    ),
    ("--warmup --warmup-time --ramp-up", "set the warm-up with `--warm-up 5s`"),
    ("--runs --repeat -n", "set the number of trials of each build with `--repetitions 8`"),
    ("--json", "print the result as JSON with `--format json`"),
];

/// The program is made only for the hint that names its commands: it has all workloads.
pub(crate) fn enrich(
    error: &mut clap::Error,
    given: &[String],
    program: &dyn Fn() -> clap::Command,
) {
    let command = given.first().map_or("", String::as_str);
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
                return;
            };
            if let Some(hint) = for_option(command, option) {
                error.remove(ContextKind::SuggestedArg);
                let hint = ContextValue::StyledStrs(vec![StyledStr::from(hint)]);
                error.insert(ContextKind::Suggested, hint);
            }
        }
        ErrorKind::InvalidSubcommand => {
            let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
                return;
            };
            let word = word.clone();
            let is_bench = command == "bench" && word != command;
            error.remove(ContextKind::SuggestedSubcommand);
            let hint = if is_bench { for_workload(&word) } else { for_command(&word, program) };
            if let Some(hint) = hint {
                let hint = ContextValue::StyledStrs(vec![StyledStr::from(hint)]);
                error.insert(ContextKind::Suggested, hint);
            }
        }
        _ => {}
    }
}

/// clap would call an unknown workload a subcommand.
pub(crate) fn unknown_workload(error: &clap::Error, given: &[String]) -> Option<String> {
    let is_bench = given.first().is_some_and(|command| command == "bench");
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    if error.kind() != ErrorKind::InvalidSubcommand || !is_bench || word == "bench" {
        return None;
    }
    let hint = for_workload(word).map(|hint| format!("{hint} ")).unwrap_or_default();
    Some(format!(
        "error: there is no workload `{word}`\n\n  tip: {hint}`dyno bench --help` lists the workloads\n"
    ))
}

/// None for unknown options.
fn for_option(command: &str, option: &str) -> Option<String> {
    let option = option.split('=').next().unwrap_or(option);
    let find = |table: &'static [(&str, &'static str)]| {
        let is_it = |names: &str| names.split(' ').any(|name| name == option);
        table.iter().find(|(names, _)| is_it(names)).map(|(_, hint)| *hint)
    };
    match command {
        "bench" => find(OPTIONS).map(str::to_owned),
        "gate" => find(OF_A_GATE).map(str::to_owned),
        "run" => find(OF_A_STUDY)
            .map(|key| format!("set it in the study: `{key} = …` in its [design] table")),
        _ => None,
    }
}

fn for_workload(word: &str) -> Option<String> {
    let catalog = Catalog::built_in();
    let workloads: Vec<&str> = catalog.workloads().iter().map(|one| one.name.as_ref()).collect();
    did_you_mean(word, &workloads)
}

fn for_command(word: &str, program: &dyn Fn() -> clap::Command) -> Option<String> {
    if word.ends_with(".toml") {
        return Some(format!("run a study with `dyno run {word}`"));
    }
    if Catalog::built_in().find(word).is_some() {
        return Some(format!(
            "run one trial of this workload with `dyno bench {word} --on DATABASE`"
        ));
    }
    let program = program();
    let commands: Vec<&str> = program.get_subcommands().map(clap::Command::get_name).collect();
    did_you_mean(word, &commands)
}

/// The nearest first: `did you mean `run`?`
pub(crate) fn did_you_mean(word: &str, words: &[&str]) -> Option<String> {
    let near = dyno_study::nearest_words(word, words);
    let near: Vec<String> = near.iter().take(NEAREST_MOST).map(|one| format!("`{one}`")).collect();
    let (last, before) = near.split_last()?;
    Some(match before {
        [] => format!("did you mean {last}?"),
        before => format!("did you mean {} or {last}?", before.join(", ")),
    })
}

/// The nearest name, or how to reach other servers.
pub(crate) fn for_product(word: &str, products: &Products) -> String {
    if let Some(why) = dyno_database::LEFT_OUT {
        return why.to_owned();
    }
    let names = products.names();
    let lower = word.to_ascii_lowercase();
    let mut confused = products.specs().flat_map(|product| &product.confused_names);
    let known = confused.find(|(word, _)| *word == lower).map(|(_, hint)| hint.clone());
    known
        .or_else(|| did_you_mean(word, &names))
        .unwrap_or_else(|| format!("give one of {}, or the URL of a server", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    fn refusal(line: &str) -> String {
        let given: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let words = std::iter::once("dyno".to_owned()).chain(given.clone());
        let mut error = cli::command().try_get_matches_from(words).expect_err(line);
        enrich(&mut error, &given, &cli::command);
        error.to_string()
    }

    #[test]
    fn the_program_is_made_only_to_name_its_commands() {
        let words = ["dyno", "run", "--bogus"];
        let mut error = cli::command().try_get_matches_from(words).expect_err("no such option");
        enrich(&mut error, &["run".to_owned()], &|| panic!("it is made"));
    }

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let found = refusal(line);
        assert!(found.contains(expected), "{line}: {found}");
    }

    #[test]
    fn words_of_other_tools_have_a_hint() {
        let bench = "bench oltp_read_only --on sqlite";
        check(&format!("{bench} --threads 8"), "tip: set the number of clients with `--clients N`");
        check(&format!("{bench} --threads=8"), "`--clients N`");
        check(&format!("{bench} --time 30"), "`--duration 30s`");
        check(&format!("{bench} -c 8"), "`--clients N`");
        check(&format!("{bench} -T 30"), "`--duration 30s`");
        check(&format!("{bench} -j 2"), "`--workers N`");
        check(&format!("{bench} -s 10"), "`--warehouses N`");
        check(&format!("{bench} --mysql-host h"), "--on mysql://");
        check("run study.toml --clients 8", "`clients = …` in its [design] table");
    }

    #[test]
    fn no_hint_names_an_option_that_there_is_not() {
        let workload = |name: &str| {
            let bench = cli::command().find_subcommand("bench").cloned().expect("there is a bench");
            bench.find_subcommand(name).cloned().expect("there is the workload")
        };
        let workloads = ["tpcb", "tpcc", "oltp_read_only"].map(workload);
        for (names, hint) in OPTIONS {
            for named in hint.split('`').skip(1).step_by(2).filter(|text| text.starts_with("--")) {
                let option = named.trim_start_matches("--").split(' ').next().unwrap_or_default();
                let has = |command: &clap::Command| {
                    command.get_arguments().any(|arg| arg.get_long() == Some(option))
                };
                assert!(workloads.iter().any(has), "{names:?}: --{option}");
            }
        }
    }

    #[test]
    fn the_nearest_word_comes_first() {
        check("rn", "did you mean `run`?");
        check("bench oltp_read_onl --on sqlite", "did you mean `oltp_read_only`?");
        check("studies/quickstart.toml", "`dyno run studies/quickstart.toml`");
        check("oltp_read_only --on sqlite", "`dyno bench oltp_read_only --on DATABASE`");
        assert!(!refusal("zzzzzzzz").contains("tip:"));
    }

    #[test]
    fn products_have_hints() {
        let products = Products::built_in();
        let check = |word: &str, expected: &str| {
            let found = for_product(word, &products);
            assert!(found.contains(expected), "{word}: {found}");
        };
        check("maria", "did you mean `mariadb`?");
        check("postgres", "did you mean `postgresql`?");
        check("pg", "`postgresql`");
        check("percona", "mysql://user@host");
        check(
            "oracle",
            "sqlite, mariadb, mysql, postgresql, clickhouse, ferretdb, cockroachdb, dolt, percona-server, tidb, yugabytedb, null-mysql, ",
        );
    }
}
