//! What the workload demanded of the tables and of itself, and whether it was met.

use dyno_analysis::TrialFacts;
use dyno_record::AuditRow;

use super::page::Page;
use crate::document::{Block, Cell, Section, Table};
use crate::view::View;
use crate::words;

/// How attempts ended, and every demand of every trial: folded where all were met, open where one was not. None
/// where there was neither.
pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let checks = super::tables::outcomes(page.view).into_iter().chain(audit(page.view));
    let checks: Vec<Block> = checks.collect();
    (!checks.is_empty()).then(|| Section::new("audit", "Checks", "Checks", "").with(checks))
}

fn audit(view: &View<'_>) -> Option<Block> {
    let trials = view.findings.trials.iter();
    let trials = trials.filter(|trial| trial.variant < view.findings.variants.len());
    let audited = trials.flat_map(|trial| trial.audit.iter().map(move |row| (trial, row)));
    let audited: Vec<(&TrialFacts, &AuditRow)> = audited.collect();
    if audited.is_empty() {
        return None;
    }
    let n_failed = audited.iter().filter(|(_, row)| !row.pass).count();
    let n_undecided = audited.iter().filter(|(_, row)| row.pass && row.is_undecided).count();
    let checks = words::counted(audited.len(), "check", "checks");
    let heads = "#Trial | Variant | Check | #Expected | #Measured | Outcome";
    let mut table = Table::headed("", heads);
    // What failed is read first.
    let (passed, failed): (Vec<_>, Vec<_>) = audited.iter().partition(|(_, row)| row.pass);
    for (trial, row) in failed.into_iter().chain(passed) {
        let outcome = match row.pass {
            false => Cell::bad("failed"),
            true if row.is_undecided => Cell::from("undecided: the sample is too small"),
            true => Cell::from("passed"),
        };
        table.row([
            Cell::from(trial.number.to_string()),
            view.head(trial.variant),
            Cell::from(row.name.as_str()),
            Cell::from(row.expected.as_str()),
            Cell::from(row.measured.as_str()),
            outcome,
        ]);
    }
    let outcome = match (n_failed, n_undecided) {
        (0, 0) => "all passed".to_owned(),
        (0, n) => format!("none failed, {n} undecided"),
        (failed, 0) => format!("{failed} failed"),
        (failed, n) => format!("{failed} failed, {n} undecided"),
    };
    let summary = format!(
        "The workload's audit of its tables and of its own transactions: {checks}, {outcome}"
    );
    Some(Block::fold(summary, n_failed > 0, vec![table.into()]))
}
