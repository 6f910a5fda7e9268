//! The record of imported runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, anyhow, bail};
use dyno_record::{
    EncodedHistogram, Environment, FORMAT, GeneratorSummary, ImportedFrom, IntervalColumns,
    KindSummary, LevelRecord, Manifest, ProductFacts, RunWriter, ServerFacts, StepRecord,
    StepSummary, TrialPlan, TrialSummary, VariantRecord, new_histogram,
};
use dyno_units::Metric;

use super::measured::{Kind, Measured};

const NOT_RECORDED: &str = "not recorded";

pub(super) struct Imported {
    pub(super) run: Measured,
    pub(super) ended_unix_ms: Option<u64>,
}

pub(super) struct Order<'a> {
    pub(super) title: Option<&'a str>,
    pub(super) baseline: Option<&'a str>,
    pub(super) threshold: f64,
    pub(super) now_unix_ms: u64,
}

pub(super) struct Plan {
    pub(super) manifest: Manifest,
    pub(super) trials: Vec<TrialSummary>,
}

/// Clients, and the offered rate in thousandths of a transaction per second: integers sort.
type Load = (u64, Option<u64>);

fn load_of(run: &Measured) -> Load {
    (run.clients, run.rate.map(|rate| (rate * 1e3).round() as u64))
}

/// `16 clients`, `500/s with 16 clients`.
fn load_name((clients, rate): Load) -> String {
    let clients =
        crate::commands::counted(usize::try_from(clients).unwrap_or(usize::MAX), "client");
    match rate {
        Some(rate) => format!("{}/s with {clients}", rate as f64 / 1e3),
        None => clients,
    }
}

/// The nth run of a variant at each load becomes its nth repetition.
pub(super) fn plan(
    variants: &[(String, Vec<Imported>)],
    order: &Order<'_>,
) -> anyhow::Result<Plan> {
    let runs = || variants.iter().flat_map(|(_, runs)| runs);
    let mut loads: Vec<Load> = runs().map(|one| load_of(&one.run)).collect();
    loads.sort_unstable();
    loads.dedup();
    let repetitions = complete(variants, &loads)?;
    let names: Vec<&str> = variants.iter().map(|(name, _)| name.as_str()).collect();
    let baseline = match order.baseline {
        None => 0,
        Some(name) => names
            .iter()
            .position(|known| *known == name)
            .with_context(|| format!("--baseline {name}: the variants are {}", names.join(", ")))?,
    };
    let mut trials = Vec::new();
    let most = repetitions.iter().copied().max().unwrap_or(0);
    for repetition in 0..most {
        for (variant, (_, runs)) in variants.iter().enumerate() {
            if repetition < repetitions[variant] {
                let nth = |load: &Load| {
                    runs.iter().filter(|one| load_of(&one.run) == *load).nth(repetition)
                };
                let of_trial: Vec<&Imported> = loads.iter().filter_map(nth).collect();
                let place = (trials.len() as u32 + 1, variant, repetition as u32 + 1);
                trials.push(trial(place, &of_trial, order.now_unix_ms));
            }
        }
    }
    let record = |(idx, (name, runs)): (usize, &(String, Vec<Imported>))| {
        variant_record(name, runs, (idx != baseline).then_some(baseline))
    };
    let planned = |trial: &TrialSummary| {
        let TrialSummary { number, variant, repetition, block, .. } = *trial;
        TrialPlan { number, variant, repetition, block }
    };
    let tools = tools(runs().map(|one| one.run.tool.as_str()));
    let title =
        order.title.map_or_else(|| format!("{} ({tools})", names.join(" and ")), str::to_owned);
    let manifest = Manifest {
        format: FORMAT,
        dyno: env!("CARGO_PKG_VERSION").to_owned(),
        title: dyno_units::clean_text(&title),
        fingerprint: format!("imported-{}", order.now_unix_ms),
        created_unix_ms: order.now_unix_ms,
        threshold: order.threshold,
        // Their real order is unknown, so blocks cancel nothing.
        order: "sequential".to_owned(),
        steps: loads.iter().map(|load| step_record(*load, variants)).collect(),
        trials: trials.iter().map(planned).collect(),
        variants: variants.iter().enumerate().map(record).collect::<anyhow::Result<_>>()?,
        environment: Environment { machine: NOT_RECORDED.to_owned(), ..Environment::default() },
        ..Manifest::default()
    };
    Ok(Plan { manifest, trials })
}

/// Repetitions by variant. Fails if a variant has more runs at one load than at another.
fn complete(variants: &[(String, Vec<Imported>)], loads: &[Load]) -> anyhow::Result<Vec<usize>> {
    let mut repetitions = Vec::new();
    for (name, runs) in variants {
        let count = |load: &Load| runs.iter().filter(|one| load_of(&one.run) == *load).count();
        let counts: Vec<usize> = loads.iter().map(count).collect();
        let (least, most) =
            (counts.iter().copied().min().unwrap_or(0), counts.iter().copied().max().unwrap_or(0));
        if least < most {
            let at = |n: usize| {
                let idx = counts.iter().position(|count| *count == n).unwrap_or(0);
                load_name(loads[idx])
            };
            bail!(
                "{name} has {} at {} and {} at {}: import the same number of runs at each load, \
                 and the same loads for each variant",
                crate::commands::counted(most, "run"),
                at(most),
                least,
                at(least)
            );
        }
        repetitions.push(least);
    }
    Ok(repetitions)
}

/// Each once: `sysbench 1.0.20 and pgbench 15.18`.
fn tools<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let mut seen = BTreeSet::new();
    all.filter(|tool| seen.insert(*tool)).collect::<Vec<&str>>().join(" and ")
}

fn variant_record(
    name: &str,
    runs: &[Imported],
    baseline: Option<usize>,
) -> anyhow::Result<VariantRecord> {
    let workload = |run: &Measured| {
        let tool = run.tool.split(' ').next().unwrap_or_default();
        run.workload.clone().unwrap_or_else(|| tool.to_owned())
    };
    let first = runs.first().map(|one| workload(&one.run)).unwrap_or_default();
    if let Some(other) = runs.iter().find(|one| workload(&one.run) != first) {
        bail!(
            "the runs named {name} come from both {first} and {} ({}): give them different names",
            workload(&other.run),
            other.run.place
        );
    }
    Ok(VariantRecord {
        name: name.to_owned(),
        levels: vec![LevelRecord { factor: "database".to_owned(), level: name.to_owned() }],
        baseline,
        database: name.to_owned(),
        product: NOT_RECORDED.to_owned(),
        workload: dyno_units::clean_text(&first),
        ..VariantRecord::default()
    })
}

fn step_record(load: Load, variants: &[(String, Vec<Imported>)]) -> StepRecord {
    let here = variants.iter().flat_map(|(_, runs)| runs).filter(|one| load_of(&one.run) == load);
    StepRecord {
        name: load_name(load),
        clients: load.0,
        rate: load.1.map(|rate| rate as f64 / 1e3),
        // sysbench and pgbench draw exponential times between arrivals.
        arrivals: if load.1.is_some() { "poisson" } else { "closed" }.to_owned(),
        duration_s: here.map(|one| one.run.seconds).fold(0.0, f64::max),
        ..StepRecord::default()
    }
}

fn trial(place: (u32, usize, u32), runs: &[&Imported], now: u64) -> TrialSummary {
    let (number, variant, repetition) = place;
    let ended = runs.iter().filter_map(|one| one.ended_unix_ms).max().unwrap_or(now);
    let seconds: f64 = runs.iter().map(|one| one.run.seconds).sum();
    let mut seen = BTreeSet::new();
    let figures = runs.iter().flat_map(|one| &one.run.figures).map(|(metric, _)| metric);
    let metrics: Vec<Metric> = figures.filter(|metric| seen.insert(metric.id)).cloned().collect();
    // The default is a server that stores nothing.
    let of_product = ProductFacts { stores_data: true, ..ProductFacts::default() };
    TrialSummary {
        number,
        variant,
        repetition,
        block: repetition,
        began_unix_ms: ended.saturating_sub((seconds * 1e3) as u64),
        ended_unix_ms: ended,
        server: ServerFacts {
            product: NOT_RECORDED.to_owned(),
            durability: "unknown".to_owned(),
            of_product: Some(of_product),
            ..ServerFacts::default()
        },
        steps: runs.iter().enumerate().map(|(step, one)| summary(step, &one.run)).collect(),
        metrics,
        ..TrialSummary::default()
    }
}

fn summary(step: usize, run: &Measured) -> StepSummary {
    let [reads, writes, others] = run.statements;
    let column = |of: fn(&super::measured::Interval) -> f64| run.intervals.iter().map(of).collect();
    let zeros = || vec![0.0; run.intervals.len()];
    StepSummary {
        step,
        measured_s: run.seconds,
        kinds: run.kinds.iter().map(kind).collect(),
        reads,
        writes,
        others,
        // Served or missed; those in flight at the end are unknown.
        due: if run.rate.is_some() { run.committed().saturating_add(run.missed) } else { 0 },
        missed: run.missed,
        retries: run.retries,
        reconnects: run.reconnects,
        lag: EncodedHistogram::encode(&new_histogram()),
        generator: GeneratorSummary::default(),
        intervals: IntervalColumns {
            start_s: column(|interval| interval.start_s),
            throughput: column(|interval| interval.throughput),
            errors: column(|interval| interval.errors),
            missed: zeros(),
            p50_us: column(|interval| interval.response_us[0]),
            p95_us: column(|interval| interval.response_us[1]),
            p99_us: column(|interval| interval.response_us[2]),
            max_us: column(|interval| interval.response_us[3]),
            lag_p99_us: zeros(),
        },
        ended_by: Some("time".to_owned()),
        figures: run.figures.iter().map(|(metric, value)| (metric.id, *value)).collect(),
        imported: Some(ImportedFrom { tool: run.tool.clone(), place: run.place.clone() }),
        ..StepSummary::default()
    }
}

fn kind(kind: &Kind) -> KindSummary {
    let empty = || EncodedHistogram::encode(&new_histogram());
    let (response, service) = match &kind.times {
        Some(times) => {
            (EncodedHistogram::encode(&times.response), EncodedHistogram::encode(&times.service))
        }
        None => (empty(), empty()),
    };
    let failed = kind.failed.iter().map(|(outcome, n)| ((*outcome).to_owned(), *n));
    KindSummary {
        name: kind.name.clone(),
        outcomes: failed.chain([("committed".to_owned(), kind.committed)]).collect(),
        response,
        service,
        commits_100ms: None,
    }
}

/// All or nothing: written beside the folder, then renamed.
pub(super) fn write(folder: &Path, plan: &Plan) -> anyhow::Result<()> {
    let usage = |why: &str| {
        let shown = folder.display();
        crate::usage_error(anyhow!("cannot use the folder {shown}: {why}"))
    };
    let name = folder.file_name().ok_or_else(|| usage("it has no name"))?.to_string_lossy();
    if fs::symlink_metadata(folder).is_ok() {
        dyno_record::check_empty(folder).map_err(|error| crate::usage_error(error.into()))?;
    }
    let beside = folder.with_file_name(format!(".{name}.importing"));
    // Nothing behind a link, or of another user, is looked at or removed.
    dyno_record::check_way(&beside).map_err(|error| crate::usage_error(error.into()))?;
    if fs::symlink_metadata(&beside).is_ok_and(|facts| !facts.is_dir()) {
        let shown = beside.display();
        return Err(usage(&format!("{shown} is in the way, and is not a folder; remove it")));
    }
    if fs::symlink_metadata(beside.join("manifest.json")).is_ok() {
        if dyno_record::is_being_written(&beside) {
            return Err(usage("another import is writing it"));
        }
        // Left by a killed import.
        let removed = parts(&beside).and_then(|parts| {
            parts.iter().try_for_each(|part| remove(part))?;
            fs::remove_dir(&beside)
        });
        removed.with_context(|| format!("cannot remove {}", beside.display()))?;
    }
    let mut run = RunWriter::create(&beside, &plan.manifest)?;
    for (trial, summary) in plan.manifest.trials.iter().zip(&plan.trials) {
        let writer = run.begin_trial(trial, &plan.manifest.variants[trial.variant].name)?;
        writer.finish(summary.clone())?;
    }
    fs::rename(&beside, folder).with_context(|| format!("cannot write {}", folder.display()))
}

/// The manifest, which tells whose the folder is, comes last: removing may be killed as well.
fn parts(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let parts: io::Result<Vec<_>> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut parts = parts?;
    parts.sort_by_key(|part| part.ends_with("manifest.json"));
    Ok(parts)
}

fn remove(part: &Path) -> io::Result<()> {
    match fs::symlink_metadata(part)?.is_dir() {
        true => fs::remove_dir_all(part),
        false => fs::remove_file(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imported(clients: u64, committed: u64) -> Imported {
        let kinds = vec![Kind { name: "transaction".to_owned(), committed, ..Kind::default() }];
        let tool = "sysbench 1.0.20".to_owned();
        let run = Measured { tool, clients, seconds: 10.0, kinds, ..Measured::default() };
        Imported { run, ended_unix_ms: None }
    }

    const ORDER: Order<'_> =
        Order { title: None, baseline: None, threshold: 0.03, now_unix_ms: 1_000_000 };

    #[test]
    fn runs_are_repetitions_of_variants_at_loads() {
        let runs = |scale: u64| {
            vec![
                imported(8, 20 * scale),
                imported(1, 5 * scale),
                imported(8, 21 * scale),
                imported(1, 6 * scale),
            ]
        };
        let all = [("old".to_owned(), runs(100)), ("new".to_owned(), runs(200))];
        let plan = plan(&all, &ORDER).expect("it is complete");
        let steps: Vec<&str> = plan.manifest.steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(steps, ["1 client", "8 clients"]);
        assert_eq!(plan.manifest.title, "old and new (sysbench 1.0.20)");
        let baselines: Vec<Option<usize>> =
            plan.manifest.variants.iter().map(|variant| variant.baseline).collect();
        assert_eq!(baselines, [None, Some(0)]);
        let places: Vec<(u32, usize, u64)> = plan
            .trials
            .iter()
            .map(|t| (t.repetition, t.variant, t.steps[1].kinds[0].outcomes["committed"]))
            .collect();
        assert_eq!(places, [(1, 0, 2000), (1, 1, 4000), (2, 0, 2100), (2, 1, 4200)]);
    }

    #[test]
    fn what_does_not_fit_together_is_said() {
        let check = |all: &[(String, Vec<Imported>)], order: &Order<'_>, expected: &str| {
            let error = plan(all, order).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(expected), "{error}");
        };
        let uneven = [("old".to_owned(), vec![imported(8, 1), imported(8, 1), imported(1, 1)])];
        check(&uneven, &ORDER, "old has 2 runs at 8 clients and 1 at 1 client");
        let one = [("old".to_owned(), vec![imported(8, 1)])];
        check(&one, &Order { baseline: Some("new"), ..ORDER }, "the variants are old");
        let mut other = imported(8, 1);
        other.run.workload = Some("TPROC-C".to_owned());
        check(
            &[("old".to_owned(), vec![imported(8, 1), other])],
            &ORDER,
            "come from both sysbench and TPROC-C",
        );
    }

    #[test]
    fn a_record_is_whole_or_not_there() {
        let above = tempfile::tempdir().expect("a folder");
        let folder = above.path().join("run");
        let runs = vec![imported(8, 1), imported(8, 2)];
        let plan = plan(&[("old".to_owned(), runs)], &ORDER).expect("it is complete");
        // Another import was killed after its first trial.
        let beside = above.path().join(".run.importing");
        let mut run = RunWriter::create(&beside, &plan.manifest).expect("it is empty");
        let writer = run.begin_trial(&plan.manifest.trials[0], "old").expect("it is planned");
        writer.finish(plan.trials[0].clone()).expect("it has begun");
        let said = write(&folder, &plan).map_err(|error| format!("{error:?}"));
        assert!(said.is_err_and(|said| said.contains("another import")), "it is still there");
        drop(run);
        write(&folder, &plan).expect("the other one has gone");
        assert!(!beside.exists());
        let trials = fs::read_dir(folder.join("trials")).expect("there are trials").flatten();
        assert_eq!(trials.filter(|one| one.path().join("summary.json").exists()).count(), 2);
        let said = write(&folder, &plan).map_err(|error| format!("{error:?}"));
        assert!(said.is_err_and(|said| said.contains("already holds a run")));
    }

    #[test]
    fn what_a_link_leads_to_is_not_removed_and_not_written_to() {
        let plan = plan(&[("old".to_owned(), vec![imported(8, 1)])], &ORDER).expect("complete");
        for files in [&["manifest.json", "letter.txt"][..], &[]] {
            let above = tempfile::tempdir().expect("a folder");
            let path = |name: &str| above.path().join(name);
            fs::create_dir(path("victim")).expect("made");
            files.iter().for_each(|name| fs::write(path("victim").join(name), "").expect("made"));
            std::os::unix::fs::symlink("victim", path(".run.importing")).expect("made");
            let said = write(&path("run"), &plan).map_err(|error| format!("{error:?}"));
            assert!(said.is_err_and(|said| said.contains("is not a folder; remove it")));
            assert_eq!(fs::read_dir(path("victim")).expect("there").count(), files.len());
            assert!(fs::symlink_metadata(path("run")).is_err());
        }
        // Nor is what a link in the folder of a killed import leads to.
        let above = tempfile::tempdir().expect("a folder");
        let path = |name: &str| above.path().join(name);
        fs::create_dir_all(path("victim/inner")).expect("made");
        fs::create_dir(path(".run.importing")).expect("made");
        std::os::unix::fs::symlink(path("victim"), path(".run.importing/trials")).expect("made");
        fs::write(path(".run.importing/manifest.json"), "").expect("made");
        write(&path("run"), &plan).expect("the other one has gone");
        assert!(path("victim/inner").exists());
        assert_eq!(fs::read_dir(path("run/trials")).expect("there").count(), 1);
    }

    #[test]
    fn an_import_that_is_killed_while_it_removes_another_one_can_be_repeated() {
        let plan = plan(&[("old".to_owned(), vec![imported(8, 1)])], &ORDER).expect("complete");
        for n_removed in 0..=3 {
            let above = tempfile::tempdir().expect("a folder");
            let beside = above.path().join(".run.importing");
            let mut run = RunWriter::create(&beside, &plan.manifest).expect("it is empty");
            let begun = run.begin_trial(&plan.manifest.trials[0], "old").expect("it is planned");
            drop((begun, run));
            let left = parts(&beside).expect("it can be read");
            assert!(left.len() >= 3, "{left:?}");
            left.iter().take(n_removed).for_each(|part| remove(part).expect("it is there"));
            write(&above.path().join("run"), &plan).expect("the other one has gone");
        }
    }
}
