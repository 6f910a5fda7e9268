//! `dyno import`: output of other tools as a record, to report and compare like any other.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod hammerdb;
mod iibench;
mod measured;
mod pgbench;
mod pgbench_log;
mod record;
mod sysbench;

use std::collections::{HashMap, HashSet};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use dyno_units::Clock;

use crate::clock::SystemClock;
use crate::commands::report;
use crate::{End, signals, terminal, usage_error};
use measured::{Format, Found, Measured};

/// In the order in which they are tried.
const FORMATS: [Format; 5] =
    [sysbench::FORMAT, pgbench::FORMAT, hammerdb::FORMAT, iibench::FORMAT, pgbench_log::FORMAT];

const BYTES_MOST: u64 = 1 << 30;
const FILES_MOST: usize = 10_000;
/// A week of seconds: files of a record are limited in size.
const INTERVALS_MOST: usize = 7 * 86_400;
const NAMELESS: &str = "imported";

/// Options of `dyno import`.
#[derive(clap::Args)]
pub(crate) struct ImportOptions {
    /// Output files of sysbench, pgbench (also its `-l` logs), iibench.py or HammerDB; a folder
    /// means all files in it. NAME= before a file makes it a run of that variant. Several runs of a
    /// variant with the same number of clients are its repetitions, in the order given
    #[arg(value_name = "[NAME=]FILE", required = true)]
    files: Vec<String>,
    /// The run's folder, which is created
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Title of the report, phrased as a question
    #[arg(long)]
    title: Option<String>,
    /// The variant that others are compared with [default: the first]
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// The format of the files, if it is not recognised
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(FORMATS.map(|format| format.name)))]
    format: Option<String>,
    /// The offered rate, where the output does not state it (pgbench's `-R`), in transactions per
    /// second
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<f64>,
    /// The smallest difference that matters
    #[arg(long, value_name = "PERCENTAGE", default_value = "3%", value_parser = threshold)]
    threshold: f64,
}

fn rate(text: &str) -> Result<f64, String> {
    let value = text.trim_end_matches("/s").parse::<f64>().ok();
    value
        .filter(|rate| rate.is_finite() && *rate > 0.0)
        .ok_or_else(|| "give a number of transactions per second, such as 1000".to_owned())
}

fn threshold(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').and_then(|text| text.trim().parse::<f64>().ok());
    let share = percent.map(|percent| percent / 100.0).filter(|share| (0.0..1.0).contains(share));
    share.ok_or_else(|| "give a percentage below 100 %, such as 3%".to_owned())
}

struct Named {
    name: String,
    files: Vec<PathBuf>,
}

pub(crate) fn run(options: &ImportOptions) -> anyhow::Result<End> {
    let clock = SystemClock::start();
    let variants = named(&options.files).map_err(usage_error)?;
    let mut all = Vec::new();
    for variant in &variants {
        let mut runs = Vec::new();
        for group in groups(&variant.files) {
            runs.extend(
                read_group(&group, options.format.as_deref(), options.rate).map_err(usage_error)?,
            );
        }
        all.push((variant.name.clone(), runs));
    }
    let order = record::Order {
        title: options.title.as_deref(),
        baseline: options.baseline.as_deref(),
        threshold: options.threshold,
        now_unix_ms: clock.unix_millis(),
    };
    let plan = record::plan(&all, &order).map_err(usage_error)?;
    // A signal must not leave half a record.
    signals::on_first(|| {})?;
    record::write(&options.out, &plan)?;
    let n: usize = all.iter().map(|(_, runs)| runs.len()).sum();
    terminal::say(&format!("imported {}", super::counted(n, "run")));
    terminal::out(&report::write_all(&options.out, clock.unix_millis())?);
    Ok(End::Good)
}

fn named(arguments: &[String]) -> anyhow::Result<Vec<Named>> {
    let mut variants: Vec<Named> = Vec::new();
    for argument in arguments {
        // An existing path may contain an equals sign.
        let (name, path) = match argument.split_once('=') {
            Some((name, path)) if !Path::new(argument).exists() => (name, path),
            _ => (NAMELESS, argument.as_str()),
        };
        if name.is_empty() || name.chars().any(char::is_control) || name.len() > 100 {
            bail!(
                "`{argument}`: write NAME=FILE, where NAME is a variant's name of at most 100 \
                 bytes without control characters"
            );
        }
        let files = files_of(Path::new(path))?;
        match variants.iter_mut().find(|variant| variant.name == name) {
            Some(variant) => variant.files.extend(files),
            None => variants.push(Named { name: name.to_owned(), files }),
        }
    }
    if variants.iter().map(|variant| variant.files.len()).sum::<usize>() > FILES_MOST {
        bail!("more than {FILES_MOST} files were given");
    }
    Ok(variants)
}

/// Files of a folder in the order of their names.
fn files_of(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = || format!("the folder {} cannot be read", path.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !is_hidden && entry.file_type().with_context(unreadable)?.is_file() {
            files.push(entry.path());
        }
    }
    if files.is_empty() {
        bail!("the folder {} contains no files", path.display());
    }
    files.sort_by_key(|file| natural(&file.to_string_lossy()));
    Ok(files)
}

/// A sort key that puts `run-2` before `run-10`.
fn natural(name: &str) -> String {
    let mut out = String::new();
    let mut digits = String::new();
    for c in name.chars().chain(['\0']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        if !digits.is_empty() {
            out += &format!("{:0>20}", std::mem::take(&mut digits));
        }
        out.push(c);
    }
    out
}

/// `X` with `X.1`, `X.2` … are one run, also without `X`; any other file is a run.
fn groups(files: &[PathBuf]) -> Vec<Vec<PathBuf>> {
    let stem = |file: &Path| {
        let is_part = file.extension().is_some_and(|end| {
            end.len() <= 4 && end.to_string_lossy().chars().all(|c| c.is_ascii_digit())
        });
        if is_part { file.with_extension("") } else { file.to_owned() }
    };
    // `pgbench_log.4711` ends in a process id: it is a part only if a file with its stem is numbered
    // 1.
    let all: HashSet<&PathBuf> = files.iter().collect();
    let is_split = |stem: &Path| {
        let first = PathBuf::from(format!("{}.1", stem.display()));
        all.contains(&first)
    };
    let mut groups: Vec<Vec<PathBuf>> = Vec::new();
    let mut places: HashMap<PathBuf, usize> = HashMap::new();
    for file in files {
        let stem = stem(file);
        let key = if is_split(&stem) { stem } else { file.clone() };
        let place = *places.entry(key).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(file.clone()),
            None => groups.push(vec![file.clone()]),
        }
    }
    groups
}

fn read_group(
    group: &[PathBuf],
    format: Option<&str>,
    rate: Option<f64>,
) -> anyhow::Result<Vec<record::Imported>> {
    let mut text = String::new();
    for file in group {
        // Mail and Markdown indent quotations.
        for line in contents(file)?.lines() {
            text += line.trim_start();
            text.push('\n');
        }
    }
    let first = group.first().map(|file| file.display().to_string()).unwrap_or_default();
    let is_format = |known: &&Format| match format {
        Some(name) => known.name == name,
        None => (known.is_it)(&text),
    };
    let Some(format) = FORMATS.iter().find(is_format) else {
        let known: Vec<String> =
            FORMATS.iter().map(|format| format!("  {:<12} {}", format.name, format.text)).collect();
        bail!("{first}: unknown format; choose one with --format:\n{}", known.join("\n"));
    };
    let Found { runs, cut } =
        (format.read)(&text, rate).map_err(|error| anyhow::anyhow!("{first}, {error}"))?;
    for why in cut {
        terminal::say(&format!("{first}, {why}; this run is left out"));
    }
    if runs.is_empty() {
        bail!("{first} contains no run of {}", format.name);
    }
    if let Some(run) = runs.iter().find(|run| run.intervals.len() > INTERVALS_MOST) {
        bail!(
            "{first} has {} intervals in one run, and a record takes at most {INTERVALS_MOST}",
            run.intervals.len()
        );
    }
    let modified = group.iter().filter_map(|file| modified_unix_ms(file)).max();
    let n = runs.len();
    let place = |run: &Measured| match (n, group.len()) {
        (1, 1) => first.clone(),
        (1, files) => format!("{first} and {} more", files - 1),
        _ => format!("{first}, {}", run.place),
    };
    Ok(runs
        .into_iter()
        .map(|run| record::Imported {
            run: Measured { place: place(&run), ..run },
            ended_unix_ms: modified,
        })
        .collect())
}

/// Of a regular file; bytes that are not UTF-8 are replaced.
fn contents(file: &Path) -> anyhow::Result<String> {
    let unreadable = || format!("cannot read {}", file.display());
    let open = match dyno_units::open_named(file) {
        // No error of the system is of this kind.
        Err(error) if error.kind() == ErrorKind::Other => {
            bail!("{} is neither a file nor a folder", file.display())
        }
        opened => opened.map_err(super::not_opened).with_context(unreadable)?,
    };
    let mut bytes = Vec::new();
    open.take(BYTES_MOST + 1).read_to_end(&mut bytes).with_context(unreadable)?;
    if bytes.len() as u64 > BYTES_MOST {
        bail!("{} is larger than 1 GiB, and too large to be imported", file.display());
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn modified_unix_ms(file: &Path) -> Option<u64> {
    let modified = std::fs::metadata(file).ok()?.modified().ok()?;
    let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_not_read() {
        let check = |path: &Path, expected: &str| {
            let why = format!("{:#}", contents(path).expect_err(expected));
            assert_eq!(why, format!("{}{expected}", path.display()));
        };
        check(Path::new("/dev/zero"), " is neither a file nor a folder");
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).expect("made");
        check(&pipe, " is neither a file nor a folder");
        let missing = contents(&folder.path().join("missing")).expect_err("it is not there");
        assert!(format!("{missing:#}").ends_with(": there is no such file"), "{missing:#}");
    }

    #[test]
    fn files_of_one_run_are_together() {
        let check = |files: &[&str], expected: &[usize]| {
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            let sizes: Vec<usize> = groups(&files).iter().map(Vec::len).collect();
            assert_eq!(sizes, expected, "{files:?}");
        };
        // Threads of one pgbench, and two processes.
        check(&["log.4711", "log.4711.1", "log.4711.2"], &[3]);
        check(&["log.4711", "log.4712"], &[1, 1]);
        // Clients of iibench.py.
        check(&["o.ib.1", "o.ib.2", "p.ib.1"], &[2, 1]);
        check(&["a.txt", "b.txt"], &[1, 1]);
    }

    #[test]
    fn indented_outputs_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let check = |text: &str, expected: (u64, usize)| {
            let file = folder.path().join("out.txt");
            std::fs::write(&file, text).expect("it is written");
            let read = read_group(&[file], None, None).expect(text);
            let run = &read[0].run;
            assert_eq!((run.committed(), run.intervals.len()), expected, "{text}");
        };
        let pgbench = include_str!("cases/pgbench-indented.txt");
        check(pgbench, (200, 2));
        check(&format!("What I got:\n\n{}", pgbench.replace("    ", "\t")), (200, 2));
        let sysbench = "sysbench 1.0.20 (using LuaJIT)\nNumber of threads: 1\n\
            [ 1s ] thds: 1 tps: 5.00 qps: 5.00 lat (ms,95%): 1.0 err/s: 0.00 reconn/s: 0.00\n\
            SQL statistics:\n    transactions:  10 (5.0 per sec.)\n\
            General statistics:\n    total time:    2.0s\n    total number of events:  10\n";
        check(sysbench, (10, 2));
        check(&sysbench.lines().map(|line| format!("  {line}\n")).collect::<String>(), (10, 2));
    }

    #[test]
    fn a_name_stands_before_an_equals_sign() {
        let texts =
            ["old=/nowhere/a.log", "new=/nowhere/b.log", "old=/nowhere/c.log", "/nowhere/d"];
        let variants = named(&texts.map(str::to_owned)).expect("they have names");
        let shapes: Vec<(&str, usize)> =
            variants.iter().map(|v| (v.name.as_str(), v.files.len())).collect();
        assert_eq!(shapes, [("old", 2), ("new", 1), (NAMELESS, 1)]);
        assert!(named(&["=a.log".to_owned()]).is_err());
    }

    #[test]
    fn numbers_in_names_are_sorted_as_numbers() {
        let mut names = ["run-10", "run-9", "run-1b", "run-1a"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["run-1a", "run-1b", "run-9", "run-10"]);
    }

    #[test]
    fn rates_and_shares_are_read() {
        assert_eq!(rate("1000/s"), Ok(1000.0));
        assert!(rate("0").is_err() && rate("x").is_err());
        assert_eq!(threshold("5%"), Ok(0.05));
        assert!(threshold("5").is_err() && threshold("100%").is_err());
    }
}
