//! Results of other tools: little is known of how they were measured.

use crate::join::Joined;
use crate::words::list;
use crate::{Caveat, CaveatKind, Findings};

use super::{caveat_at, places};

pub fn is_imported(findings: &Findings) -> bool {
    findings.caveats.iter().any(|caveat| caveat.kind == CaveatKind::Imported)
}

pub(super) fn are_all(joined: &Joined<'_>) -> bool {
    let all = places(joined);
    !all.is_empty() && all.iter().all(|place| place.summary.imported.is_some())
}

const TRANSACTIONS: &str = " Of HammerDB before version 4.0, an earlier version of Dyno has read transactions \
    a minute (TPM) as new orders (NOPM), which is several times too many: import its logs again.";

pub(super) fn caveat(joined: &Joined<'_>) -> Option<Caveat> {
    let all = places(joined);
    let imported =
        || all.iter().filter_map(|place| Some((place, place.summary.imported.as_ref()?)));
    let mut tools: Vec<&str> = imported().map(|(_, from)| from.tool.as_str()).collect();
    tools.sort_unstable();
    tools.dedup();
    tools.first()?;
    let of_times = imported().any(|(place, _)| {
        place.summary.kinds.iter().any(|kind| kind.response.decode().is_none_or(|h| h.is_empty()))
    });
    // Dyno 0.1 recorded the number of transactions as new orders if it came first, and no other.
    let are_transactions = imported().any(|(place, from)| {
        let has_both = place.summary.figures.keys().any(|id| id.as_str() == "hammerdb.tpm");
        from.tool.starts_with("HammerDB") && !has_both
    });
    let message = format!(
        "These results are read from the output of {}, which does not say on which machine, \
         against which server and with which settings they were measured, what else the machine \
         was doing, or in which order the runs were made: drift of the machine would look like a \
         difference between variants.{}{}",
        list(&tools),
        if of_times { " Only the percentiles that were printed are known." } else { "" },
        if are_transactions { TRANSACTIONS } else { "" }
    );
    let advice = "Compare runs that alternated on one machine. `dyno sysbench` and `dyno pgbench` take \
                  the same command lines and record all of this.";
    let found = imported().map(|(place, _)| (place.variant, place.step));
    Some(caveat_at(CaveatKind::Imported, (message, advice), found))
}

#[cfg(test)]
mod tests {
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
        let mut run = run(
            &["old", "new"],
            &[4],
            3,
            |variant, _, _| {
                if variant == 0 { 1_000.0 } else { 1_200.0 }
            },
        );
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
}
