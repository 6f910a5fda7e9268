//! The most load within a limit of response times, among the measured levels.

use serde::{Deserialize, Serialize};

use crate::{Cell, Estimate, MetricId, StepFacts, metrics};

/// Limits of 1, 2 and 5 times each power of ten, in µs.
const BOUNDS: std::ops::RangeInclusive<i32> = 1..=7;

/// Of one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnderLimit {
    pub variant: usize,
    /// [`metrics::RESPONSE_P95`] or [`metrics::RESPONSE_P99`].
    pub metric: MetricId,
    pub bound_us: f64,
    /// Clients; otherwise offered rates.
    pub closed: bool,
    /// The heaviest step that kept it, if no lighter one broke it.
    pub step: Option<usize>,
    /// Clients, or offered rate.
    pub load: Option<f64>,
    /// The upper bound of its response time keeps the limit too.
    pub surely: bool,
    pub throughput: Option<Estimate>,
    /// The next load, which broke it, if any.
    pub next_broken: Option<f64>,
}

struct Level<'a> {
    step: usize,
    load: f64,
    response: &'a Estimate,
    throughput: Option<&'a Estimate>,
}

/// The most load under each limit of the study (`own`: what is limited, and the bound in µs), and under each
/// that parts the levels of some variant: that some of its levels keep and some break. A variant that keeps all,
/// or none, is then listed, too.
pub(crate) fn under_limit(
    steps: &[StepFacts],
    cells: &[Cell],
    own: &[(MetricId, f64)],
) -> Vec<UnderLimit> {
    let mut variants: Vec<usize> = cells.iter().map(|cell| cell.variant).collect();
    variants.dedup();
    let mut all = Vec::new();
    for metric in [metrics::RESPONSE_P95, metrics::RESPONSE_P99] {
        for closed in [true, false] {
            let levels: Vec<(usize, Vec<Level<'_>>)> = variants
                .iter()
                .map(|&variant| (variant, levels(steps, cells, (variant, metric, closed))))
                .filter(|(_, levels)| levels.len() >= 2)
                .collect();
            let own_bounds: Vec<f64> =
                own.iter().filter(|(of, _)| *of == metric).map(|(_, bound)| *bound).collect();
            let is_own = |bound: f64| own_bounds.iter().any(|own| own.total_cmp(&bound).is_eq());
            let others = bounds().filter(|bound| !is_own(*bound));
            for bound_us in own_bounds.iter().copied().chain(others) {
                let found: Vec<UnderLimit> = levels
                    .iter()
                    .map(|(variant, levels)| most(levels, (*variant, metric, closed), bound_us))
                    .collect();
                let parts = |one: &UnderLimit| one.step.is_some() && one.next_broken.is_some();
                if is_own(bound_us) || found.iter().any(parts) {
                    all.extend(found);
                }
            }
        }
    }
    all
}

fn bounds() -> impl Iterator<Item = f64> {
    BOUNDS.flat_map(|power| [1.0, 2.0, 5.0].map(|first| first * 10_f64.powi(power)))
}

/// The lightest first, without searches and the workload's own steps.
fn levels<'a>(
    steps: &[StepFacts],
    cells: &'a [Cell],
    (variant, metric, closed): (usize, MetricId, bool),
) -> Vec<Level<'a>> {
    let level = |cell: &'a Cell| {
        let step = &steps[cell.step];
        let is_level = step.search.is_none()
            && step.own.is_none()
            && step.rate.is_none() == closed
            && cell.variant == variant;
        Some(Level {
            step: cell.step,
            load: step.rate.unwrap_or(step.clients as f64),
            response: cell.metrics.get(&metric).filter(|_| is_level)?,
            throughput: cell.metrics.get(&metrics::THROUGHPUT),
        })
    };
    let mut levels: Vec<Level<'_>> = cells.iter().filter_map(level).collect();
    levels.sort_by(|a, b| a.load.total_cmp(&b.load));
    levels
}

/// Heaviest before the first that breaks the limit.
fn most(
    levels: &[Level<'_>],
    (variant, metric, closed): (usize, MetricId, bool),
    bound_us: f64,
) -> UnderLimit {
    let kept = levels.iter().take_while(|level| level.response.value <= bound_us).count();
    let last = kept.checked_sub(1).map(|idx| &levels[idx]);
    UnderLimit {
        variant,
        metric,
        bound_us,
        closed,
        step: last.map(|level| level.step),
        load: last.map(|level| level.load),
        surely: last.is_some_and(|l| l.response.high.is_some_and(|high| high <= bound_us)),
        throughput: last.and_then(|level| level.throughput.cloned()),
        next_broken: levels.get(kept).map(|level| level.load),
    }
}

#[cfg(test)]
mod tests {
    use super::UnderLimit;
    use crate::fixtures::{run, wobble};
    use crate::{Options, analyse, metrics};

    #[test]
    fn most_threads_under_twenty_milliseconds() {
        // The fixture's p95 is about 1.9 times the mean.
        let clients = [1, 2, 4, 8, 16, 32];
        let mean_ms = [[2.0, 2.1, 3.0, 6.0, 14.0, 40.0], [3.0, 3.5, 8.0, 30.0, 60.0, 120.0]];
        let rate = |variant: usize, step: usize, repetition: u32| {
            let ms = mean_ms[variant][step] * wobble(variant, step, repetition);
            clients[step] as f64 / ms * 1e3
        };
        let found = analyse(&[run(&["a", "b"], &clients, 3, rate)], &Options::default());
        let at = |variant: usize| -> &UnderLimit {
            let is_it = |u: &&UnderLimit| {
                (u.variant, u.metric, u.bound_us) == (variant, metrics::RESPONSE_P95, 20_000.0)
            };
            found.under_limit.iter().find(is_it).expect("20 ms part the levels")
        };
        assert_eq!((at(0).load, at(0).next_broken), (Some(8.0), Some(16.0)));
        assert_eq!((at(1).load, at(1).next_broken), (Some(4.0), Some(8.0)));
        assert!(at(0).surely && at(0).closed);
        assert!((at(0).throughput.as_ref().unwrap().value / 1_333.0 - 1.0).abs() < 0.02);
        // Limits that nothing breaks, or nothing keeps, are not listed.
        assert!(found.under_limit.iter().all(|u| u.bound_us > 1_000.0 && u.bound_us < 1e6));
    }

    #[test]
    fn the_limit_of_the_study_is_listed_whatever_it_parts() {
        let mut run = run(&["a"], &[4, 8], 3, |_, _, _| 1000.0);
        let limits = |run: &dyno_record::Run| -> Vec<(f64, Option<f64>)> {
            let found = analyse(std::slice::from_ref(run), &Options::default()).under_limit;
            found.iter().map(|one| (one.bound_us, one.load)).collect()
        };
        assert_eq!(limits(&run), [(10_000.0, Some(4.0)), (10_000.0, Some(4.0))]);
        run.manifest.requirements = vec![dyno_record::RequirementRecord {
            text: "p99 ≤ 3 s".to_owned(),
            measure: "p99".to_owned(),
            bound: 3e6,
            is_in_own_unit: false,
            is_least: None,
        }];
        assert!(limits(&run).contains(&(3e6, Some(8.0))), "{:?}", limits(&run));
    }

    #[test]
    fn one_level_has_no_most() {
        let found = analyse(&[run(&["a"], &[4], 3, |_, _, _| 100.0)], &Options::default());
        assert_eq!(found.under_limit, []);
    }
}
