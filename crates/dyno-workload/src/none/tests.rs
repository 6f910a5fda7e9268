//! Plans of `none`: pure.

use std::collections::BTreeMap;

use dyno_model::StepRequest;
use dyno_units::{Nanoseconds, Seed};

use super::*;

fn planned(given: &[(&str, &str)], seconds: u64) -> Result<Arc<dyn Workload>, PlanError> {
    let given: BTreeMap<String, String> =
        given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let request = StepRequest { clients: 1, duration: Nanoseconds::from_secs(seconds) };
    spec().plan(&given, request, Seed(1))
}

#[test]
fn it_is_one_step_in_which_nobody_sends_anything() {
    let workload = planned(&[], 7).unwrap();
    let [step] = workload.steps() else { panic!("it has one step") };
    assert_eq!((&*step.name, step.limit), ("observe", Nanoseconds::from_secs(7)));
    assert_eq!((step.connections(), step.ends_by_quota()), (0, false));
    assert!(
        workload.kinds().is_empty()
            && workload.outline().makes_nothing
            && !workload.outline().needs_rows
    );
    for dialect in Dialect::ALL {
        assert!(workload.check(dialect).is_ok() && workload.tables(dialect).is_empty());
        assert!(workload.audit_queries(dialect).is_empty());
    }
}

#[test]
fn how_often_and_what_is_observed_are_options() {
    let check = |given: &[(&str, &str)], every: Nanoseconds, process: Option<i32>| {
        let observation = planned(given, 7).unwrap().outline().observation;
        assert_eq!(observation, Some(Observation { every, process }), "{given:?}");
    };
    check(&[], Nanoseconds::SECOND, None);
    check(&[("every", "1min"), ("pid", "4711")], Nanoseconds::from_secs(60), Some(4711));
    let refused = |given: (&str, &str), expected: &str| {
        let Err(error) = planned(&[given], 7) else { panic!("{given:?} is taken") };
        assert!(error.to_string().contains(expected), "{error}");
    };
    refused(("every", "10ms"), "option `every`: must be at least 1 s, not 10ms");
    refused(("every", "soon"), "option `every`: ");
    refused(("pid", "4294967296"), "option `pid`: there is no such process");
}
