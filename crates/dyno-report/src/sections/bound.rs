//! What limited each variant at each load level.

use std::collections::BTreeMap;

use dyno_analysis::bound::{BoundBy, BoundFacts, Resource};

use super::parts;
use crate::document::{Block, Cell, Piece, Table, Text};
use crate::view::{Place, View};
use crate::words;

/// Reasons why nothing is known that are said.
const REASONS_MOST: usize = 3;

fn by_place<'a>(view: &View<'a>) -> BTreeMap<Place, &'a BoundFacts> {
    view.findings.bound_by.iter().map(|bound| ((bound.variant, bound.step), bound)).collect()
}

fn is_known(view: &View<'_>) -> bool {
    view.findings.bound_by.iter().any(|bound| bound.by != BoundBy::Unknown)
}

/// `2 of 3 trials`, `n = 1`; empty where several agree.
fn trials(bound: &BoundFacts) -> String {
    match bound.by {
        BoundBy::Unknown => String::new(),
        _ if bound.n == 1 => "n = 1".to_owned(),
        _ if bound.agreeing == bound.n => String::new(),
        _ => {
            format!("{} of {}", bound.agreeing, words::counted(bound.n as usize, "trial", "trials"))
        }
    }
}

/// A row for each variant, and how much of each limit was used, folded. Where nothing is known, why.
pub(crate) fn blocks(view: &View<'_>) -> Vec<Block> {
    if view.findings.bound_by.is_empty() {
        return Vec::new();
    }
    let uses = uses(view);
    if !is_known(view) {
        let reasons = view.findings.bound_by.iter().filter_map(|bound| bound.why.as_ref());
        let mut reasons: Vec<String> =
            words::sorted(reasons).into_iter().map(|why| words::full_sentence(why)).collect();
        if let Some(n_more @ 1..) = reasons.len().checked_sub(REASONS_MOST) {
            reasons.truncate(REASONS_MOST);
            reasons.push(format!(
                "{} in findings.json.",
                words::counted(n_more, "more reason is", "more reasons are")
            ));
        }
        let text = Text::default().b("Bound by").text(": not known. ");
        let text = text.then(Piece::Prose(reasons.join(" "), Vec::new()));
        return std::iter::once(Block::absent(text)).chain(uses).collect();
    }
    let places = by_place(view);
    let table = parts::by_step(view, view.variants(), view.steps(), |variant, step| {
        let Some(bound) = places.get(&(variant, step)) else { return Cell::none("–") };
        let cell = match (&bound.why, trials(bound)) {
            (Some(why), _) => Cell::none(bound.text.as_str()).with("title", why),
            (None, trials) if trials.is_empty() => {
                Cell::from(bound.text.as_str()).with("title", format!("in all {} trials", bound.n))
            }
            (None, trials) => Cell::from(bound.text.as_str()).small(trials),
        };
        Cell { is_plain: true, ..cell }
    });
    let title = Text::from("Bound by").text(" ").span("what was at its limit");
    let table = table.titled(title).bare(|column| column == 0);
    std::iter::once(table.into()).chain(uses).collect()
}

/// Shares of limits, in the order in which the rule looks at them.
fn uses(view: &View<'_>) -> Option<Block> {
    let all = || view.findings.bound_by.iter().flat_map(|bound| &bound.uses);
    let mut resources: Vec<Resource> = all().map(|used| used.resource).collect();
    resources.sort_unstable();
    resources.dedup();
    all().find(|used| used.share.is_some())?;
    let heads = ["Variant", view.step_head()].into_iter().chain(resources.iter().map(|r| r.name()));
    let mut table = Table::of(heads, 2);
    let places = by_place(view);
    for (variant, step) in view.places() {
        let Some(bound) = places.get(&(variant, step)) else { continue };
        let share = |resource: &Resource| {
            let Some(used) = bound.uses.iter().find(|used| used.resource == *resource) else {
                return Cell::none("–").with("title", "not there");
            };
            match (used.share, &used.absent) {
                (Some(share), why) => {
                    let cell = Cell::from(format!("{:.0} %", 100.0 * share));
                    match (used.n, bound.n) {
                        (1, 1) => cell.small("n = 1"),
                        (some, all) if some < all => cell
                            .small(format!("{some} of {all}"))
                            .with("title", why.as_deref().unwrap_or_default()),
                        (_, all) => cell.with("title", format!("median of {all} trials")),
                    }
                }
                (None, why) => {
                    Cell::none("not known").with("title", why.as_deref().unwrap_or_default())
                }
            }
        };
        let place = [view.head(variant), view.step(step).into()];
        table.row(place.into_iter().chain(resources.iter().map(share)));
    }
    let note = Block::quiet(
        "Median of the repetitions. A limit counts as reached from 90 % on (next to one that is, from nine tenths of \
         its use on), and between 70 and 90 % nothing is said; locks count from half of the clients on, and between \
         a fifth and half nothing is said.",
    );
    let summary = "Use of each limit";
    Some(Block::fold(summary, false, vec![table.into(), note]))
}

/// The same for a terminal and a pull request, where anything is known.
pub(crate) fn listed(view: &View<'_>) -> Option<Table> {
    let places = by_place(view);
    let row = |place: Place| {
        let bound = places.get(&place)?;
        let n = format!("{} of {}", bound.agreeing, bound.n);
        let n = if bound.by == BoundBy::Unknown { "–".to_owned() } else { n };
        let (variant, step) = (view.variant(place.0), view.step(place.1));
        Some([variant, step, &bound.text, &n].map(str::to_owned))
    };
    let heads = format!("variant | {} | bound by | #trials", view.findings.step_noun());
    let table = Table::headed("Bound by", &heads).rows(view.places().filter_map(row));
    is_known(view).then_some(table)
}

#[cfg(test)]
mod tests {
    use dyno_analysis::Findings;
    use dyno_analysis::bound::ResourceUse;

    use super::*;
    use crate::fixture;

    /// Two load levels of the first variant: at a limit in two of three trials, and not known.
    fn findings() -> Findings {
        let mut findings = fixture::three_variants().0;
        let used = |share: Option<f64>| ResourceUse {
            resource: Resource::VolumeLimit,
            share,
            n: 3,
            absent: share.is_none().then(|| "`x` was not recorded".to_owned()),
        };
        let known = BoundFacts {
            variant: 0,
            step: 0,
            by: BoundBy::Resources,
            resources: vec![Resource::VolumeLimit],
            agreeing: 2,
            n: 3,
            text: "the volume's limit of 500 reads/s".to_owned(),
            why: None,
            uses: vec![used(Some(0.973))],
        };
        let unknown = BoundFacts {
            step: 1,
            by: BoundBy::Unknown,
            resources: Vec::new(),
            agreeing: 3,
            text: "not known".to_owned(),
            why: Some("`x` was not recorded".to_owned()),
            uses: vec![used(None)],
            ..known.clone()
        };
        findings.bound_by = vec![known, unknown];
        findings
    }

    #[test]
    fn every_reader_sees_what_was_at_its_limit() {
        let findings = findings();
        let page = crate::sections::written(&findings, crate::sections::tables::section);
        for part in
            ["the volume's limit of 500 reads/s", "2 of 3 trials", "Use of each limit", "97 %"]
        {
            let part = part.replace('\'', "&#39;");
            let plain = page.replace("&nbsp;", " ").replace('\u{a0}', " ").replace('\'', "&#39;");
            assert!(plain.contains(&part), "{part}");
        }
        for text in
            [crate::markdown::render(&findings), crate::terminal::render(&findings, 160, false)]
        {
            assert!(text.contains("the volume's limit of 500 reads/s"), "{text}");
            assert!(text.contains("2 of 3") && text.contains("not known"), "{text}");
        }
    }

    #[test]
    fn where_nothing_is_known_the_page_says_why_and_texts_say_nothing() {
        let mut findings = findings();
        findings.bound_by.remove(0);
        let page = crate::sections::written(&findings, crate::sections::tables::section);
        assert!(page.contains("Bound by") && page.contains("was not recorded."), "{page}");
        assert!(!crate::markdown::render(&findings).contains("bound by"));
        findings.bound_by.clear();
        let page = crate::sections::written(&findings, crate::sections::tables::section);
        assert!(!page.contains("Bound by"));
    }
}
