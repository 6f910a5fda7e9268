//! Vector searches: queries a second at the requested recall, and cost of the index.

use super::{AnswerWriter, At, Standing};
use crate::metrics;
use crate::numbers::{Unit, interval, value};
use crate::vectors::{VectorFacts, VectorPoint, recall_text};
use crate::words::{ci, ci_of, list};

const NAMED_MOST: usize = 4;

impl AnswerWriter<'_> {
    pub(super) fn vectors(&self) -> Option<(String, Vec<String>)> {
        let mut all: Vec<&VectorFacts> =
            self.findings.vectors.iter().filter(|facts| !facts.points.is_empty()).collect();
        let first = all.first()?;
        let recall = first.recall_asked;
        if all.iter().any(|facts| facts.recall_asked.total_cmp(&recall).is_ne()) {
            return None;
        }
        all.sort_by(|a, b| speed(b).total_cmp(&speed(a)));
        let mut lines: Vec<String> =
            [self.bounds(&all), self.missed(&all), self.built(&all), self.sizes(&all)]
                .into_iter()
                .flatten()
                .collect();
        lines.extend(self.scans(&all));
        Some((self.at_recall(&all, recall), lines))
    }

    /// `At a recall of 0.95 or more, pg answers 2,100 queries/s (ef_search 40, recall 0.962) and …`
    fn at_recall(&self, all: &[&VectorFacts], recall: f64) -> String {
        let asked = recall;
        let reached: Vec<(usize, &VectorPoint, String)> = all
            .iter()
            .filter_map(|facts| {
                let point = &facts.points[facts.reached?];
                let with = format!("{}, recall {}", searched(facts, point), found(point));
                Some((facts.variant, point, with))
            })
            .collect();
        let part = |(variant, point, with): &(usize, &VectorPoint, String)| {
            let rate = Unit::Count.show(point.rate.value);
            format!("{} {rate} queries/s ({with})", self.name(*variant))
        };
        let missed: Vec<&str> = all
            .iter()
            .filter(|facts| facts.reached.is_none())
            .map(|facts| self.name(facts.variant))
            .collect();
        let not_reached = match missed.as_slice() {
            [] => String::new(),
            names if names.len() > NAMED_MOST => {
                format!("; {} other variants are not shown to reach it", names.len())
            }
            [only] => format!("; {only} is not shown to reach it"),
            names => format!("; {} are not shown to reach it", list(names)),
        };
        match reached.as_slice() {
            [] => format!("No search is shown to reach a recall of {asked}."),
            [only] => format!("At a recall of {asked} or more: {}{not_reached}.", part(only)),
            [first, others @ ..] => {
                let rest: Vec<String> = others.iter().take(NAMED_MOST - 1).map(part).collect();
                let n_more = others.len() - rest.len();
                let more = if n_more > 0 { format!("; {n_more} more") } else { String::new() };
                let ahead = match self.is_fastest(first.0, all) {
                    true => format!("{} is fastest", self.name(first.0)),
                    false => "undecided which is fastest".to_owned(),
                };
                format!(
                    "At a recall of {asked} or more, {ahead}: {}; {}{more}{not_reached}.",
                    part(first),
                    rest.join("; ")
                )
            }
        }
    }

    /// Ahead of all searches of all others that have enough recall.
    fn is_fastest(&self, variant: usize, all: &[&VectorFacts]) -> bool {
        let at = |facts: &VectorFacts, point: &VectorPoint| At {
            variant: facts.variant,
            step: point.step,
            log_factor: 0.0,
        };
        let good = |facts: &&VectorFacts| -> Vec<At> {
            facts
                .points
                .iter()
                .filter(|point| facts.has_recall(point))
                .map(|p| at(facts, p))
                .collect()
        };
        let Some(own) = all.iter().find(|facts| facts.variant == variant) else { return false };
        let Some(reached) = own.reached else { return false };
        let first = (at(own, &own.points[reached]), good(own).len());
        let rest = all.iter().filter(|facts| facts.variant != variant);
        let others: Vec<At> = rest.flat_map(good).collect();
        self.ranker.stand_against(metrics::THROUGHPUT, first, &others) == Standing::Behind
    }

    fn bounds(&self, all: &[&VectorFacts]) -> Option<String> {
        let confidence = self.findings.confidence;
        let part = |facts: &&VectorFacts| {
            let rate = &facts.points[facts.reached?].rate;
            Some(format!("{} {}", self.name(facts.variant), ci(rate, confidence, interval(rate))))
        };
        let parts: Vec<String> = all.iter().filter_map(part).take(NAMED_MOST).collect();
        (!parts.is_empty()).then(|| {
            let text = "Each is the fastest measured step whose recall is at least that by its whole CI, \
                        without interpolation";
            format!("{text}: {}.", parts.join("; "))
        })
    }

    fn missed(&self, all: &[&VectorFacts]) -> Option<String> {
        let best = |facts: &&&VectorFacts| {
            let by_recall =
                |a: &&VectorPoint, b: &&VectorPoint| a.recall.value.total_cmp(&b.recall.value);
            let point = facts.points.iter().max_by(by_recall)?;
            let interval = match interval(&point.recall) {
                Some(interval) if point.recall.low != point.recall.high => {
                    format!(", {} CI {interval}", crate::words::share(self.findings.confidence))
                }
                _ => String::new(),
            };
            Some(format!(
                "{} {}{interval} ({}, {} queries/s)",
                self.name(facts.variant),
                found(point),
                searched(facts, point),
                Unit::Count.show(point.rate.value)
            ))
        };
        let missed = all.iter().filter(|facts| facts.reached.is_none());
        let parts: Vec<String> = missed.filter_map(|facts| best(&facts)).take(NAMED_MOST).collect();
        (!parts.is_empty())
            .then(|| format!("Highest recall of those not shown to reach it: {}.", list(&parts)))
    }

    fn built(&self, all: &[&VectorFacts]) -> Option<String> {
        let text = |facts: &&VectorFacts| {
            let time = facts.build.as_ref()?;
            let bounds = ci_of(time, self.findings.confidence);
            Some(format!("{} in {} ({bounds})", self.name(facts.variant), value(time)))
        };
        let parts: Vec<String> = all.iter().filter_map(text).take(NAMED_MOST).collect();
        (!parts.is_empty()).then(|| format!("Index built: {}.", list(&parts)))
    }

    fn sizes(&self, all: &[&VectorFacts]) -> Option<String> {
        let text = |facts: &&VectorFacts| {
            let size = facts.index_size.as_ref()?;
            let memory = facts.index_memory.as_ref().map_or(String::new(), |memory| {
                format!(" (server memory while it was built: {})", value(memory))
            });
            Some(format!("{} {}{memory}", self.name(facts.variant), value(size)))
        };
        let parts: Vec<String> = all.iter().filter_map(text).take(NAMED_MOST).collect();
        (!parts.is_empty()).then(|| format!("Index on disk: {}.", list(&parts)))
    }

    fn scans(&self, all: &[&VectorFacts]) -> Option<String> {
        let text = |facts: &&VectorFacts| {
            let exact = facts.exact.as_ref()?;
            let rate = Unit::Count.show(exact.rate.value);
            Some(format!("{} {rate} queries/s, recall {}", self.name(facts.variant), found(exact)))
        };
        let parts: Vec<String> = all.iter().filter_map(text).take(NAMED_MOST).collect();
        (!parts.is_empty()).then(|| format!("Exact scans without the index: {}.", parts.join("; ")))
    }
}

/// At the requested recall; below all others if not reached.
fn speed(facts: &VectorFacts) -> f64 {
    facts.reached.map_or(-1.0, |idx| facts.points[idx].rate.value)
}

/// `ef_search 40`
fn searched(facts: &VectorFacts, point: &VectorPoint) -> String {
    format!("{} {}", facts.parameter, point.search.unwrap_or(0.0))
}

fn found(point: &VectorPoint) -> String {
    recall_text(point.recall.value)
}

#[cfg(test)]
mod tests {
    use crate::vectors::tests::findings;

    #[track_caller]
    fn check(recalls: [[f64; 2]; 2], rates: [[f64; 2]; 2], expected: &str) {
        assert_eq!(findings(recalls, rates).answer.headline, expected);
    }

    #[test]
    fn the_headline_is_about_the_recall_that_is_asked_for() {
        check(
            [[0.8, 0.97], [0.9, 0.96]],
            [[4000.0, 2000.0], [3000.0, 1000.0]],
            "At a recall of 0.95 or more, pg is fastest: pg 2,020 queries/s (ef_search 30, recall 0.970); \
             maria 1,010 queries/s (ef_search 30, recall 0.960).",
        );
        check(
            [[0.8, 0.97], [0.9, 0.96]],
            [[4000.0, 1000.0], [3000.0, 1001.0]],
            "At a recall of 0.95 or more, undecided which is fastest: maria 1,010 queries/s (ef_search 30, recall \
             0.960); pg 1,010 queries/s (ef_search 30, recall 0.970).",
        );
        check(
            [[0.8, 0.97], [0.9, 0.94]],
            [[4000.0, 2000.0], [3000.0, 1000.0]],
            "At a recall of 0.95 or more: pg 2,020 queries/s (ef_search 30, recall 0.970); maria is not \
             shown to reach it.",
        );
        check([[0.8; 2]; 2], [[4000.0; 2]; 2], "No search is shown to reach a recall of 0.95.");
    }

    #[test]
    fn the_lines_say_what_the_index_costs() {
        let answer = findings([[0.8, 0.97], [0.9, 0.94]], [[4e3, 2e3], [3e3, 1e3]]).answer;
        let has = |part: &str| {
            assert!(answer.lines.iter().any(|line| line.contains(part)), "{answer:#?}")
        };
        has("without interpolation: pg 95 % CI");
        has(
            "Highest recall of those not shown to reach it: maria 0.940 (ef_search 30, 1,010 queries/s).",
        );
        has("Index built: pg in 10.0 s (");
        has("Index on disk: pg 80.0 MB and maria 80.0 MB.");
        has("Exact scans without the index: pg 50.5 queries/s, recall 1.000; maria");
    }
}
