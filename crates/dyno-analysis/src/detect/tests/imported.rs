//! Results of other tools.

use dyno_record::{EncodedHistogram, ImportedFrom, new_histogram};

use crate::fixtures::run;
use crate::metrics::{RESPONSE_P99, THROUGHPUT};
use crate::{CaveatKind, Options, analyse};

#[test]
fn records_of_hammerdb_that_were_read_wrongly_are_told() {
    let check = |tool: &str, has_both: bool, expected: bool| {
        let mut run = run(&["old"], &[4], 3, |_, _, _| 1_000.0);
        for step in run.trials.iter_mut().flat_map(|trial| &mut trial.steps) {
            let (tool, place) = (tool.to_owned(), "a.log".to_owned());
            step.imported = Some(ImportedFrom { tool, place });
            let tpm = dyno_units::MetricId::parse("hammerdb.tpm").expect("an id");
            step.figures.extend(has_both.then_some((tpm, 60_000.0)));
        }
        let caveats = analyse(&[run], &Options::default()).caveats;
        let mut told = caveats.iter().filter(|one| one.kind == CaveatKind::Imported);
        assert_eq!(told.any(|one| one.message.contains("import its logs again")), expected);
    };
    check("HammerDB 3.2", false, true);
    check("HammerDB 3.2", true, false);
    check("HammerDB 4.12", true, false);
    check("sysbench 1.0.20", false, false);
}

#[test]
fn imported_results_have_a_caveat_and_no_times_that_were_not_printed() {
    let mut run =
        run(&["old", "new"], &[4], 3, |variant, _, _| if variant == 0 { 1_000.0 } else { 1_200.0 });
    run.manifest.order = "sequential".to_owned();
    for step in run.trials.iter_mut().flat_map(|trial| &mut trial.steps) {
        let (tool, place) = ("sysbench 1.0.20".to_owned(), "a.log".to_owned());
        step.imported = Some(ImportedFrom { tool, place });
        for kind in &mut step.kinds {
            kind.response = EncodedHistogram::encode(&new_histogram());
            kind.service = kind.response.clone();
        }
    }
    let findings = analyse(&[run], &Options::default());
    let kinds: Vec<CaveatKind> = findings.caveats.iter().map(|one| one.kind).collect();
    assert!(kinds.contains(&CaveatKind::Imported), "{kinds:?}");
    let others = [CaveatKind::SequentialOrder, CaveatKind::ShortMeasurement];
    assert!(others.iter().all(|other| !kinds.contains(other)), "{kinds:?}");
    let metrics = &findings.cells[0].metrics;
    assert!(metrics.contains_key(&THROUGHPUT) && !metrics.contains_key(&RESPONSE_P99));
    let absent = &findings.cells[0].absent;
    assert!(absent.is_empty(), "{absent:?}");
}
