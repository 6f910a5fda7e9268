//! Counts what A/A runs report: by metric and step, by family, by the gate.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context;
use dyno_analysis::statistics::incomplete_beta;
use dyno_analysis::{Findings, Gate, MetricId, Metrics, Options, Verdict, analyse};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    hits: u32,
    of: u32,
}

impl Share {
    fn add(&mut self, is_hit: bool) {
        self.hits += u32::from(is_hit);
        self.of += 1;
    }

    /// Clopper and Pearson (1934), at 95 %.
    fn interval(self) -> (f64, f64) {
        let (hits, of) = (f64::from(self.hits), f64::from(self.of));
        let quantile = |probability: f64, a: f64, b: f64| {
            let (mut low, mut high) = (0.0, 1.0);
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                if incomplete_beta(a, b, middle) < probability {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            0.5 * (low + high)
        };
        let low = if self.hits == 0 { 0.0 } else { quantile(0.025, hits, of - hits + 1.0) };
        let high = if self.hits == self.of { 1.0 } else { quantile(0.975, hits + 1.0, of - hits) };
        (low, high)
    }

    fn cells(self) -> String {
        if self.of == 0 {
            return "– | – | –".to_owned();
        }
        let (low, high) = self.interval();
        let share = 100.0 * f64::from(self.hits) / f64::from(self.of);
        let (low, high) = (100.0 * low, 100.0 * high);
        format!("{} of {} | {share:.1} % | {low:.1} … {high:.1} %", self.hits, self.of)
    }
}

#[derive(Default)]
struct Counts {
    /// Called better or worse, by metric and step.
    comparisons: BTreeMap<(MetricId, String), Share>,
    /// Studies with such a comparison, by metric.
    families: BTreeMap<MetricId, Share>,
    /// Studies with such a comparison of a main metric: the documented rate.
    main: Share,
    /// Of main metrics: called no difference.
    same: Share,
    /// Studies with any such comparison.
    anything: Share,
    /// Studies whose comparisons share a pooled error.
    pooled: Share,
    passed: Share,
    stopped: Share,
    products: BTreeMap<String, u32>,
}

pub(super) fn count(folders: &[PathBuf]) -> anyhow::Result<String> {
    let mut counts = Counts::default();
    for folder in folders {
        let run = dyno_record::read_run(folder)
            .with_context(|| format!("cannot read {}", folder.display()))?;
        let product = run.manifest.variants.first().map_or("", |v| v.product.as_str()).to_owned();
        *counts.products.entry(product).or_default() += 1;
        counts.add(&analyse(&[run], &Options { gate: true, ..Options::default() }));
    }
    Ok(counts.table())
}

impl Counts {
    fn add(&mut self, findings: &Findings) {
        let is_alarm = |verdict: Verdict| matches!(verdict, Verdict::Better | Verdict::Worse);
        let mut families: BTreeMap<MetricId, bool> = BTreeMap::new();
        let mut main = false;
        for c in &findings.comparisons {
            let step = findings.steps[c.step].name.clone();
            self.comparisons.entry((c.metric, step)).or_default().add(is_alarm(c.verdict));
            *families.entry(c.metric).or_default() |= is_alarm(c.verdict);
            if c.is_main {
                main |= is_alarm(c.verdict);
                self.same.add(c.verdict == Verdict::NoDifference);
            }
        }
        self.main.add(main);
        self.anything.add(families.values().any(|is| *is));
        for (metric, is_alarm) in families {
            self.families.entry(metric).or_default().add(is_alarm);
        }
        self.pooled.add(findings.comparisons.iter().any(|c| c.is_main && c.pooled.is_some()));
        self.passed.add(findings.gate == Some(Gate::NoWorse));
        self.stopped.add(matches!(findings.gate, Some(Gate::Worse(_))));
    }

    fn table(&self) -> String {
        let products: Vec<String> =
            self.products.iter().map(|(product, n)| format!("{n} {product}")).collect();
        let mut text = format!(
            "Studies of variants that are the same: {}. Stated rate of the main metric: at most 5 % \
             of studies.\n\n| what | how often | share | 95 % interval |\n|---|--:|--:|--:|\n",
            products.join(", ")
        );
        let mut row = |what: &str, share: Share| {
            text += &format!("| {what} | {} |\n", share.cells());
        };
        row("studies: main metric better or worse anywhere", self.main);
        row("comparisons of the main metric: no difference", self.same);
        row("studies: any metric better or worse anywhere", self.anything);
        row("studies: common error used", self.pooled);
        row("gate: no worse", self.passed);
        row("gate: worse", self.stopped);
        for (metric, share) in &self.families {
            row(
                &format!("studies: {} better or worse", Metrics::default().get(*metric).title),
                *share,
            );
        }
        for ((metric, step), share) in &self.comparisons {
            row(&format!("comparisons: {}, {step}", Metrics::default().get(*metric).title), *share);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check((hits, of): (u32, u32), (low, high): (f64, f64)) {
        let found = Share { hits, of }.interval();
        assert!((found.0 - low).abs() < 5e-4 && (found.1 - high).abs() < 5e-4, "{found:?}");
    }

    #[test]
    fn intervals_as_printed_in_tables() {
        check((0, 40), (0.0, 0.0881));
        check((2, 40), (0.0061, 0.1692));
        check((10, 20), (0.2720, 0.7280));
        check((20, 20), (0.8316, 1.0));
    }

    #[test]
    fn alarms_are_counted_by_study_and_by_comparison() {
        let mut counts = Counts::default();
        let mut findings = Findings::default();
        findings.steps.push(dyno_analysis::StepFacts::default());
        counts.add(&findings);
        assert_eq!(
            (counts.main, counts.anything),
            (Share { hits: 0, of: 1 }, Share { hits: 0, of: 1 })
        );
        let text = counts.table();
        assert!(text.contains("| gate: worse | 0 of 1 | 0.0 % | 0.0 … 97.5 % |"), "{text}");
    }
}
