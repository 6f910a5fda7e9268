//! A figure that an activity declares, from its record to every format: nothing here knows its name.

use dyno_analysis::{
    Findings, Gate, GateCall, MetricId, Options, RequirementOutcome, Verdict, analyse, metrics,
};
use dyno_record::{RequirementRecord, Run, StepSummary, TrialOutcome};
use dyno_units::{Direction::Lower, Metric, Unit, metric};

use crate::export::{csv, tables};
use crate::times::Times;
use crate::{fixture, html, json, markdown, terminal};

const TIME: MetricId = MetricId::new("job.time");
const RSS: MetricId = MetricId::new("job.rss_peak");

#[rustfmt::skip]
fn declared() -> Vec<Metric> {
    vec![
        metric("job.time", Unit::Seconds, Lower, "job time", "from the start of the job to its end").main(),
        metric("job.rss_peak", Unit::Bytes, Lower, "peak RSS of the job", "most resident memory").secondary(),
        metric("job.rows", Unit::Count, Lower, "rows <b>done</b>", "rows that the job has done"),
    ]
}

/// Seconds that the job of a variant took in a repetition.
fn seconds(variant: usize, repetition: u32) -> f64 {
    let noise = 1.0 + 0.002 * f64::from((repetition * 7 + variant as u32 * 3) % 5);
    [20.0, 10.0, 40.0][variant] * noise
}

/// A run of three variants; `change` makes each trial's steps.
fn run(change: impl Fn(&mut StepSummary, usize, u32)) -> Run {
    let mut run = fixture::three_variants().1.remove(0);
    for trial in &mut run.trials {
        trial.outcome = TrialOutcome::Finished;
        trial.metrics = declared();
        let (variant, repetition) = (trial.variant, trial.repetition);
        trial.steps.resize(run.manifest.steps.len(), StepSummary::default());
        for (idx, step) in trial.steps.iter_mut().enumerate() {
            let took = seconds(variant, repetition);
            step.step = idx;
            step.measured_s = took;
            step.figures =
                [(TIME, took), (RSS, took * 1e8), (MetricId::new("job.rows"), 7.0)].into();
            change(step, variant, repetition);
        }
    }
    run
}

/// One step, without load.
fn run_of_jobs() -> Run {
    let mut run = run(|step, _, _| {
        let StepSummary { measured_s, figures, .. } = step.clone();
        *step = StepSummary { measured_s, figures, ..StepSummary::default() };
    });
    run.manifest.steps.truncate(1);
    let step = &mut run.manifest.steps[0];
    (step.name, step.clients, step.arrivals) = ("create index".to_owned(), 0, "none".to_owned());
    run.trials.iter_mut().for_each(|trial| trial.steps.truncate(1));
    run.manifest.requirements = vec![RequirementRecord {
        text: "job.time ≤ 15 s".to_owned(),
        measure: "job.time".to_owned(),
        bound: 15e6,
        is_in_own_unit: false,
        is_least: Some(false),
    }];
    run
}

fn verdict(findings: &Findings, variant: usize, metric: MetricId) -> Option<Verdict> {
    let is_it = |c: &&dyno_analysis::Comparison| (c.variant, c.metric) == (variant, metric);
    findings.comparisons.iter().find(is_it).map(|comparison| comparison.verdict)
}

#[test]
fn a_declared_figure_is_estimated_compared_ranked_and_gated() {
    let findings = analyse(&[run_of_jobs()], &Options { gate: true, ..Options::default() });
    assert_eq!(findings.steps[0].main_metric, TIME);
    let cell = &findings.cells[1];
    let estimate = &cell.metrics[&TIME];
    assert!((10.0..10.1).contains(&estimate.value) && estimate.unit == "s", "{estimate:?}");
    let (low, high) = estimate.low.zip(estimate.high).expect("it has an interval");
    assert!(low < estimate.value && estimate.value < high);
    // There was no load, so nothing is said of transactions.
    assert_eq!(cell.metrics.len(), 3, "{:?}", cell.metrics.keys());
    assert_eq!(cell.absent.len(), 0, "{:?}", cell.absent);
    for metric in [TIME, RSS] {
        assert_eq!(verdict(&findings, 1, metric), Some(Verdict::Better), "{metric}");
        assert_eq!(verdict(&findings, 2, metric), Some(Verdict::Worse), "{metric}");
    }
    assert_eq!(verdict(&findings, 1, MetricId::new("job.rows")), None);
    let headline = &findings.answer.headline;
    assert!(headline.contains("MariaDB 12.3 has the shortest job time"), "{headline}");
    let outcomes: Vec<_> = findings.requirements.iter().map(|facts| facts.outcome).collect();
    use RequirementOutcome::{Met, NotMet};
    assert_eq!(outcomes, [NotMet, Met, NotMet]);
    let Some(Gate::Worse(reasons)) = &findings.gate else { panic!("{:?}", findings.gate) };
    assert!(reasons[0].starts_with("job time of MariaDB 12.3, 4k pages at create index"));
    let row = findings.gate_rows.iter().find(|row| (row.variant, row.metric) == (1, TIME));
    let row = row.expect("the better variant is judged too");
    assert!(row.is_required && row.call == GateCall::NoWorse, "{row:?}");
}

#[test]
fn a_declared_figure_is_in_every_format_with_its_title_and_unit() {
    let run = run_of_jobs();
    let findings = analyse(std::slice::from_ref(&run), &Options::default());
    let runs = [run];
    let csv: String = tables(&findings, &runs, &Times::default()).iter().map(csv).collect();
    let formats = [
        ("html", html::render(&findings, &runs, &Times::default(), "today"), "Job time"),
        ("markdown", markdown::render(&findings), "job time"),
        ("terminal", terminal::render(&findings, 100, false), "job time"),
        ("json", json::render(&findings), "\"title\": \"job time\""),
        ("csv", csv, "job.time,s,"),
    ];
    for (name, text, title) in formats {
        assert!(text.contains(title), "{name}: {text}");
        let value = if ["json", "csv"].contains(&name) { "10.0" } else { "10.0 s" };
        assert!(text.contains(value), "{name}: {text}");
        // A title comes from the record, and is no markup.
        let is_markup = ["html", "markdown"].contains(&name);
        assert!(!is_markup || !text.contains("<b>done</b>"), "{name}");
    }
}

#[test]
fn beside_a_load_a_declared_figure_has_verdicts_and_the_load_stays_the_main_one() {
    let run = run(|_, _, _| ());
    let findings = analyse(std::slice::from_ref(&run), &Options::default());
    assert!(findings.steps.iter().all(|step| step.main_metric == metrics::THROUGHPUT));
    assert_eq!(verdict(&findings, 1, TIME), Some(Verdict::Better));
    let markdown = markdown::render(&findings);
    assert!(markdown.contains("| job time | CI | verdict |"), "{markdown}");
}
