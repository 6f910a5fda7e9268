//! `dyno gate`: two builds in the same blocks, and one word on whether the newer one is worse.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use dyno_analysis::{Findings, Gate, GateCall, GateRow, Options, analyse};
use dyno_lab::RunOrder;
use dyno_study::{Factor, Order, Study};
use dyno_units::Seed;

use super::report;
use crate::progress::Progress;
use crate::{End, lab, terminal, vocabulary};

/// The databases of a study that is made from options.
const NAMES: [&str; 2] = ["old", "new"];

/// Options of `dyno gate`.
#[derive(clap::Args)]
pub(crate) struct GateOptions {
    /// The build to hold the new one against: a folder with the server's programs; with --study the
    /// name of a database of the study
    #[arg(value_name = "OLD")]
    old: String,
    /// The build that is asked about, likewise
    #[arg(value_name = "NEW")]
    new: String,
    /// Take databases, workload, load and times from this study; its database factor becomes OLD and
    /// NEW
    #[arg(long, value_name = "FILE", conflicts_with_all = ["on", "workload", "clients", "duration", "warm_up", "option", "setting"])]
    study: Option<PathBuf>,
    /// The product of both builds: mariadb, postgresql, …
    #[arg(long, value_name = "PRODUCT", required_unless_present = "study")]
    on: Option<String>,
    /// The workload; `dyno bench --help` lists them
    #[arg(long, value_name = "NAME", required_unless_present = "study")]
    workload: Option<String>,
    /// An option of the workload; may be given again
    #[arg(long, value_name = "NAME=VALUE")]
    option: Vec<String>,
    /// A setting of both servers; may be given again
    #[arg(long, value_name = "NAME=VALUE")]
    setting: Vec<String>,
    /// Clients; several make several steps: 1,8
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "4")]
    clients: Vec<u64>,
    /// Measured time of each step
    #[arg(long, value_name = "TIME", default_value = "20s")]
    duration: String,
    /// Warm-up before each step
    #[arg(long, value_name = "TIME", default_value = "5s")]
    warm_up: String,
    /// Trials of each build; docs/gate.md has a table of how many it takes [default: 8, or the
    /// study's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    repetitions: Option<u32>,
    /// Harm of this size must be excluded [default: 5%, or the study's]
    #[arg(long, value_name = "PERCENTAGE", value_parser = crate::cli::threshold)]
    threshold: Option<f64>,
    /// The run's folder; a new one below `runs/` where not given
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Where private servers keep their data
    #[arg(long, value_name = "FOLDER")]
    data_folder: Option<PathBuf>,
    /// The seed, where the study fixes none
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    format: GateFormat,
    /// Print the gate's one line and nothing else
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
    /// The word, its reasons and its rows
    Json,
    /// Annotations for GitHub Actions
    Github,
}

/// Runs both builds in the same blocks and judges the new one.
pub(crate) fn run(options: &GateOptions) -> anyhow::Result<End> {
    let Some((study, source)) = study(options)? else { return Ok(End::Misused) };
    let root = options.data_folder.clone().or(study.design.data_folder.as_ref().map(PathBuf::from));
    let lab = lab::make(root.as_deref())?;
    let seed = study.design.seed.unwrap_or(Seed(options.seed));
    let plan = dyno_study::plan(&study, seed);
    let now = lab.clock.unix_millis();
    let manifest = dyno_lab::make_manifest(&plan, &study, &source, &lab.environment, now)?;
    let folder = options.out.clone().unwrap_or_else(free_folder);
    let order = RunOrder {
        plan: &plan,
        design: &study.design,
        manifest: &manifest,
        probes: &study.probes,
        decide: None,
        void: Some(&dyno_analysis::voiding::void_blocks),
        retry_failed: false,
        folder: folder.clone(),
    };
    let mut progress = Progress::new(&plan, &lab);
    let end = dyno_lab::run(&lab, &order, &mut |event| {
        if !options.quiet {
            progress.hear(event);
        }
    });
    progress.close();
    if end?.interrupted {
        return Ok(End::Interrupted);
    }
    report::write_all(&folder, lab.clock.unix_millis())?;
    let run = crate::readings::read_run(&folder)?;
    let analysis = Options { threshold: options.threshold, gate: true, ..Options::default() };
    let findings = analyse(&[run], &analysis);
    let gate = findings.gate.clone().context("there is nothing to be judged")?;
    let text = match options.format {
        _ if options.quiet => format!("{gate}\n"),
        GateFormat::Text => text(&findings, &gate, &folder),
        GateFormat::Markdown => markdown(&findings, &gate),
        GateFormat::Json => json(&findings, &gate)?,
        GateFormat::Github => github(&gate),
    };
    terminal::out(&text);
    Ok(match gate {
        Gate::NoWorse => End::Good,
        Gate::Worse(_) => End::Bad,
        Gate::CannotSay(_) => End::CannotSay,
    })
}

/// A folder of its own for each gate: the first that is free.
fn free_folder() -> PathBuf {
    let base = Path::new("runs");
    let names = std::iter::once("gate".to_owned()).chain((2_u32..).map(|n| format!("gate-{n}")));
    names.map(|name| base.join(name)).find(|path| !path.exists()).unwrap_or(base.join("gate"))
}

/// The study of this gate with its text; none where it has errors, which have been shown then.
fn study(options: &GateOptions) -> anyhow::Result<Option<(Study, String)>> {
    match &options.study {
        Some(path) => {
            let Some(file) = super::read_study(path)? else { return Ok(None) };
            let mut study = file.study;
            take_builds(&mut study, options).map_err(crate::misuse)?;
            Ok(Some((study, file.source)))
        }
        None => {
            let source = source(options).map_err(crate::misuse)?;
            match dyno_study::parse(&source, &vocabulary::vocabulary()) {
                Ok(study) => Ok(Some((study, source))),
                Err(diagnostics) => {
                    let what = "the study made from the options";
                    terminal::say(&dyno_study::diagnostic::render(what, &source, &diagnostics));
                    Ok(None)
                }
            }
        }
    }
}

/// Makes two databases of a study the builds that are compared.
fn take_builds(study: &mut Study, options: &GateOptions) -> anyhow::Result<()> {
    for name in [&options.old, &options.new] {
        if !study.databases.iter().any(|database| database.name == *name) {
            let names: Vec<&str> = study.databases.iter().map(|one| one.name.as_str()).collect();
            bail!("the study has no database `{name}`; it has {}", names.join(", "));
        }
    }
    let design = &mut study.design;
    design.factors.retain(|factor| !matches!(factor, Factor::Database(_)));
    design.factors.insert(0, Factor::Database(vec![options.old.clone(), options.new.clone()]));
    design.database = None;
    design.baseline = [("database".to_owned(), options.old.clone())].into();
    design.order = Order::Interleaved;
    design.repetitions_min = None;
    design.repetitions = options.repetitions.unwrap_or(design.repetitions);
    design.threshold = options.threshold.unwrap_or(design.threshold);
    design.void_repeats = design.repetitions.saturating_sub(1) / 2;
    Ok(())
}

/// The text of a study that compares two folders of programs.
fn source(options: &GateOptions) -> anyhow::Result<String> {
    let quoted = |text: &str| serde_json::to_string(text).context("a text can be quoted");
    let (product, workload) = options
        .on
        .as_ref()
        .zip(options.workload.as_ref())
        .context("give --on and --workload, or a --study")?;
    let products = dyno_lab::products();
    let is_embedded = products.spec(product).is_some_and(|product| product.is_embedded);
    let mut text = format!("title = {}\n", quoted("Is the new build no worse than the old one?")?);
    for (name, build) in NAMES.iter().zip([&options.old, &options.new]) {
        writeln!(text, "\n[database.{name}]\nproduct = {}", quoted(product)?)?;
        if is_embedded {
            bail!(
                "{product} is built into Dyno, so that there are no two builds of it; compare two \
                 databases of a study with --study"
            );
        }
        writeln!(text, "programs = {}", quoted(build)?)?;
        if !options.setting.is_empty() {
            writeln!(text, "[database.{name}.settings]")?;
            pairs(&mut text, "--setting", &options.setting)?;
        }
    }
    writeln!(text, "\n[workload.{}]", quoted(workload)?)?;
    pairs(&mut text, "--option", &options.option)?;
    let clients: Vec<String> = options.clients.iter().map(u64::to_string).collect();
    let threshold = format!("{}%", options.threshold.unwrap_or(0.05) * 100.0);
    writeln!(
        text,
        "\n[design]\nvary = {{ database = [\"old\", \"new\"], clients = [{}] }}\n\
         repetitions = {}\nduration = {}\nwarm_up = {}\nthreshold = {}",
        clients.join(", "),
        options.repetitions.unwrap_or(8),
        quoted(&options.duration)?,
        quoted(&options.warm_up)?,
        quoted(&threshold)?,
    )?;
    Ok(text)
}

/// Lines `NAME = VALUE` with the values as a study has them.
fn pairs(text: &mut String, option: &str, pairs: &[String]) -> anyhow::Result<()> {
    for pair in pairs {
        let (name, value) = pair
            .split_once('=')
            .with_context(|| format!("{option}: write NAME=VALUE, not `{pair}`"))?;
        let is_plain = value.parse::<bool>().is_ok() || value.parse::<i64>().is_ok();
        let value = if is_plain { value.to_owned() } else { serde_json::to_string(value)? };
        writeln!(text, "{} = {value}", serde_json::to_string(name)?)?;
    }
    Ok(())
}

/// A row in words: where, what was measured, and what is excluded.
fn cells(findings: &Findings, row: &GateRow) -> [String; 5] {
    let percent =
        |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.1} %"));
    let name = &findings.variants[row.variant].name;
    [
        format!("{name} at {}", findings.steps[row.step].name),
        row.metric.name().to_owned(),
        percent(row.harm_percent),
        percent(row.limit_percent),
        match (row.call, row.is_required) {
            (GateCall::NoWorse, _) => "no worse",
            (GateCall::Worse, _) => "worse",
            (GateCall::Open, true) => "not decided",
            (GateCall::Open, false) => "not required",
        }
        .to_owned(),
    ]
}

/// What the columns of a row are called.
const HEADINGS: [&str; 5] = ["variant", "metric", "worse by", "at most", ""];

fn text(findings: &Findings, gate: &Gate, folder: &Path) -> String {
    let mut text = String::new();
    for row in &findings.gate_rows {
        let [place, metric, harm, limit, call] = cells(findings, row);
        text += &format!("{place}: {metric} {harm} worse, at most {limit} ({call})\n");
    }
    for caveat in &findings.caveats {
        text += &format!("note: {}\n", caveat.message);
    }
    text + &format!("record and report in {}\ngate: {gate}\n", folder.display())
}

fn markdown(findings: &Findings, gate: &Gate) -> String {
    let escaped = dyno_report::markdown::escaped;
    let mut text = format!("**Gate: {}**\n\n", escaped(&gate.to_string()));
    text += &format!("| {} |\n|---|---|--:|--:|---|\n", HEADINGS.join(" | "));
    for row in &findings.gate_rows {
        let row = cells(findings, row).map(|cell| escaped(&cell).to_string());
        text += &format!("| {} |\n", row.join(" | "));
    }
    let n = findings.gate_rows.iter().map(|row| row.n).min().unwrap_or(0);
    text += &format!(
        "\n{n} repetitions of each build in the same blocks; harm of {:.0} % or more has to be excluded \
         (one-sided, {:.1} %).\n",
        findings.threshold * 100.0,
        50.0 + findings.confidence * 50.0
    );
    for caveat in &findings.caveats {
        text += &format!("- {}\n", escaped(&caveat.message));
    }
    text
}

fn json(findings: &Findings, gate: &Gate) -> anyhow::Result<String> {
    let value = serde_json::json!({
        "gate": gate,
        "threshold": findings.threshold,
        "rows": findings.gate_rows,
        "caveats": findings.caveats,
    });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

/// One annotation: newlines and what has a meaning in a command are encoded as GitHub wants it.
fn github(gate: &Gate) -> String {
    let encoded = gate.to_string().replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let level = match gate {
        Gate::NoWorse => "notice",
        Gate::Worse(_) => "error",
        Gate::CannotSay(_) => "warning",
    };
    format!("::{level} title=dyno gate::{encoded}\n")
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
        let options = options(&[
            "/old/bin",
            "/new/bin",
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
        assert_eq!(plan.variants[1].database.programs.as_deref(), Some("/new/bin"));
        assert_eq!(study.design.threshold, 0.03);
        assert_eq!(study.design.duration, Nanoseconds::from_secs(2));
        assert_eq!(plan.variants[0].workload.options["table_size"], "1000");
    }

    #[test]
    fn a_product_within_dyno_has_no_two_builds() {
        let options = options(&["a", "b", "--on", "sqlite", "--workload", "tpcb"]);
        let error = source(&options).expect_err("it is refused").to_string();
        assert!(error.contains("--study"), "{error}");
    }

    #[test]
    fn annotations_are_one_line() {
        let gate = Gate::Worse(vec!["p95 of a at 4 clients (7 % worse)\nx".to_owned()]);
        assert_eq!(
            github(&gate),
            "::error title=dyno gate::worse: p95 of a at 4 clients (7 %25 worse)%0Ax\n"
        );
    }
}
