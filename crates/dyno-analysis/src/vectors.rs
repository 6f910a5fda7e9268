//! Vector searches: recall against queries a second, and the step with a study's recall.

use dyno_record::VariantRecord;
use dyno_units::MetricId;
use serde::{Deserialize, Serialize};

use crate::join::Joined;
use crate::{Cell, Estimate, metrics};

pub(crate) const WORKLOAD: &str = "vectors";

const RECALL: MetricId = MetricId::new("vectors.recall");
const SEARCH: MetricId = MetricId::new("vectors.search");
const INDEX_SIZE: MetricId = MetricId::new("vectors.index_size");
const INDEX_MEMORY: MetricId = MetricId::new("vectors.index_memory");

/// The workload's default.
const RECALL_ASKED: f64 = 0.95;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VectorFacts {
    pub variant: usize,
    pub recall_asked: f64,
    /// `ef_search` or `probes`.
    pub parameter: String,
    /// By the index, in the order of the steps.
    pub points: Vec<VectorPoint>,
    /// Of the whole table.
    pub exact: Option<VectorPoint>,
    /// Fastest of `points` whose recall (the lower end of its interval, if any) is enough.
    pub reached: Option<usize>,
    /// In microseconds.
    pub build: Option<Estimate>,
    /// On disk, in bytes.
    pub index_size: Option<Estimate>,
    /// Most memory of the server meanwhile, in bytes.
    pub index_memory: Option<Estimate>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VectorPoint {
    pub step: usize,
    /// Search parameter; `None` for scans.
    pub search: Option<f64>,
    /// Share of the nearest neighbours found.
    pub recall: Estimate,
    /// Queries a second, of all clients.
    pub rate: Estimate,
}

pub(crate) fn vectors(joined: &Joined<'_>, cells: &[Cell]) -> Vec<VectorFacts> {
    let of_variant = |(variant, record): (usize, &VariantRecord)| {
        let own: Vec<&Cell> = cells.iter().filter(|cell| cell.variant == variant).collect();
        (record.workload == WORKLOAD && !own.is_empty()).then(|| facts(variant, record, &own))
    };
    joined.variants.iter().enumerate().filter_map(of_variant).collect()
}

fn facts(variant: usize, record: &VariantRecord, cells: &[&Cell]) -> VectorFacts {
    let option = |name: &str| record.options.get(name).map(String::as_str);
    let recall_asked = option("recall").and_then(|text| text.parse().ok()).unwrap_or(RECALL_ASKED);
    let parameter = if option("index") == Some("ivfflat") { "probes" } else { "ef_search" };
    let point = |cell: &&&Cell| {
        Some(VectorPoint {
            step: cell.step,
            // The same whole number in all trials, but for rounding of the mean.
            search: cell.metrics.get(&SEARCH).map(|estimate| estimate.value.round()),
            recall: cell.metrics.get(&RECALL)?.clone(),
            rate: cell.metrics.get(&metrics::THROUGHPUT)?.clone(),
        })
    };
    let (points, scans): (Vec<VectorPoint>, Vec<VectorPoint>) =
        cells.iter().filter_map(|cell| point(&cell)).partition(|point| point.search.is_some());
    let reached = points.iter().enumerate().filter(|(_, point)| has_recall(point, recall_asked));
    let reached = reached.max_by(|a, b| a.1.rate.value.total_cmp(&b.1.rate.value));
    let build = cells.iter().find(|cell| cell.metrics.contains_key(&INDEX_SIZE));
    // Without a known size, the step that ends by quota.
    let build =
        build.or_else(|| cells.iter().find(|c| c.metrics.contains_key(&metrics::STEP_TIME)));
    let of_build = |id: MetricId| build.and_then(|cell| cell.metrics.get(&id)).cloned();
    VectorFacts {
        variant,
        recall_asked,
        parameter: parameter.to_owned(),
        reached: reached.map(|(idx, _)| idx),
        points,
        exact: scans.into_iter().next(),
        build: of_build(metrics::STEP_TIME),
        index_size: of_build(INDEX_SIZE),
        index_memory: of_build(INDEX_MEMORY),
    }
}

impl VectorFacts {
    pub fn has_recall(&self, point: &VectorPoint) -> bool {
        has_recall(point, self.recall_asked)
    }
}

/// Several steps near the requested recall exceed it by chance, so the mean is not enough.
fn has_recall(point: &VectorPoint, asked: f64) -> bool {
    let least = match point.recall.n {
        1 => Some(point.recall.value),
        _ => point.recall.low,
    };
    // Equal values have an interval without width, whose ends are rounded.
    least.is_some_and(|least| least >= asked * (1.0 - 1e-9))
}

/// Three digits, rounded down: 1.000 means all neighbours.
pub fn recall_text(recall: f64) -> String {
    // A mean of ones may miss one by rounding.
    let thousandths = (recall * 1000.0 + 1e-6).floor();
    format!("{:.3}", thousandths / 1000.0)
}

#[cfg(test)]
pub(crate) mod tests {
    use dyno_record::Run;
    use dyno_units::Direction::{Higher, Lower, Neither};
    use dyno_units::{Unit, metric};

    use super::*;
    use crate::fixtures::run;
    use crate::{Findings, Options, analyse};

    /// Steps exact, index, search 1 and search 2, with these recalls of the searches.
    pub(crate) fn run_of(recalls: [[f64; 2]; 2], rates: [[f64; 2]; 2]) -> Run {
        let mut run = run(&["pg", "maria"], &[2, 2, 2, 2], 3, |variant, step, repetition| {
            let noise = 1.0 + 0.01 * f64::from(repetition);
            if step < 2 { 50.0 * noise } else { rates[variant][step - 2] * noise }
        });
        for variant in &mut run.manifest.variants {
            variant.workload = WORKLOAD.to_owned();
            variant.options.insert("recall".to_owned(), "0.95".to_owned());
        }
        let names = ["exact", "index", "search 1", "search 2"];
        for (step, name) in run.manifest.steps.iter_mut().zip(names) {
            step.name = name.to_owned();
            step.own = Some(dyno_record::OwnStepRecord {
                roles: Vec::new(),
                ends_by_quota: name == "index",
                settle_s: 0.0,
            });
        }
        for trial in &mut run.trials {
            trial.metrics = vec![
                metric("vectors.recall", Unit::Number, Higher, "recall", "x").secondary(),
                metric("vectors.search", Unit::Number, Neither, "search parameter", "x"),
                metric("vectors.index_size", Unit::Bytes, Lower, "index size", "x").secondary(),
            ];
            for (idx, step) in trial.steps.iter_mut().enumerate() {
                match idx {
                    0 => step.figures.extend([(RECALL, 1.0)]),
                    1 => {
                        step.ended_by = Some("quota".to_owned());
                        step.figures.extend([(INDEX_SIZE, 8e7)]);
                    }
                    _ => {
                        let recall = recalls[trial.variant][idx - 2];
                        step.figures.extend([(RECALL, recall), (SEARCH, 10.0 * idx as f64)]);
                    }
                }
            }
        }
        run
    }

    pub(crate) fn findings(recalls: [[f64; 2]; 2], rates: [[f64; 2]; 2]) -> Findings {
        analyse(&[run_of(recalls, rates)], &Options::default())
    }

    #[test]
    fn the_fastest_search_with_enough_recall_is_taken() {
        let recalls = [[0.96, 0.99], [0.7, 0.94]];
        let found = findings(recalls, [[2000.0, 1000.0], [3000.0, 900.0]]).vectors;
        assert_eq!([found[0].reached, found[1].reached], [Some(0), None]);
        assert_eq!(found[0].points[1].search, Some(30.0));
        let exact = found[1].exact.as_ref().map(|exact| exact.recall.value);
        assert_eq!(exact, Some(1.0));
        assert_eq!(found[0].index_size.as_ref().map(|size| size.value), Some(8e7));
        let build = found[0].build.as_ref().map(|time| time.value.round());
        assert_eq!(build, Some(10e6));
        // Neither the one with the most recall nor the first.
        let found = findings([[0.96, 0.99]; 2], [[900.0, 1000.0]; 2]).vectors;
        assert_eq!(found[0].reached, Some(1));
    }

    #[test]
    fn runs_of_other_workloads_have_none() {
        let mut run = run_of([[0.9; 2]; 2], [[100.0; 2]; 2]);
        run.manifest.variants.iter_mut().for_each(|variant| variant.workload = "tpcb".to_owned());
        assert_eq!(analyse(&[run], &Options::default()).vectors, []);
    }

    #[test]
    fn recall_is_never_rounded_up() {
        let texts = [1.0, 0.99996, 0.95, 0.9499].map(recall_text);
        assert_eq!(texts, ["1.000", "0.999", "0.950", "0.949"]);
    }
}
