//! Vector searches: queries a second at the requested recall, and cost of the index.

use super::grammar::Said;
use super::{AnswerWriter, At, Standing};
use crate::numbers::{Unit, interval, value};
use crate::vectors::{VectorFacts, VectorPoint, recall_text};
use crate::words::{joined, list, more, said, share};
use crate::{Claim, metrics};

const NAMED_MOST: usize = 4;

const WITHOUT_INTERPOLATION: &str = "Each is the fastest measured step whose recall is at least that by \
    its whole CI, without interpolation";

impl AnswerWriter<'_> {
    pub(super) fn vectors(&self) -> Option<(Said, Vec<String>)> {
        let mut all: Vec<&VectorFacts> =
            self.findings.vectors.iter().filter(|facts| !facts.points.is_empty()).collect();
        let recall = all.first()?.recall_asked;
        if all.iter().any(|facts| facts.recall_asked.total_cmp(&recall).is_ne()) {
            return None;
        }
        all.sort_by(|a, b| speed(b).total_cmp(&speed(a)));
        let each = |part: &dyn Fn(&VectorFacts) -> Option<String>| -> Vec<String> {
            let text = |facts: &&VectorFacts| {
                Some(format!("{} {}", self.name(facts.variant), part(facts)?))
            };
            all.iter().filter_map(text).take(NAMED_MOST).collect()
        };
        let bounds = each(&|facts| Some(self.ci_of(&facts.points[facts.reached?].rate)));
        let missed = each(&|facts| self.most_recall(facts).filter(|_| facts.reached.is_none()));
        let built = each(&|facts| {
            let time = facts.build.as_ref()?;
            Some(format!("in {} ({})", value(time), self.ci_of(time)))
        });
        let sizes = each(&|facts| {
            let memory = facts.index_memory.as_ref().map_or(String::new(), |memory| {
                format!(" (server memory while it was built: {})", value(memory))
            });
            Some(format!("{}{memory}", value(facts.index_size.as_ref()?)))
        });
        let scans = each(&|facts| {
            let exact = facts.exact.as_ref()?;
            Some(format!("{}, recall {}", queries(exact), found(exact)))
        });
        let lines = [
            said(WITHOUT_INTERPOLATION, &joined(bounds, "; ")),
            said("Highest recall of those not shown to reach it", &list(missed)),
            said("Index built", &list(built)),
            said("Index on disk", &list(sizes)),
            said("Exact scans without the index", &joined(scans, "; ")),
        ];
        let claims = self.claims_at_recall(all[0], &all[1..]);
        let text = self.at_recall(&all, recall, claims.as_deref());
        Some((Said::of(claims.into_iter().flatten(), text), lines.into_iter().flatten().collect()))
    }

    /// `At a recall of 0.95 or more, pg answers 2,100 queries/s (ef_search 40, recall 0.962) and …`
    fn at_recall(&self, all: &[&VectorFacts], asked: f64, claims: Option<&[Claim]>) -> String {
        let part = |facts: &&VectorFacts| {
            let point = &facts.points[facts.reached?];
            let (rate, with, found) = (queries(point), searched(facts, point), found(point));
            Some(format!("{} {rate} ({with}, recall {found})", self.name(facts.variant)))
        };
        let reached: Vec<String> = all.iter().filter_map(part).collect();
        let missed = all.iter().filter(|facts| facts.reached.is_none());
        let missed: Vec<&str> = missed.map(|facts| self.name(facts.variant)).collect();
        let not_reached = match missed.as_slice() {
            [] => String::new(),
            [only] => format!("; {only} is not shown to reach it"),
            names if names.len() > NAMED_MOST => {
                format!("; {} other variants are not shown to reach it", names.len())
            }
            names => format!("; {} are not shown to reach it", list(names)),
        };
        let is_once = |facts: &&VectorFacts| {
            facts.reached.is_some_and(|reached| facts.points[reached].recall.n == 1)
        };
        let once = match all.iter().any(is_once) {
            true => " (by one repetition, which cannot show it)",
            false => "",
        };
        match reached.as_slice() {
            [] => format!("No search is shown to reach a recall of {asked}."),
            [only] => format!("At a recall of {asked} or more{once}: {only}{not_reached}."),
            several => {
                // The fastest is first.
                let ahead = match claims.map(Standing::of_all) {
                    Some(Standing::Behind) => format!("{} is fastest", self.name(all[0].variant)),
                    Some(Standing::Single) => {
                        "one repetition cannot show which is fastest".to_owned()
                    }
                    _ => "undecided which is fastest".to_owned(),
                };
                let named = joined(several.iter().take(NAMED_MOST), "; ");
                let more = more(several.len().saturating_sub(NAMED_MOST), "; ");
                format!(
                    "At a recall of {asked} or more{once}, {ahead}: {named}{more}{not_reached}."
                )
            }
        }
    }

    /// The fastest search with enough recall of one against all such searches of all others; none without one.
    fn claims_at_recall(&self, own: &VectorFacts, others: &[&VectorFacts]) -> Option<Vec<Claim>> {
        let at = |facts: &VectorFacts, point: &VectorPoint| At {
            variant: facts.variant,
            step: point.step,
            log_factor: 0.0,
        };
        let good = |facts: &VectorFacts| -> Vec<At> {
            let good = facts.points.iter().filter(|point| facts.has_recall(point));
            good.map(|point| at(facts, point)).collect()
        };
        let first = (at(own, &own.points[own.reached?]), good(own).len());
        let others: Vec<At> = others.iter().flat_map(|facts| good(facts)).collect();
        self.ranker.claims_across(metrics::THROUGHPUT, first, &others)
    }

    fn most_recall(&self, facts: &VectorFacts) -> Option<String> {
        let by_recall =
            |a: &&VectorPoint, b: &&VectorPoint| a.recall.value.total_cmp(&b.recall.value);
        let point = facts.points.iter().max_by(by_recall)?;
        let interval = interval(&point.recall).filter(|_| point.recall.low != point.recall.high);
        let interval = interval.map_or(String::new(), |interval| {
            format!(", {} CI {interval}", share(self.findings.confidence))
        });
        let (found, searched) = (found(point), searched(facts, point));
        Some(format!("{found}{interval} ({searched}, {})", queries(point)))
    }
}

/// At the requested recall; below all others if not reached.
fn speed(facts: &VectorFacts) -> f64 {
    facts.reached.map_or(-1.0, |idx| facts.points[idx].rate.value)
}

/// `2,100 queries/s`
fn queries(point: &VectorPoint) -> String {
    format!("{} queries/s", Unit::Count.show(point.rate.value))
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
    use crate::Claim;
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
    fn the_fastest_search_is_compared_with_each_other_one_that_has_the_recall() {
        let rates = [[4000.0, 2000.0], [3000.0, 1000.0]];
        let claims = findings([[0.8, 0.97], [0.96, 0.97]], rates).answer.claims;
        let of = |one: &Claim| (one.variant, one.other, one.steps.clone(), one.other_steps.clone());
        let found: Vec<_> = claims.iter().map(of).collect();
        assert_eq!(found, [(1, 0, vec![2], vec![3])]);
        assert!(claims[0].relative.n == 3 && claims[0].relative.low.is_some(), "{claims:#?}");
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
