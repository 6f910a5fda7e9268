//! `dyno gate`: compares two builds in the same blocks and says whether the newer one is worse.

mod formats;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use dyno_analysis::{Gate, Options, analyse};
use dyno_lab::RunOrder;
use dyno_study::Study;
use dyno_units::{Clock, Seed};

use super::{Planned, StudyFile, beforehand, report};
use crate::clock::SystemClock;
use crate::progress::Progress;
use crate::written::Written;
use crate::{End, lab, terminal};

const NAMES: [&str; 2] = ["old", "new"];

/// Options of `dyno gate`.
#[derive(clap::Args)]
pub(crate) struct GateOptions {
    /// The build to compare with: a folder with the server's programs; with --study, the name of
    /// one of its databases
    #[arg(value_name = "OLD")]
    old: String,
    /// The build to judge, likewise
    #[arg(value_name = "NEW")]
    new: String,
    /// Take databases, workload, load and times from this study, with OLD and NEW as its only
    /// databases
    #[arg(long, value_name = "FILE", conflicts_with_all = ["on", "workload", "clients", "duration", "warm_up", "option", "setting"])]
    study: Option<PathBuf>,
    /// The product of both builds: mariadb, postgresql, …
    #[arg(long, value_name = "PRODUCT", required_unless_present = "study")]
    on: Option<String>,
    /// The workload; `dyno bench --help` lists them
    #[arg(long, value_name = "NAME", required_unless_present = "study")]
    workload: Option<String>,
    /// An option of the workload; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    option: Vec<String>,
    /// A setting of both servers; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    setting: Vec<String>,
    /// Numbers of clients, one load level each, such as 1,8
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "4")]
    clients: Vec<u64>,
    /// How long each load level is measured
    #[arg(long, value_name = "TIME", default_value = "20s")]
    duration: String,
    /// Warm-up before each load level
    #[arg(long, value_name = "TIME", default_value = "5s")]
    warm_up: String,
    /// Trials of each build; docs/gate.md has a table of how many are needed [default: 8, or the
    /// study's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    repetitions: Option<u32>,
    /// The smallest regression that must be ruled out [default: 5%, or the study's]
    #[arg(long, value_name = "PERCENTAGE", value_parser = crate::values::threshold)]
    threshold: Option<f64>,
    /// The run's folder [default: a new one in `runs/`]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Folder in which private servers keep their data
    #[arg(long, value_name = "FOLDER")]
    data_folder: Option<PathBuf>,
    /// The seed, if the study sets none
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    format: GateFormat,
    /// Also write the verdict of each comparison into this file, as JUnit XML for CI servers
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print only the gate's verdict, in one line
    #[arg(long)]
    quiet: bool,
}

/// Formats of the gate's word.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum GateFormat {
    /// For a terminal
    Text,
    /// A short table for a pull request
    Markdown,
    /// The verdict, with its reasons and the compared rows
    Json,
    /// Annotations for GitHub Actions
    Github,
}

/// Only `worse` exits with 1: an error is not a verdict.
pub(crate) fn run(options: &GateOptions) -> anyhow::Result<End> {
    judge(options).or_else(|error| {
        terminal::error(&error);
        Ok(End::Inconclusive)
    })
}

fn judge(options: &GateOptions) -> anyhow::Result<End> {
    let Some((study, source)) = study(options)? else { return Ok(End::Misused) };
    if let Some(path) = &options.junit {
        check_place_of_file(path).map_err(crate::usage_error)?;
    }
    let folder = options.out.clone().unwrap_or_else(free_folder);
    if !measure(options, (&study, &source), &folder)? {
        return Ok(End::Interrupted);
    }
    report::write_all(&folder, SystemClock::start().unix_millis())?;
    let run = crate::readings::read_run(&folder)?;
    let analysis = Options { threshold: options.threshold, gate: true, ..Options::default() };
    let findings = analyse(&[run], &analysis);
    let gate = findings.gate.clone().context("there is nothing to judge")?;
    if let Some(path) = &options.junit {
        report::write(path, formats::junit(&findings, &gate).as_bytes())?;
    }
    match options.format {
        _ if options.quiet => terminal::out(&format!("{gate}\n")),
        GateFormat::Text => terminal::out(&formats::text(&findings, &gate, &folder)),
        GateFormat::Markdown => terminal::out(&formats::markdown(&findings, &gate)),
        GateFormat::Json => terminal::out(&formats::json(&findings, &gate, &folder)?),
        GateFormat::Github => terminal::out_command(&formats::github(&gate)),
    }
    Ok(match gate {
        // Demands of the study apply to the new build.
        Gate::NoWorse => {
            let is_new = |variant: usize| findings.variants[variant].baseline.is_some();
            report::requirements(&findings, &is_new)
        }
        Gate::Worse(_) => End::Bad,
        Gate::Inconclusive(_) => End::Inconclusive,
    })
}

/// False if the user stopped them.
fn measure(
    options: &GateOptions,
    (study, source): (&Study, &str),
    folder: &Path,
) -> anyhow::Result<bool> {
    beforehand::check_place(folder)?;
    let root = options.data_folder.clone().or(study.design.data_folder.as_ref().map(PathBuf::from));
    let lab = lab::make(root.as_deref())?;
    let seed = study.design.seed.unwrap_or(Seed(options.seed));
    let plan = dyno_study::plan(study, seed);
    let planned = Planned::new(&lab, (study, source), plan)?;
    let plan = &planned.plan;
    beforehand::check_commands(study, plan)?;
    super::products::provide(&lab, plan, false)?;
    beforehand::warn_of_disk(plan, &lab)?;
    beforehand::check_deployments(&lab, plan, &study.design)?;
    if !options.quiet {
        terminal::say(&beforehand::headline(&lab.products, plan, &study.design, folder));
    }
    let order =
        RunOrder { void: Some(&dyno_analysis::voiding::void_blocks), ..planned.order(folder) };
    let end = Progress::follow(&lab, &order, None, &mut |_| !options.quiet)?;
    if end.interrupted {
        terminal::say(&format!(
            "stopped, so there is no verdict; what was measured is kept in {0}, and the same command with \
             --out {0} continues",
            folder.display()
        ));
    }
    Ok(!end.interrupted)
}

/// Checked before anything is measured.
fn check_place_of_file(path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        bail!("cannot write {}: there is no folder {}", path.display(), folder.display());
    }
    Ok(())
}

fn free_folder() -> PathBuf {
    let mut folders = super::numbered("runs/gate").map(PathBuf::from);
    folders.find(|path| !path.exists()).unwrap_or_else(|| "runs/gate".into())
}

/// None if the study has errors, which have been shown.
fn study(options: &GateOptions) -> anyhow::Result<Option<(Study, String)>> {
    let (mut study, source) = match &options.study {
        Some(path) => {
            let Some(file) = super::read_study(path)? else { return Ok(None) };
            let source = with_builds(&file, options).map_err(crate::usage_error)?;
            let what = format!("{} with both builds", path.display());
            let Some(study) = super::parse_study(&what, &source) else { return Ok(None) };
            (study, source)
        }
        None => {
            check_builds(options).map_err(crate::usage_error)?;
            let written = written(options).map_err(crate::usage_error)?;
            (written.read().map_err(crate::usage_error)?, written.text().to_owned())
        }
    };
    super::expand_urls(&mut study).map_err(crate::usage_error)?;
    Ok(Some((study, source)))
}

fn check_builds(options: &GateOptions) -> anyhow::Result<()> {
    for build in [&options.old, &options.new] {
        if !Path::new(build).is_dir() {
            bail!(
                "there is no folder {build}; OLD and NEW are folders with the server's programs \
                 or, with --study, the names of two of its databases"
            );
        }
    }
    Ok(())
}

fn with_builds(file: &StudyFile, options: &GateOptions) -> anyhow::Result<String> {
    let databases = &file.study.databases;
    for name in [&options.old, &options.new] {
        if !databases.iter().any(|database| database.name == *name) {
            let names: Vec<&str> = databases.iter().map(|one| one.name.as_str()).collect();
            bail!("the study has no database `{name}`; it has {}", names.join(", "));
        }
    }
    let mut table: toml::Table = file.source.parse().context("the study was read before")?;
    let design = table.entry("design").or_insert_with(|| toml::Table::new().into());
    let design = design.as_table_mut().context("the study was read before")?;
    for key in ["database", "stop", "repetitions_min"] {
        design.remove(key);
    }
    let vary = design.entry("vary").or_insert_with(|| toml::Table::new().into());
    let builds = vec![options.old.clone(), options.new.clone()];
    vary.as_table_mut()
        .context("the study was read before")?
        .insert("database".into(), builds.into());
    let baseline = toml::Table::from_iter([("database".to_owned(), options.old.clone().into())]);
    design.insert("baseline".into(), baseline.into());
    for (key, word) in [("order", "interleaved"), ("void_blocks", "repeat")] {
        design.insert(key.into(), word.into());
    }
    if let Some(repetitions) = options.repetitions {
        design.insert("repetitions".into(), i64::from(repetitions).into());
    }
    if let Some(threshold) = options.threshold {
        design.insert("threshold".into(), format!("{}%", threshold * 100.0).into());
    }
    Ok(toml::to_string(&table)?)
}

fn written(options: &GateOptions) -> anyhow::Result<Written> {
    let (product, workload) = options
        .on
        .as_ref()
        .zip(options.workload.as_ref())
        .context("give --on and --workload, or a --study")?;
    if product.contains("://") {
        bail!(
            "--on names the product of both builds, which Dyno starts; to compare two running \
             servers, write a study with two databases and pass it with --study"
        );
    }
    let products = dyno_lab::products();
    if products.spec(product).is_some_and(|product| product.is_embedded) {
        bail!(
            "{product} is built into Dyno, so there are no two builds of it; compare two databases of a \
             study with --study"
        );
    }
    let mut study = Written::new("Is the new build no worse than the old one?");
    for (name, build) in NAMES.iter().zip([&options.old, &options.new]) {
        let build = std::path::absolute(build).with_context(|| format!("cannot find {build}"))?;
        study.table(&["database", name]);
        study.line_of("--on", "product", &**product);
        study.fixed("programs", &*build.to_string_lossy());
        study.table(&["database", name, "settings"]);
        study.pairs("--setting", &options.setting)?;
    }
    study.table(&["workload", workload]);
    study.pairs("--option", &options.option)?;
    study.table(&["design"]);
    study.line("duration", &*options.duration);
    study.line("warm_up", &*options.warm_up);
    study.fixed("repetitions", i64::from(options.repetitions.unwrap_or(8)));
    study.fixed("threshold", format!("{}%", options.threshold.unwrap_or(0.05) * 100.0));
    study.table(&["design", "vary"]);
    study.fixed("database", NAMES.to_vec());
    let clients = options.clients.iter().map(|clients| i64::try_from(*clients));
    study.line("clients", clients.collect::<Result<Vec<i64>, _>>().context("--clients")?);
    Ok(study)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use dyno_units::Nanoseconds;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        gate: GateOptions,
    }

    fn options(words: &[&str]) -> GateOptions {
        Line::try_parse_from(std::iter::once(&"gate").chain(words)).expect("it is right").gate
    }

    #[test]
    fn options_make_a_study_that_the_parser_takes() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let build = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).expect("it can be made");
            path.to_string_lossy().into_owned()
        };
        let (old, new) = (build("old"), build("new"));
        let options = options(&[
            &old,
            &new,
            "--on",
            "mariadb",
            "--workload",
            "oltp_read_only",
            "--clients",
            "1,8",
            "--threshold",
            "3%",
            "--setting",
            "innodb_buffer_pool_size=1GiB",
            "--option",
            "table_size=1000",
            "--duration",
            "2s",
        ]);
        let (study, source) = study(&options).expect("it is read").expect("it has no errors");
        let plan = dyno_study::plan(&study, Seed(1));
        assert_eq!(
            (plan.variants.len(), plan.steps.len(), plan.trials.len()),
            (2, 2, 16),
            "{source}"
        );
        assert_eq!(plan.variants[1].baseline, Some(0));
        assert_eq!(plan.variants[1].database.programs.as_deref(), Some(&*new));
        assert_eq!(study.design.threshold, 0.03);
        assert_eq!(study.design.duration, Nanoseconds::from_secs(2));
        assert_eq!(plan.variants[0].workload.options["table_size"], "1000");
    }

    #[test]
    fn a_product_within_dyno_has_no_two_builds() {
        let options = options(&["a", "b", "--on", "sqlite", "--workload", "tpcb"]);
        let error = written(&options).err().expect("it is refused").to_string();
        assert!(error.contains("--study"), "{error}");
    }

    #[test]
    fn a_build_that_is_not_there_is_refused_before_anything_is_run() {
        let check = |words: &[&str], expected: &str| {
            let error = study(&options(words)).expect_err("it is refused").to_string();
            assert!(error.contains(expected), "{error}");
        };
        let on = |old, new, product| [old, new, "--on", product, "--workload", "tpcb"];
        check(&on("/no/such", "/", "mariadb"), "there is no folder /no/such");
        check(&on("/", "before", "mariadb"), "there is no folder before");
        check(&on("/", "/", "mysql://me@h/d"), "--study");
    }
}
