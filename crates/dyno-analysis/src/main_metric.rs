//! The main metric of a step: the one number that the answer, the verdict shown first, sequential
//! stopping and the gate all go by. Every other metric describes.

use dyno_record::{StepRecord, VariantRecord};

use crate::Metric;

/// The main metric of a step that these variants run.
///
/// * a search: what it found, the sustained rate or number of clients;
/// * a step that all variants end by quota: the time it took;
/// * open load: p95 response time, because throughput there is the offered rate;
/// * closed load: throughput.
pub(crate) fn main_metric(step: &StepRecord, variants: &[VariantRecord]) -> Metric {
    let ends_by_quota =
        |variant: &VariantRecord| step.own_of(variant).is_some_and(|own| own.ends_by_quota);
    match (&step.search, step.rate) {
        (Some(search), _) => crate::searches::metric(search),
        _ if variants.iter().all(ends_by_quota) => Metric::StepTime,
        (None, Some(_)) => Metric::ResponseP95,
        (None, None) => Metric::Throughput,
    }
}

#[cfg(test)]
mod tests {
    use dyno_record::{OwnStepRecord, SearchRecord};

    use super::*;
    use crate::fixtures::{make_open, run};

    #[track_caller]
    fn check(change: impl Fn(&mut dyno_record::Run), expected: Metric) {
        let mut run = run(&["a", "b"], &[4], 3, |_, _, _| 100.0);
        change(&mut run);
        let found = main_metric(&run.manifest.steps[0], &run.manifest.variants);
        assert_eq!(found, expected);
        // What findings carry to every reader is the same.
        let findings = crate::analyse(&[run], &crate::Options::default());
        assert_eq!(findings.steps[0].main_metric, expected);
    }

    fn search(sought: &str) -> SearchRecord {
        let text = format!(
            r#"{{"sought":"{sought}","statistic":"p99","bound_us":20000.0,"limit":"p99 ≤ 20 ms",
                "precision":0.03}}"#
        );
        serde_json::from_str(&text).expect("it is a search")
    }

    #[test]
    fn each_kind_of_load_has_its_own() {
        check(|_| (), Metric::Throughput);
        check(make_open, Metric::ResponseP95);
        check(|run| run.manifest.steps[0].search = Some(search("rate")), Metric::RateAtLimit);
        check(|run| run.manifest.steps[0].search = Some(search("clients")), Metric::ClientsAtLimit);
    }

    #[test]
    fn a_quota_counts_where_all_variants_have_it() {
        let own =
            |ends_by_quota: bool| OwnStepRecord { roles: Vec::new(), ends_by_quota, settle_s: 0.0 };
        check(|run| run.manifest.steps[0].own = Some(own(true)), Metric::StepTime);
        let mixed = |run: &mut dyno_record::Run| {
            let name = run.manifest.steps[0].name.clone();
            run.manifest.steps[0].own = Some(own(true));
            run.manifest.variants[1].own_steps.insert(name, own(false));
        };
        check(mixed, Metric::Throughput);
    }
}
