//! `dyno report`: an answer from one or more records.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use dyno_analysis::{Caveat, Findings, Options, RequirementFacts, RequirementOutcome, analyse};
use dyno_record::{LogEnd, Run, read_times, trial_folders};
use dyno_report::export;
use dyno_report::times::Times;

use crate::clock::SystemClock;
use crate::commands::{check_run_folder, counted};
use crate::{End, terminal, values};

/// Options of `dyno report`.
#[derive(clap::Args)]
pub(crate) struct ReportOptions {
    /// Folders of runs; several are combined into one report
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// What to print. Without it, report.html, report.md and findings.json are written into the
    /// run's folder; for several runs, into a folder beside the first, named after all of them.
    /// Tables (csv, jsonl, parquet) are written into a subfolder `tables`
    #[arg(long, value_enum)]
    format: Option<ReportFormat>,
    /// The file to write instead of printing; a folder for tables, or if no format is given
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Smallest effect that matters, instead of the study's own, such as 3%
    #[arg(long, value_name = "PERCENTAGE", value_parser = values::threshold)]
    threshold: Option<f64>,
}

/// Formats of a report.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum ReportFormat {
    /// One self-contained page
    Html,
    /// For a pull request
    Markdown,
    /// findings.json
    Json,
    /// A summary for the terminal
    Terminal,
    /// Tables as CSV files, units in the header
    Csv,
    /// Tables as JSON lines
    Jsonl,
    /// Tables as Parquet files, units in the metadata
    Parquet,
}

pub(crate) fn run(options: &ReportOptions) -> anyhow::Result<End> {
    use dyno_units::Clock;
    let now = SystemClock::start().unix_millis();
    let runs = read(&options.runs)?;
    let findings = find(&runs, options.threshold);
    let Some(format) = options.format else {
        let folder = match &options.out {
            Some(folder) => folder.clone(),
            None => place(&runs)?,
        };
        terminal::out(&write_into(&folder, &findings, &runs, now)?);
        return Ok(End::Good);
    };
    if format.is_of_tables() {
        let folder = match &options.out {
            Some(folder) => folder.clone(),
            None => no_link(place(&runs)?.join("tables"))?,
        };
        terminal::out(&write_tables(&findings, &runs, format, &folder)?);
        return Ok(End::Good);
    }
    let text = render(&findings, &runs, format, now)?;
    match &options.out {
        Some(path) => write(path, text.as_bytes())?,
        None => terminal::out(&text),
    }
    Ok(End::Good)
}

impl ReportFormat {
    /// Of several files, which [`write_tables`] writes.
    pub(crate) fn is_of_tables(self) -> bool {
        matches!(self, ReportFormat::Csv | ReportFormat::Jsonl | ReportFormat::Parquet)
    }
}

pub(crate) fn render(
    findings: &Findings,
    runs: &[Run],
    format: ReportFormat,
    now_unix_ms: u64,
) -> anyhow::Result<String> {
    Ok(match format {
        ReportFormat::Html => html(findings, runs, now_unix_ms)?,
        ReportFormat::Markdown => dyno_report::markdown::render(findings),
        ReportFormat::Json => dyno_report::json::render(findings),
        ReportFormat::Terminal => summary(findings),
        ReportFormat::Csv | ReportFormat::Jsonl | ReportFormat::Parquet => {
            anyhow::bail!("tables are written as several files: name a folder for them with --out")
        }
    })
}

pub(crate) fn write_tables(
    findings: &Findings,
    runs: &[Run],
    format: ReportFormat,
    folder: &Path,
) -> anyhow::Result<String> {
    export::check_size(runs).map_err(anyhow::Error::msg)?;
    make_folder(folder, OF_RUNS)?;
    let mut written = String::new();
    let times = times(findings, runs)?;
    for table in export::tables(findings, runs, &times) {
        let (ending, bytes) = match format {
            ReportFormat::Csv => ("csv", export::csv(&table).into_bytes()),
            ReportFormat::Jsonl => ("jsonl", export::jsonl(&table).into_bytes()),
            #[cfg(feature = "parquet")]
            ReportFormat::Parquet => ("parquet", export::parquet(&table)?),
            #[cfg(not(feature = "parquet"))]
            ReportFormat::Parquet => anyhow::bail!(
                "this build of Dyno writes no Parquet files; build it without `--no-default-features`"
            ),
            ReportFormat::Html
            | ReportFormat::Markdown
            | ReportFormat::Json
            | ReportFormat::Terminal => anyhow::bail!("this format has no tables"),
        };
        let path = folder.join(format!("{}.{ending}", table.name));
        replace(&path, &bytes)?;
        written += &format!("{}: {}\n", path.display(), counted(table.len(), "row"));
    }
    Ok(written)
}

/// With the response times of all seconds.
pub(crate) fn html(findings: &Findings, runs: &[Run], now_unix_ms: u64) -> anyhow::Result<String> {
    let times = times(findings, runs)?;
    Ok(dyno_report::html::render(findings, runs, &times, &dyno_units::utc_date_time(now_unix_ms)))
}

const READERS_MOST: usize = 8;

/// Of all seconds, on all processors: a large record has gigabytes of them.
fn times(findings: &Findings, runs: &[Run]) -> anyhow::Result<Times> {
    let of_run = |(i, run): (usize, &Run)| {
        let mut folders: BTreeMap<u32, PathBuf> = trial_folders(&run.folder).into_iter().collect();
        let numbers = run.trials.iter().map(|trial| trial.number);
        numbers.map(|n| (i, n, folders.remove(&n))).collect::<Vec<_>>()
    };
    let trials: Vec<(usize, u32, Option<PathBuf>)> =
        runs.iter().enumerate().flat_map(of_run).collect();
    let mut times = Times::new(findings, runs);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let n = processors.min(READERS_MOST).min(trials.len()).max(1);
    let next = AtomicUsize::new(0);
    let read = |mut times: Times| -> anyhow::Result<Times> {
        while let Some((i, trial, folder)) = trials.get(next.fetch_add(1, Ordering::Relaxed)) {
            let end = match folder {
                Some(folder) => read_times(folder, &mut |second| times.add(*i, *trial, second))?,
                None => LogEnd::Missing,
            };
            if end != LogEnd::Whole {
                times.lacks(*i, *trial);
            }
        }
        Ok(times)
    };
    let parts: Vec<anyhow::Result<Times>> = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..n)
            .map(|_| {
                let (plan, read) = (times.clone(), &read);
                scope.spawn(move || read(plan))
            })
            .collect();
        readers.into_iter().map(|reader| reader.join().expect("reading does not panic")).collect()
    });
    for part in parts {
        times.absorb(&part?);
    }
    Ok(times)
}

/// Writes report.html, report.md and findings.json; returns the summary for the terminal.
pub(crate) fn write_all(folder: &Path, now_unix_ms: u64) -> anyhow::Result<String> {
    let runs = read(&[folder.to_owned()])?;
    write_into(folder, &find(&runs, None), &runs, now_unix_ms)
}

fn write_into(
    folder: &Path,
    findings: &Findings,
    runs: &[Run],
    now_unix_ms: u64,
) -> anyhow::Result<String> {
    make_folder(folder, OF_RUNS)?;
    replace(&folder.join("report.html"), html(findings, runs, now_unix_ms)?.as_bytes())?;
    replace(&folder.join("report.md"), dyno_report::markdown::render(findings).as_bytes())?;
    replace(&folder.join("findings.json"), dyno_report::json::render(findings).as_bytes())?;
    Ok(format!("{}\nreport: {}\n", summary(findings), folder.join("report.html").display()))
}

/// The default folder: for one run its own, for several a folder beside the first, named after all.
/// A run's folder holds only its own report.
fn place(runs: &[Run]) -> anyhow::Result<PathBuf> {
    let folders: Vec<&Path> = runs.iter().map(|run| run.folder.as_path()).collect();
    place_of(&folders)
}

/// Received runs may come with a file of the report's name.
fn place_of(runs: &[&Path]) -> anyhow::Result<PathBuf> {
    if let [only] = runs {
        return Ok(only.to_path_buf());
    }
    let found =
        |run: &&Path| run.canonicalize().with_context(|| format!("cannot find {}", run.display()));
    let folders = runs.iter().map(found).collect::<anyhow::Result<Vec<PathBuf>>>()?;
    let name = |folder: &PathBuf| folder.file_name().unwrap_or_default().to_string_lossy().into();
    // As the user wrote it, if that names the folder: `runs/before+after`.
    let first = if runs[0].file_name().is_some() { runs[0] } else { &folders[0] };
    let names: Vec<String> = folders.iter().map(name).collect();
    let place = no_link(first.with_file_name(joined_name(&names)))?;
    if place.join("manifest.json").exists() {
        anyhow::bail!("{} is the folder of a run; choose another with --out", place.display());
    }
    Ok(place)
}

/// Refuses a link: whoever made the run could redirect files anywhere.
fn no_link(folder: PathBuf) -> anyhow::Result<PathBuf> {
    if folder.is_symlink() {
        anyhow::bail!(
            "{} is a symbolic link, and links in or beside a run's folder are not followed; name a \
             folder with --out",
            folder.display()
        );
    }
    Ok(folder)
}

const NAME_BYTES: usize = 120;

fn joined_name(names: &[String]) -> String {
    let all = names.join("+");
    if all.len() <= NAME_BYTES {
        return all;
    }
    // FNV-1a, 32 bits, so that other runs get another folder.
    let hash = all
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let first: String = names[0].chars().take(NAME_BYTES / 4).collect();
    format!("{first}+{}-more-{hash:08x}", names.len() - 1)
}

/// No run may be named twice.
pub(crate) fn read(folders: &[PathBuf]) -> anyhow::Result<Vec<Run>> {
    read_apart(folders, "its trials would count twice; name different runs")
}

pub(crate) fn read_two(baseline: &Path, candidate: &Path) -> anyhow::Result<Vec<Run>> {
    let folders = [baseline.to_owned(), candidate.to_owned()];
    read_apart(&folders, "a run cannot be compared with itself")
}

/// `why` explains why no run may be named twice.
fn read_apart(folders: &[PathBuf], why: &str) -> anyhow::Result<Vec<Run>> {
    folders.iter().try_for_each(|folder| check_run_folder(folder))?;
    let runs: Vec<Run> =
        folders.iter().map(|folder| crate::readings::read_run(folder)).collect::<Result<_, _>>()?;
    if let Some((first, second)) = dyno_analysis::same_runs(&runs) {
        return Err(crate::usage_error(anyhow::anyhow!(
            "{} and {} hold the same run: {why}",
            folders[first].display(),
            folders[second].display()
        )));
    }
    if let Some((first, second, metric)) = dyno_analysis::unlike_metrics(&runs) {
        anyhow::bail!(
            "{} and {} declare the metric {metric} with different units or directions, so that one of them would be \
             judged by what the other one means; report on them separately",
            folders[first].display(),
            folders[second].display()
        );
    }
    Ok(runs)
}

pub(crate) fn find(runs: &[Run], threshold: Option<f64>) -> Findings {
    analyse(runs, &Options { threshold, ..Options::default() })
}

/// Prints demands of `require` not met (exit code 1) or undecided (exit code 2), for variants that count.
pub(crate) fn requirements(findings: &Findings, counts: &dyn Fn(usize) -> bool) -> End {
    let of = |outcome: RequirementOutcome| -> Vec<String> {
        let those = findings.requirements.iter().filter(|one| one.outcome == outcome);
        those.filter(|one| counts(one.variant)).map(|one| in_words(findings, one)).collect()
    };
    let (broken, open) = (of(RequirementOutcome::NotMet), of(RequirementOutcome::Inconclusive));
    if findings.requirements.iter().any(|one| counts(one.variant) && one.is_measured_once()) {
        terminal::say(
            "one repetition cannot show whether `require` is met; it is judged by its value",
        );
    }
    if !broken.is_empty() {
        terminal::say(&format!("required but not met: {}", broken.join(", ")));
    }
    if !open.is_empty() {
        terminal::say(&format!("required but undecided: {}", open.join(", ")));
    }
    match (broken.is_empty(), open.is_empty()) {
        (false, _) => End::Bad,
        (true, false) => End::Inconclusive,
        (true, true) => End::Good,
    }
}

fn in_words(findings: &Findings, one: &RequirementFacts) -> String {
    let (variant, step) = (&findings.variants[one.variant], &findings.steps[one.step]);
    format!("{} ({} at {})", one.text, variant.name, step.name)
}

/// With the names of its steps.
pub(crate) fn caveat(findings: &Findings, caveat: &Caveat) -> serde_json::Value {
    let steps = caveat.steps.iter().filter_map(|step| findings.steps.get(*step));
    serde_json::json!({
        "kind": caveat.kind,
        "message": caveat.message,
        "advice": caveat.advice,
        "steps": steps.map(|step| &step.name).collect::<Vec<_>>(),
    })
}

fn summary(findings: &Findings) -> String {
    dyno_report::terminal::render(findings, terminal::width(), terminal::out_has_colours())
}

/// Mode of folders that say what runs say: as those of runs, for their owner alone.
const OF_RUNS: u32 = 0o700;

/// With those above it; `mode` is that of new ones.
pub(crate) fn make_folder(folder: &Path, mode: u32) -> anyhow::Result<()> {
    dyno_record::check_way(folder)?;
    DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    // Another user may have created part of the path meanwhile.
    Ok(dyno_record::check_way(folder)?)
}

/// All or nothing, in place of whatever has the name: the folder may come from an unknown source.
fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    dyno_record::write_replacing(path, bytes)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// A new file that the user named, perhaps in place of what has its name. Others may foresee the name: no link is
/// followed, and nothing is made where another user could lead it elsewhere.
pub(crate) fn create(path: &Path, replaces: bool) -> anyhow::Result<File> {
    check_folder_of(path)?;
    if replaces
        && let Err(error) = std::fs::remove_file(path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(error.into());
    }
    Ok(File::create_new(path)?)
}

fn check_folder_of(path: &Path) -> Result<(), dyno_record::WriteError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    dyno_record::check_way(folder.unwrap_or(Path::new(".")))
}

/// All or nothing for files and links. Devices and pipes, such as `/dev/stdout`, get text safe for a
/// terminal.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}", path.display());
    if let Some(mut file) = special(path).with_context(failed)? {
        let text = String::from_utf8_lossy(bytes);
        return file.write_all(terminal::harmless(&text).as_bytes()).with_context(failed);
    }
    check_folder_of(path)?;
    dyno_record::write_replacing(path, bytes).with_context(failed)
}

/// A device, or a pipe of this user or root: other users could read from theirs, or swap it for a link.
fn special(path: &Path) -> std::io::Result<Option<File>> {
    if ["/dev/stdout", "/dev/stderr"].iter().any(|name| path == Path::new(name)) {
        return File::options().write(true).open(path).map(Some);
    }
    let me = rustix::process::geteuid().as_raw();
    let is_special = |facts: &std::fs::Metadata| {
        let (kind, is_own) = (facts.file_type(), [0, me].contains(&facts.uid()));
        kind.is_char_device() || (kind.is_fifo() && is_own)
    };
    if !std::fs::symlink_metadata(path).is_ok_and(|facts| is_special(&facts)) {
        return Ok(None);
    }
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let file = File::options().write(true).custom_flags(flags).open(path)?;
    // Something else may have the name by now.
    Ok(is_special(&file.metadata()?).then_some(file))
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::{OF_RUNS, create, joined_name, make_folder, no_link, place_of, write};

    #[test]
    fn a_named_file_is_not_made_where_another_user_could_lead_it_elsewhere() {
        use std::os::unix::fs::{PermissionsExt, chown, symlink};
        let shared = tempfile::tempdir().unwrap();
        let everybody = std::fs::Permissions::from_mode(0o1777);
        std::fs::set_permissions(shared.path(), everybody).unwrap();
        let path = |name: &str| shared.path().join(name);
        std::fs::write(path("precious"), "rows").unwrap();
        symlink("precious", path("link")).unwrap();
        let check = |name: &str, replaces: bool, refused: Option<&str>| {
            let made = create(&path(name), replaces).map_err(|error| error.to_string());
            let is_it = match (&made, refused) {
                (Err(error), Some(expected)) => error.contains(expected),
                (made, expected) => made.is_ok() && expected.is_none(),
            };
            assert!(is_it, "{name}: {made:?}");
            assert_eq!(std::fs::read_to_string(path("precious")).unwrap(), "rows");
        };
        check("link", false, Some("File exists"));
        check("link", true, None);
        check("new", false, None);
        check("new", false, Some("File exists"));
        check("new", true, None);
        check("nowhere/new", true, Some("No such file"));
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can give folders away");
            return;
        }
        std::fs::create_dir(path("theirs")).unwrap();
        std::fs::write(path("theirs/old"), "").unwrap();
        chown(path("theirs"), Some(54_321), None).unwrap();
        for (name, replaces) in [("theirs/new", false), ("theirs/new", true), ("theirs/old", true)]
        {
            check(name, replaces, Some("belongs to user 54321"));
        }
        assert_eq!(std::fs::read_dir(path("theirs")).unwrap().count(), 1);
    }

    #[test]
    fn a_report_is_in_a_folder_of_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let tables = folder.path().join("a+b/tables");
        make_folder(&tables, OF_RUNS).unwrap();
        make_folder(&tables, OF_RUNS).unwrap();
        for made in [tables.parent().unwrap(), &tables] {
            assert_eq!(std::fs::metadata(made).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn only_a_pipe_of_ones_own_is_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, &path, FileType::Fifo, mode, 0).unwrap();
        let read = std::thread::scope(|scope| {
            let reader = scope.spawn(|| std::fs::read_to_string(&path).unwrap());
            write(&path, b"text").unwrap();
            reader.join().unwrap()
        });
        assert_eq!(read, "text");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(54_321), None).unwrap();
            write(&path, b"text").unwrap();
            assert!(std::fs::symlink_metadata(&path).unwrap().is_file());
        }
    }

    #[test]
    fn what_may_be_a_terminal_gets_nothing_that_it_would_obey() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || std::fs::read_to_string(path).unwrap()
        });
        super::write(&path, "\"\u{9b}31m\u{202e}\"\n::error::x\n".as_bytes()).unwrap();
        assert_eq!(reader.join().unwrap(), "\"\u{fffd}31m\u{fffd}\"\n\u{fffd}:error::x\n");
    }

    #[test]
    fn the_report_of_several_runs_is_not_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        ["a", "b", "c", "outside"].iter().for_each(|name| std::fs::create_dir(path(name)).unwrap());
        std::os::unix::fs::symlink(path("outside"), path("a+b")).unwrap();
        std::os::unix::fs::symlink(path("a"), path("latest")).unwrap();
        let place = |names: &[&str]| {
            let paths: Vec<_> = names.iter().map(|name| path(name)).collect();
            place_of(&paths.iter().map(|path| path.as_path()).collect::<Vec<_>>())
        };
        assert!(place(&["a", "b"]).unwrap_err().to_string().contains("symbolic link"));
        assert_eq!(place(&["a", "c"]).unwrap(), path("a+c"));
        // A run named by the user may be behind a link.
        assert_eq!(place(&["latest"]).unwrap(), path("latest"));
    }

    #[test]
    fn tables_are_not_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir(path("outside")).unwrap();
        std::os::unix::fs::symlink(path("outside"), path("tables")).unwrap();
        std::os::unix::fs::symlink(path("nowhere"), path("dangling")).unwrap();
        for (name, is_refused) in
            [("tables", true), ("dangling", true), ("outside", false), ("missing", false)]
        {
            assert_eq!(no_link(path(name)).is_err(), is_refused, "{name}");
        }
    }

    #[test]
    fn several_runs_are_named_by_their_folders() {
        let check = |names: &[&str], expected: &str| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(joined_name(&names), expected);
        };
        check(&["before", "after"], "before+after");
        let long = "a-rather-long-name-".repeat(4);
        check(&[&long, &long], "a-rather-long-name-a-rather-lo+1-more-22600a5a");
    }
}
