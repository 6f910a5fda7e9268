//! The loads that each search tried, and how they went.

use dyno_analysis::{ProbeFacts, TrialSearch, metrics};

use crate::document::{Block, Cell, Table};
use crate::format::Unit;
use crate::view::View;
use crate::words;

pub(crate) fn probes(view: &View<'_>) -> Option<Block> {
    let findings = view.findings;
    let is_known = |search: &&TrialSearch| view.has_place(search.variant, search.step);
    let searches: Vec<&TrialSearch> = findings.searches.iter().filter(is_known).collect();
    let n = searches.iter().map(|search| search.probes.len()).sum();
    let heads = "Variant | Limit | #Repetition | #Load tried | #Throughput | #Limited statistic | \
         Outcome";
    let mut table = Table::headed("", heads);
    for search in &searches {
        search.probes.iter().for_each(|probe| table.row(row(view, search, probe)));
    }
    let summary = words::counted(n, "load tried by the searches", "loads tried by the searches");
    (!searches.is_empty()).then(|| Block::fold(summary, false, vec![table.into()]))
}

fn row(view: &View<'_>, search: &TrialSearch, probe: &ProbeFacts) -> [Cell; 7] {
    let unit = match &view.findings.steps[search.step].search {
        Some(asked) if asked.metric == metrics::CLIENTS_AT_LIMIT => Unit::Count,
        _ => Unit::PerSecond,
    };
    let is_found = search.found.is_some_and(|found| found.total_cmp(&probe.level).is_eq());
    let outcome = match &probe.broken_by {
        Some(why) => format!("over the limit: {why}"),
        None if is_found => "met the limit; this is the load found".to_owned(),
        None => "within the limit".to_owned(),
    };
    let limited = probe.limited_us.map_or("–".to_owned(), |us| Unit::Micros.show(us));
    [
        view.head(search.variant),
        view.step(search.step).into(),
        search.repetition.to_string().into(),
        unit.show(probe.level).into(),
        Unit::PerSecond.show(probe.throughput).into(),
        limited.into(),
        outcome.into(),
    ]
}
