//! Writes the options of a bench as a study.

use anyhow::{Context, bail};
use clap::ArgMatches;
use dyno_model::{OptionKind, OptionSpec};
use dyno_study::{LoadLevel, Study};
use dyno_workload::catalog::Catalog;
use toml::Value;

use super::arguments::{is_given, text};
use super::job;
use crate::commands::products;
use crate::hints;
use crate::written::{Written, scalar};

/// Options that are numbers or texts such as `2k`.
const NUMBERS: [&str; 5] = ["clients", "rate", "workers", "retries", "seed"];
const TEXTS: [&str; 9] = [
    "find_rate",
    "find_clients",
    "find_precision",
    "arrivals",
    "duration",
    "until_steady",
    "run_off",
    "statement_timeout",
    "data_folder",
];

/// Returns the study with its text; fails if an option is wrong.
pub(super) fn read(workload: &str, matches: &ArgMatches) -> anyhow::Result<(Study, String)> {
    if let Some(several) = text(matches, "clients").filter(|text| text.contains([',', '.'])) {
        bail!(
            "--clients takes one whole number, such as 16, not `{several}`; to compare several, use a study: \
             vary = {{ clients = [1, 8] }}"
        );
    }
    let mut written = written(workload, matches, true)?;
    let mut study = written.read()?;
    // Steps that the workload defines have a warm-up only on request.
    let has_own_steps = matches!(study.design.loads[..], [LoadLevel::Own(_), ..]);
    if has_own_steps && !is_given(matches, "warm-up") {
        written = self::written(workload, matches, false)?;
        study = written.read()?;
    }
    Ok((study, written.text().to_owned()))
}

/// For `--print-study`; names the variables that stand for passwords.
pub(super) fn printed(study: &str) -> String {
    let hidden = crate::secrets::variables(study);
    let hidden = hidden.iter().filter(|name| name.starts_with("DYNO_SECRET"));
    let notes =
        hidden.map(|name| format!("# Set the environment variable {name} to the password.\n"));
    format!("# For `dyno run`.\n{}{study}", notes.collect::<String>())
}

fn written(workload: &str, matches: &ArgMatches, has_warm_up: bool) -> anyhow::Result<Written> {
    let on = text(matches, "on").map_or("", String::as_str);
    let mut study = Written::new(&format!("{workload} on {}", dyno_units::redact_secrets(on)));
    database(&mut study, on, matches)?;
    let job = job::find(workload);
    let workload = job.map_or(workload, |job| job.workload);
    study.table(&["workload", workload]);
    let catalog = Catalog::built_in();
    let spec = catalog.find(workload).context("there is no such workload")?;
    for option in &spec.options {
        let name = format!("option:{}", option.name);
        if let Some(value) = text(matches, &name).filter(|_| is_given(matches, &name)) {
            study.line(&option.name, option_value(option, value));
        }
    }
    if let Some(job) = job {
        let products = dyno_lab::products();
        let product = products.find(products::named(on).0);
        job.write(&mut study, matches, product)?;
    }
    study.table(&["design"]);
    study.fixed("repetitions", 1);
    study.fixed("rest", "0s");
    design(&mut study, matches);
    if has_warm_up {
        study.line("warm_up", text(matches, "warm-up").map_or("0s", String::as_str));
    }
    Ok(study)
}

fn database(study: &mut Written, on: &str, matches: &ArgMatches) -> anyhow::Result<()> {
    let scheme = on.split_once("://").map(|(scheme, _)| scheme);
    let products = dyno_lab::products();
    let (product, version) = if scheme.is_some() { (on, None) } else { products::named(on) };
    if scheme.is_none() && products.find(product).is_none() {
        let hint = hints::for_product(product, &products);
        bail!("--on: there is no product `{}`; {hint}", products::shown(on));
    }
    if version.is_some() && products.spec(product).is_some_and(|spec| spec.is_embedded) {
        bail!(
            "--on: `{product}` is built into Dyno and has no versions to choose from; write --on {product}"
        );
    }
    // A table's name cannot contain a slash.
    let name = scheme.unwrap_or(product);
    study.table(&["database", name]);
    study.line_of("--on", if scheme.is_some() { "url" } else { "product" }, product);
    if let Some(version) = version {
        study.line_of("--on", "version", version);
    }
    for key in ["engine", "programs", "image"] {
        if let Some(value) = text(matches, key) {
            study.line(key, &**value);
        }
    }
    for key in ["allow_existing_tables", "keep_tables"] {
        if matches.get_flag(&key.replace('_', "-")) {
            study.line(key, true);
        }
    }
    let settings = matches.get_many::<String>("setting").unwrap_or_default();
    if settings.len() > 0 {
        study.table(&["database", name, "settings"]);
        study.pairs("--setting", settings)?;
    }
    Ok(())
}

/// Numbers stay numbers where a study expects them.
fn option_value(option: &OptionSpec, text: &str) -> Value {
    match option.kind {
        OptionKind::Size | OptionKind::Word(_) | OptionKind::Counts | OptionKind::Text => {
            text.into()
        }
        OptionKind::Count | OptionKind::Real | OptionKind::Switch => scalar(text),
    }
}

fn design(study: &mut Written, matches: &ArgMatches) {
    let given = |key: &str| text(matches, &key.replace('_', "-"));
    for key in NUMBERS {
        match (given(key), key) {
            (Some(value), _) => study.line(key, scalar(value)),
            (None, "seed") => study.fixed("seed", 1),
            (None, _) => {}
        }
    }
    for key in TEXTS {
        if let Some(value) = given(key) {
            study.line(key, &**value);
        }
    }
    // Tables on a running server are always populated.
    let is_url = text(matches, "on").is_some_and(|on| on.contains("://"));
    if matches.get_flag("no-reuse") && !is_url {
        study.line_of("--no-reuse", "reuse", false);
    }
    for (option, key) in [("require", "require"), ("probes-off", "probes_off")] {
        let values = matches.get_many::<String>(option).unwrap_or_default();
        if values.len() > 0 {
            study.line(key, values.cloned().collect::<Vec<String>>());
        }
    }
}

#[cfg(test)]
mod tests {
    use dyno_study::{JobLoad, JobWork};
    use dyno_units::{Nanoseconds, Seed, SettingValue};

    use super::*;

    fn read_words(words: &[&str]) -> anyhow::Result<(Study, String)> {
        let words = ["dyno", "bench"].iter().chain(words);
        let matches = crate::cli::command().try_get_matches_from(words).expect("clap takes it");
        let (_, matches) = matches.subcommand().expect("it is a bench");
        let (workload, matches) = matches.subcommand().expect("it names a workload");
        read(workload, matches)
    }

    const LINES: [&[&str]; 13] = [
        &["create-index", "--on", "mariadb", "--engine", "RocksDB", "--at-once", "3"],
        &[
            "create-index",
            "--on=postgresql",
            "--sql=CREATE INDEX CONCURRENTLY by_c ON sbtest1 (c)",
            "--check=SELECT 1",
            "--load=on",
            "--start-after=2s",
            "--clients=4",
        ],
        &["oltp_read_only", "--on", "mariadb@10.11"],
        &["oltp_read_only", "--on", "mariadb", "--setting", "x=true", "--setting", "a.b=8GiB"],
        &["oltp_insert", "--on=sqlite", "--rate=2k", "--arrivals", "constant", "--clients", "1k"],
        &["tpcb", "--on", "postgresql", "--find-rate", "p99 <= 20ms", "--find-precision", "2%"],
        &["insert-benchmark", "--on", "mariadb", "--engine", "RocksDB", "--clients", "4"],
        &["tpcc", "--on", "mysql://me:${PW}@h/d", "--keep-tables", "--warehouses", "10"],
        &[
            "oltp_read_only",
            "--on=mariadb",
            "--rate",
            "5 for 1s, 10 for 1s",
            "--seed=7",
            "--run-off=2min",
            "--require",
            "p99 <= 20ms",
            "--probes-off",
            "innodb",
            "--statement-timeout=0",
            "--no-reuse",
            "--table-size=10k",
        ],
        &["dump", "--on=postgresql", "--threads=4", "--load=until-done", "--clients=4"],
        &["restore", "--on", "mariadb", "--tables", "3"],
        &["migrate", "--on", "postgresql", "--scale", "10", "--clients", "4"],
        &["migrate", "--on=postgresql", "--batch=10", "--pause=0s", "--locked=wait", "--load=off"],
    ];

    #[test]
    fn a_product_may_have_a_version() {
        let (study, _) = read_words(&["oltp_read_only", "--on", "postgresql@9.6"]).unwrap();
        assert_eq!(study.databases[0].version.as_deref(), Some("9.6"));
        let error = read_words(&["oltp_read_only", "--on", "sqlite@3"]).unwrap_err();
        assert!(error.to_string().ends_with("write --on sqlite"), "{error}");
        let error = read_words(&["oltp_read_only", "--on", "postgres@9.6"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--on: there is no product `postgres`; did you mean `postgresql`?"
        );
    }

    #[test]
    fn the_password_of_a_mistyped_url_is_not_shown() {
        for on in [
            "mysql:/me:hush@h",
            "mysql//me:hush@h",
            "mysql:/me:x@hush@h",
            "mysql:me:hush@h",
            "me:hush@h",
            "mysql:/me:hush",
        ] {
            let error = read_words(&["oltp_read_only", "--on", on]).unwrap_err().to_string();
            assert!(error.contains("there is no product `m") && !error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn the_printed_study_gives_the_same_plan() {
        for words in LINES {
            let (study, source) =
                read_words(words).unwrap_or_else(|error| panic!("{words:?} {error}"));
            let printed = printed(&source);
            let file = dyno_study::parse(&printed, &crate::vocabulary::vocabulary());
            let file = file.unwrap_or_else(|wrong| panic!("{printed}{wrong:#?}"));
            assert_eq!(file, study, "{printed}");
            assert_eq!(dyno_study::plan(&file, Seed(9)), dyno_study::plan(&study, Seed(1)));
        }
    }

    #[test]
    fn an_option_means_what_the_same_line_of_a_file_means() {
        let (study, _) = read_words(LINES[3]).expect("it is right");
        let settings = &study.variants[0].database.settings;
        assert_eq!(settings["x"], SettingValue::Switch(true));
        assert_eq!(settings["a.b"].to_string(), "8 GiB");
        let (study, _) = read_words(LINES[6]).expect("it is right");
        assert_eq!(study.design.warm_up, Nanoseconds::ZERO);
        let (study, _) = read_words(LINES[4]).expect("it is right");
        assert_eq!(study.design.warm_up, Nanoseconds::SECOND);
        assert_eq!(study.design.loads[0].clients(), 1000);
    }

    #[test]
    fn a_job_by_name_is_a_job_of_the_study() {
        let (study, _) = read_words(LINES[0]).expect("it is right");
        let job = study.variants[0].job().expect("there is one");
        let JobWork::Sql { statements, at_once } = job.work else { panic!("{:?}", job.work) };
        assert_eq!((job.name.as_str(), statements.len(), at_once), ("create-index", 3, 3));
        assert_eq!(job.load, JobLoad::Off);
        let (study, _) = read_words(LINES[1]).expect("it is right");
        let job = study.variants[0].job().expect("there is one");
        assert_eq!((job.load, job.check.as_deref()), (JobLoad::On, Some("SELECT 1")));
    }

    #[test]
    fn jobs_of_commands_and_batches_have_what_their_options_say() {
        let job = |line: usize| {
            let (study, _) = read_words(LINES[line]).expect("it is right");
            study.variants[0].job().expect("there is one")
        };
        let command = |line: usize| match job(line).work {
            JobWork::Command { command, .. } => command[2].clone(),
            other => panic!("{other:?}"),
        };
        assert!(command(9).starts_with("pg_dump --format=directory --jobs=4 "), "{}", command(9));
        assert_eq!(job(9).load, JobLoad::UntilDone);
        assert!(command(10).starts_with("$DYNO_PROGRAM restore "), "{}", command(10));
        let restore = job(10);
        assert_eq!(restore.before.len(), 3);
        assert!(restore.same_tables && restore.setup[2].contains("--threads 2"), "{restore:?}");
        let batches = |line: usize| match job(line).work {
            JobWork::Batches { statements, pause, .. } => (statements.concat(), pause),
            other => panic!("{other:?}"),
        };
        let (sql, pause) = batches(11);
        assert!(sql.contains("LIMIT 1000 FOR UPDATE SKIP LOCKED)"), "{sql}");
        assert_eq!(pause, Nanoseconds::from_millis(200));
        assert!(job(11).check.is_some_and(|check| check.contains("= 1000000 ")));
        assert!(batches(12).0.contains("LIMIT 10 FOR UPDATE)"));
    }

    #[test]
    fn a_password_is_not_printed() {
        let (_, source) = read_words(&["tpcb", "--on", "mysql://me:${DYNO_SECRET_0}@h/d"]).unwrap();
        let printed = printed(&source);
        assert!(printed.contains("# Set the environment variable DYNO_SECRET_0"), "{printed}");
    }

    #[test]
    fn what_is_wrong_is_said_of_the_option() {
        let check = |words: &[&str], expected: &str| {
            let error = read_words(words).expect_err("it is refused").to_string();
            assert!(error.contains(expected), "{words:?}: {error}");
        };
        let on = |option: &'static str| ["oltp_read_only", "--on", "mariadb", option];
        check(&on("--clients=0"), "--clients must be at least 1");
        check(&on("--clients=1..8"), "to compare several, use a study");
        check(&on("--setting=x=200%"), "--setting: ");
        check(&on("--setting=bind_address=::"), "--setting: ");
        check(&on("--duration=soon"), "--duration: ");
        check(&on("--table-size=many"), "--table-size: ");
        let on = |option: &'static str| ["create-index", "--on", "mariadb", option];
        check(&on("--clients=4"), "--clients has no effect: the job runs alone");
        check(&on("--duration=5s"), "--duration has no effect: the job runs alone");
        check(&on("--at-once=none"), "--at-once: ");
        check(&on("--load=always"), "--load: ");
        check(&["restore", "--on=mariadb", "--clients=4"], "this job runs alone");
        check(&["restore", "--on=mariadb", "--threads=0"], "--threads: `0` is not a whole number");
        check(
            &["dump", "--on=sqlite"],
            "for servers that Dyno starts, one of mariadb, mysql, postgresql",
        );
        check(
            &["dump", "--on=mysql://me@h/d"],
            "for servers that Dyno starts, one of mariadb, mysql, postgresql",
        );
        check(&["migrate", "--on=mariadb"], "for servers that Dyno starts, one of postgresql");
        check(&["migrate", "--on=postgresql", "--batch=0"], "--batch: `0`");
        check(&["migrate", "--on=postgresql", "--locked=maybe"], "--locked: `maybe`");
        check(&["migrate", "--on=postgresql", "--pause=soon"], "--pause: ");
        let on = |option: &'static str| ["oltp_read_only", "--on", "mariadb", option];
        check(&on("--engine=InoDB"), "did you mean `InnoDB`?");
    }
}
