//! The differences that a design can detect, for `dyno plan` and `dyno check`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dyno_analysis::statistics::{Design as Power, Rule};
use dyno_analysis::{Findings, Options, analyse};
use dyno_model::Load;
use dyno_record::{Manifest, Run, read_manifest, read_run};
use dyno_study::{Design, LoadLevel, Order, Plan, Product};
use dyno_units::Nanoseconds;
use dyno_workload::none;

/// The share of studies that detect an existing difference.
const POWER: f64 = 0.8;

/// Coefficient of variation between trials, if nothing is known of the machine.
const NOISE_ASSUMED: f64 = 0.03;

const REPETITIONS_MOST: u32 = 200;

/// The latest ones are read.
const RUNS_MOST: usize = 5;

/// Degrees of freedom from which a spread counts as known.
const FREEDOM_LEAST: f64 = 4.0;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Noise {
    /// Coefficient of variation, as a fraction.
    pub(crate) value: f64,
    /// The runs it comes from; empty if assumed.
    pub(crate) runs: Vec<String>,
}

/// From earlier runs of the same workloads and products on this machine.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Past {
    pub(crate) noise: Noise,
    /// Durations of steps with a quota, by name, if the workload had the same options.
    pub(crate) steps: BTreeMap<String, Nanoseconds>,
}

impl Past {
    pub(crate) fn unknown() -> Past {
        Past { noise: Noise::ASSUMED, steps: BTreeMap::new() }
    }

    pub(crate) fn of(plan: &Plan, folder: &Path, machine: &str) -> Past {
        let mut related: Vec<(u64, PathBuf)> = runs_in(folder)
            .filter_map(|path| {
                let manifest = read_manifest(&path).ok()?;
                let is_related =
                    manifest.environment.machine == machine && is_related(plan, &manifest);
                is_related.then_some((manifest.created_unix_ms, path))
            })
            .collect();
        related.sort();
        let (mut squares, mut freedom, mut runs) = (0.0, 0.0, Vec::new());
        let mut steps = BTreeMap::new();
        for (_, path) in related.iter().rev().take(RUNS_MOST) {
            // `dyno report` says why a run cannot be read.
            let Ok(run) = read_run(path) else { continue };
            let is_related: Vec<bool> =
                run.manifest.variants.iter().map(|one| is_variant_of(plan, one)).collect();
            for (name, time) in quota_times(plan, &run) {
                steps.entry(name).or_insert(time);
            }
            let findings = analyse(&[run], &Options::default());
            let (more_squares, more_freedom) = spread(&findings, &is_related);
            if more_freedom > 0.0 {
                squares += more_squares;
                freedom += more_freedom;
                runs.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
            }
        }
        let noise = match freedom < FREEDOM_LEAST {
            true => Noise::ASSUMED,
            false => Noise { value: (squares / freedom).sqrt().max(0.001), runs },
        };
        Past { noise, steps }
    }
}

/// Without what other users put there, where everybody may: they could have made up what they measured.
fn runs_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| is_own(path))
}

/// Its folder may be open to everybody as well, or that of its trials.
fn is_own(run: &Path) -> bool {
    let trials = dyno_record::trial_folders(run).into_iter();
    let summaries = trials.map(|(_, trial)| trial.join("summary.json"));
    let mut parts = std::iter::once(run.join("manifest.json")).chain(summaries);
    parts.all(|part| dyno_record::check_way(&part).is_ok())
}

/// The longest time, from variants with the plan's options.
fn quota_times(plan: &Plan, run: &Run) -> BTreeMap<String, Nanoseconds> {
    let mut times = BTreeMap::new();
    for trial in &run.trials {
        let record = &run.manifest.variants[trial.variant];
        let is_same = plan.variants.iter().any(|variant| {
            let given = &variant.workload.options;
            variant.workload.workload == record.workload
                && given.iter().all(|(name, value)| record.options.get(name) == Some(value))
        });
        for step in trial.steps.iter().filter(|step| step.ended_by.as_deref() == Some("quota")) {
            let name = &run.manifest.steps[step.step].name;
            if is_same {
                let time = Nanoseconds::from_secs_f64(step.measured_s);
                let longest = times.entry(name.clone()).or_insert(time);
                *longest = (*longest).max(time);
            }
        }
    }
    times
}

impl Noise {
    pub(crate) const ASSUMED: Noise = Noise { value: NOISE_ASSUMED, runs: Vec::new() };

    fn in_words(&self) -> String {
        let percent = percent(self.value);
        match self.runs.as_slice() {
            [] => format!("{percent} noise between trials is assumed"),
            [one] => format!("{percent} noise between trials, as in the run {one}"),
            more => format!("{percent} noise between trials, as in the runs {}", more.join(", ")),
        }
    }
}

fn is_related(plan: &Plan, manifest: &Manifest) -> bool {
    manifest.variants.iter().any(|variant| is_variant_of(plan, variant))
}

fn is_variant_of(plan: &Plan, record: &dyno_record::VariantRecord) -> bool {
    plan.variants.iter().any(|variant| {
        let product = match &variant.database.product {
            Product::Private(name) => *name == record.product,
            Product::Url(_) => false,
        };
        product && variant.workload.workload == record.workload
    })
}

/// Squared deviations of the main metric's logarithms from their means, and degrees of freedom.
fn spread(findings: &Findings, is_counted: &[bool]) -> (f64, f64) {
    let (mut squares, mut freedom) = (0.0, 0.0);
    for cell in findings.cells.iter().filter(|cell| is_counted.get(cell.variant) == Some(&true)) {
        let metric = findings.steps[cell.step].main_metric;
        let Some(estimate) = cell.metrics.get(&metric) else { continue };
        let logs: Vec<f64> =
            estimate.values.iter().filter(|value| **value > 0.0).map(|value| value.ln()).collect();
        if logs.len() >= 2 {
            let mean = logs.iter().sum::<f64>() / logs.len() as f64;
            squares += logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
            freedom += logs.len() as f64 - 1.0;
        }
    }
    (squares, freedom)
}

/// Empty if nothing is compared.
pub(crate) fn lines(plan: &Plan, design: &Design, noise: &Noise) -> Vec<String> {
    // Without load there is nothing to detect a difference in.
    let has_load = |variant: &&dyno_study::Variant| variant.workload.workload != none::NAME;
    let compared =
        plan.variants.iter().filter(has_load).filter(|variant| variant.baseline.is_some()).count();
    let comparisons = compared * plan.steps.len();
    if comparisons == 0 {
        return Vec::new();
    }
    let repetitions = design.repetitions;
    let power = |repetitions: u32| Power {
        repetitions,
        variants: compared as u32,
        steps: plan.steps.len() as u32,
        interleaved: design.order == Order::Interleaved,
        rule: Rule { threshold: design.threshold, confidence: 0.95 },
    };
    let smallest = |repetitions: u32| power(repetitions).smallest_effect(noise.value, POWER);
    let what = format!(
        "{} and {}",
        super::counted(repetitions as usize, "repetition"),
        super::counted(comparisons, "comparison")
    );
    let mut lines = vec![match smallest(repetitions) {
        Some(effect) => {
            format!("{}, with {what} (80 % power, 95 % confidence)", detectable(effect))
        }
        None if repetitions < 2 => {
            "nothing: one repetition gives no estimate of the noise".to_owned()
        }
        None => format!("no difference of any size, with {what}"),
    }];
    lines.push(noise.in_words());
    lines.extend(with_more(design, &power, noise));
    if design.order == Order::Sequential {
        lines.push("in sequential order, drift of the machine looks like a difference".to_owned());
    }
    if plan.steps.iter().any(|step| matches!(step.load, LoadLevel::Given(Load::Open { .. }))) {
        lines.push("under open-loop load the differences are in p95 response time".to_owned());
    }
    lines
}

/// Down to the threshold: smaller differences do not count.
fn with_more(design: &Design, power: &dyn Fn(u32) -> Power, noise: &Noise) -> Option<String> {
    let smallest = |repetitions: u32| power(repetitions).smallest_effect(noise.value, POWER);
    let repetitions = design.repetitions;
    if smallest(repetitions).is_some_and(|effect| effect <= design.threshold * 1.05) {
        return None;
    }
    let threshold = percent(design.threshold);
    let needed =
        power(repetitions).repetitions_for(design.threshold, noise.value, POWER, REPETITIONS_MOST);
    let more = [2, 3].map(|times| (repetitions.max(2) * times).max(5));
    let steps = more.iter().filter(|n| **n > repetitions && needed.is_none_or(|most| **n < most));
    let mut found: Vec<String> = steps
        .filter_map(|n| Some(format!("{} with {n} repetitions", difference(smallest(*n)?))))
        .collect();
    match needed {
        Some(n) => found.push(format!("{threshold} (the threshold) with about {n} repetitions")),
        None => found.push(format!(
            "the threshold of {threshold} is out of reach: not even {REPETITIONS_MOST} \
             repetitions detect it; make fewer comparisons, measure longer, or find a quieter \
             machine"
        )),
    }
    Some(found.join(", "))
}

/// The heading stands before the first line, blanks before the others.
pub(crate) fn section(lines: &[String]) -> String {
    let row = |(at, line): (usize, &String)| {
        format!("{:<9}{line}\n", if at == 0 { "detects" } else { "" })
    };
    lines.iter().enumerate().map(row).collect()
}

/// Beyond a factor of ten no size is given: nobody looks for such differences.
fn detectable(effect: f64) -> String {
    match 1.0 + effect {
        factor if factor > 10.0 => "only differences of more than a factor of 10".to_owned(),
        _ => format!("differences of about {} or more", difference(effect)),
    }
}

/// Two significant digits; from a doubling on, a factor.
fn difference(effect: f64) -> String {
    match 1.0 + effect {
        factor if factor > 10.0 => "more than a factor of 10".to_owned(),
        factor if factor >= 2.0 => format!("a factor of {factor:.1}"),
        _ => percent(effect),
    }
}

fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value < 9.95 { format!("{value:.1} %") } else { format!("{value:.0} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(design: &str, noise: f64) -> Vec<String> {
        lines_of_load("oltp_insert", design, noise)
    }

    fn lines_of_load(workload: &str, design: &str, noise: f64) -> Vec<String> {
        let source = format!(
            "title = 'x'\n[database.a]\nproduct = 'sqlite'\n[database.b]\nlike = 'a'\n\
             [workload.{workload}]\n[design]\n{design}\n"
        );
        let study = dyno_study::parse(&source, &crate::vocabulary::vocabulary()).unwrap();
        let plan = dyno_study::plan(&study, dyno_units::Seed(1));
        lines(&plan, &study.design, &Noise { value: noise, runs: Vec::new() })
    }

    #[test]
    fn a_design_says_what_it_finds() {
        let text = lines_of("vary = { database = ['a', 'b'] }", 0.03).join("\n");
        assert!(text.contains("with 5 repetitions and 1 comparison (80 % power"), "{text}");
        assert!(text.contains(" with 10 repetitions, "), "{text}");
        assert!(text.contains("3.0 % noise between trials is assumed"), "{text}");
        assert!(text.contains("3.0 % (the threshold) with about"), "{text}");
        assert_eq!(lines_of("database = 'a'", 0.03), [] as [&str; 0]);
        let idle = lines_of_load("none", "vary = { database = ['a', 'b'] }", 0.03);
        assert_eq!(idle, [] as [&str; 0]);
        let one = lines_of("vary = { database = ['a', 'b'] }\nrepetitions = 1", 0.03);
        assert!(one[0].starts_with("nothing: one repetition"), "{one:?}");
    }

    #[test]
    fn runs_that_another_user_put_there_are_not_believed() {
        use std::fs::{Permissions, create_dir_all, set_permissions, write};
        use std::os::unix::fs::{PermissionsExt, chown};
        let bench = tempfile::tempdir().unwrap();
        let path = |name: &str| bench.path().join(name);
        for name in ["own", "theirs", "manifest", "trial"] {
            let run = path("open").join(name);
            create_dir_all(run.join("trials/0001-a")).unwrap();
            write(run.join("manifest.json"), "").unwrap();
            write(run.join("trials/0001-a/summary.json"), "").unwrap();
        }
        create_dir_all(path("planted/run")).unwrap();
        for shared in ["", "open", "open/manifest", "open/trial/trials"] {
            set_permissions(path(shared), Permissions::from_mode(0o1777)).unwrap();
        }
        let check = |folder: &str, expected: &[&str]| {
            let mut found: Vec<PathBuf> = runs_in(&path(folder)).collect();
            found.sort();
            let expected: Vec<PathBuf> = expected.iter().map(|name| path(name)).collect();
            assert_eq!(found, expected, "{folder}");
        };
        check("open", &["open/manifest", "open/own", "open/theirs", "open/trial"]);
        check("planted", &["planted/run"]);
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can give folders away");
            return;
        }
        let planted = ["theirs", "manifest/manifest.json", "trial/trials/0001-a"];
        let planted = planted.map(|name| format!("open/{name}"));
        for name in planted.iter().map(String::as_str).chain(["planted"]) {
            chown(path(name), Some(54_321), None).unwrap();
        }
        check("open", &["open/own"]);
        check("planted", &[]);
    }

    #[test]
    fn only_a_threshold_that_is_not_reached_is_named() {
        let enough = lines_of("vary = { database = ['a', 'b'] }\nrepetitions = 20", 0.01);
        assert!(!enough.join("\n").contains("the threshold"), "{enough:?}");
        let never = lines_of("vary = { database = ['a', 'b'] }\nthreshold = '0.1%'", 0.1);
        assert!(never.join("\n").contains("out of reach"), "{never:?}");
    }

    #[test]
    fn factors_are_written_as_factors() {
        assert_eq!(difference(0.031), "3.1 %");
        assert_eq!(difference(0.25), "25 %");
        assert_eq!(difference(1.5), "a factor of 2.5");
        assert_eq!(difference(173.3), "more than a factor of 10");
        assert_eq!(detectable(1.5), "differences of about a factor of 2.5 or more");
        assert_eq!(detectable(173.3), "only differences of more than a factor of 10");
    }
}
