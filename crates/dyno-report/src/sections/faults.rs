//! Faults that happened to servers on purpose, and what became of the load.

use dyno_analysis::FaultFacts;

use super::page::Page;
use crate::document::{Block, Cell, Section, Table};
use crate::format::Unit;
use crate::view::View;
use crate::words;

pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let tables = tables(page.view);
    if tables.is_empty() {
        return None;
    }
    let lead = "Faults that the study injected, and how the load responded. Under closed-loop load, clients \
                wait while the server is down, so an outage causes only a few slow transactions, and \
                percentiles hardly show it. The audit says whether committed transactions survived.";
    let mut blocks = vec![Block::lead(
        "Before: median transactions per second over up to 30 seconds before the first fault of the \
         measured time. Recovered after: time from the fault to the first of three consecutive seconds \
         that each had at least 90 % of that rate. Longest response: longest response time of the \
         transactions that ended in between. A dash means that it did not happen within the measured \
         time.",
    )];
    if page.view.findings.faults.iter().any(|facts| facts.fault.promotion.is_some()) {
        blocks.push(Block::lead(
            "Replicas promoted: transactions whose commit was confirmed to a client during the trial, \
             those without an answer (in doubt), and those that the promoted replica had at the end \
             (found). The rows of those in doubt are looked up, so that a transaction in doubt that is found \
             does not stand for a confirmed one that is missing.",
        ));
        for why in reasons_for_ranges(page.view) {
            let text = format!("The loss may be a range, because rows were not looked up: {why}.");
            blocks.push(Block::lead(text));
        }
    }
    blocks.extend(tables.into_iter().map(Block::Table));
    Some(Section::new("faults", "Faults", "Faults and recovery", lead).with(blocks))
}

/// The tables alone.
pub(crate) fn in_text(page: &Page<'_>) -> Option<Section> {
    Some(Section::of(tables(page.view).into_iter().map(Block::Table)))
}

/// Why the rows of transactions in doubt were not looked up, each reason once.
fn reasons_for_ranges<'a>(view: &View<'a>) -> Vec<&'a str> {
    let promotions = view.findings.faults.iter().filter_map(|facts| facts.fault.promotion.as_ref());
    let survived = promotions.filter_map(|promotion| promotion.survived.as_ref());
    words::sorted(survived.filter_map(|one| one.why_range.as_deref()))
}

/// Every fault of every trial, and the errors of their steps; none where there were no faults.
fn tables(view: &View<'_>) -> Vec<Table> {
    let all = view.findings.faults.iter();
    let all: Vec<&FaultFacts> =
        all.filter(|facts| view.has_place(facts.variant, facts.step)).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let heads = &format!(
        "Variant | Trial | {} | Fault | #At | #Before | #Worst second | #Nothing committed \
         for | #Server answered after | #Recovered after | #Longest response | #Errors",
        view.step_head()
    );
    let mut faults = Table::headed("Faults", heads);
    for facts in &all {
        let seconds = |value: Option<f64>| or_dash(value.map(|value| format!("{value:.1} s")));
        let shown = |value: Option<f64>, unit: Unit| or_dash(value.map(|value| unit.show(value)));
        let fault = &facts.fault;
        faults.row([
            view.head(facts.variant),
            Cell::from(facts.trial.to_string()),
            Cell::from(view.step(facts.step)),
            Cell::from(format!("{}: {} of {}", fault.name, fault.kind, fault.member)),
            seconds(Some(fault.began_s)),
            shown(facts.before, Unit::PerSecond),
            shown(facts.lowest, Unit::PerSecond),
            seconds(facts.away_s),
            seconds(facts.answered_after_s),
            match facts.recovered_after_s {
                None if facts.before.is_some() => Cell::bad("not within the measured time"),
                recovered => seconds(recovered),
            },
            shown(facts.longest_us, Unit::Micros),
            Cell::from(Unit::Count.show(facts.errors.round())),
        ]);
    }
    let mut tables = vec![faults];
    tables.extend(promotions(view, &all));
    tables.extend(errors(view, &all));
    tables
}

fn or_dash(text: Option<String>) -> Cell {
    text.unwrap_or_else(|| "–".to_owned()).into()
}

fn promotions(view: &View<'_>, all: &[&FaultFacts]) -> Option<Table> {
    let heads = "Variant | Trial | Fault | Promoted | #Accepted writes after | #First commit after \
         | #Confirmed | #In doubt | #Found | #Confirmed but lost";
    let mut table = Table::headed("Replicas promoted", heads);
    let promoted = all.iter().filter_map(|facts| Some((facts, facts.fault.promotion.as_ref()?)));
    for (facts, promotion) in promoted {
        let shown = |value: u64| Unit::Count.show(value as f64);
        let count = |value: Option<u64>| or_dash(value.map(shown));
        let seconds = |value: Option<f64>| or_dash(value.map(|value| format!("{value:.2} s")));
        let survived = promotion.survived.as_ref();
        table.row([
            view.head(facts.variant),
            Cell::from(facts.trial.to_string()),
            Cell::from(facts.fault.name.clone()),
            Cell::from(promotion.member.clone()),
            seconds(facts.answered_after_s),
            seconds(facts.first_commit_after_s),
            count(survived.map(|one| one.acknowledged)),
            count(survived.map(|one| one.in_doubt)),
            count(survived.map(|one| one.found)),
            match facts.lost {
                None => or_dash(None),
                Some((0, 0)) => Cell::from("0".to_owned()),
                Some((0, most)) => Cell::from(format!("0 to {}", shown(most))),
                Some((least, most)) if least == most => Cell::bad(shown(least)),
                Some((least, most)) => Cell::bad(format!("{} to {}", shown(least), shown(most))),
            },
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

fn errors(view: &View<'_>, all: &[&FaultFacts]) -> Option<Table> {
    let heads = format!("Variant | Trial | {} | By class", view.step_head());
    let mut table = Table::headed("Attempts that failed in these measurements", &heads);
    let mut places: Vec<(usize, u32, usize)> = Vec::new();
    for facts in all.iter().filter(|facts| !facts.error_classes.is_empty()) {
        let place = (facts.variant, facts.trial, facts.step);
        if places.contains(&place) {
            continue;
        }
        places.push(place);
        let class = |(class, n): (&String, &u64)| {
            format!("{} {}", Unit::Count.show(*n as f64), class.replace('_', " "))
        };
        let classes: Vec<String> = facts.error_classes.iter().map(class).collect();
        table.row([
            view.head(facts.variant),
            Cell::from(facts.trial.to_string()),
            Cell::from(view.step(facts.step)),
            Cell::from(classes.join(", ")),
        ]);
    }
    (!places.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_fault_is_a_row_and_what_was_not_seen_is_no_number() {
        let (mut findings, _) = fixture::three_variants();
        assert!(tables(&View::new(&findings)).is_empty());
        let fault = dyno_record::Fault {
            name: "crash".to_owned(),
            kind: "kill".to_owned(),
            member: "server".to_owned(),
            began_s: 30.04,
            ..dyno_record::Fault::default()
        };
        let facts = FaultFacts {
            variant: 1,
            trial: 4,
            fault,
            before: Some(1234.0),
            lowest: Some(0.0),
            away_s: Some(6.2),
            answered_after_s: Some(5.81),
            recovered_after_s: Some(8.1),
            errors: 12.0,
            error_classes: [("disconnected".to_owned(), 12)].into(),
            ..FaultFacts::default()
        };
        let promotion = Some(dyno_record::Promotion {
            member: "replica-2".to_owned(),
            survived: Some(dyno_record::Survived {
                acknowledged: 900,
                in_doubt: 4,
                found: 860,
                lost: None,
                why_range: Some("its numbers repeat".to_owned()),
            }),
        });
        let replaced = FaultFacts {
            fault: dyno_record::Fault { promotion, ..facts.fault.clone() },
            first_commit_after_s: Some(0.4),
            lost: Some((40, 44)),
            ..facts.clone()
        };
        let never = FaultFacts { recovered_after_s: None, trial: 5, ..facts.clone() };
        findings.faults = vec![facts, never];
        let html = super::super::written(&findings, section);
        for text in
            ["crash: kill of server", "30.0 s", "6.2 s", "5.8 s", "8.1 s", "12 disconnected"]
        {
            assert!(html.contains(text), "no {text} in {html}");
        }
        assert!(html.contains("not within the measured time"), "{html}");
        let steps = tables(&View::new(&findings)).len();
        assert_eq!(steps, 2);
        assert!(!html.contains("Replicas promoted</"), "{html}");
        findings.faults.push(replaced);
        let html = super::super::written(&findings, section);
        let why = "rows were not looked up: its numbers repeat.";
        for text in ["replica-2", "0.40 s", "900", "860", "40 to 44", why] {
            assert!(html.contains(text), "no {text} in {html}");
        }
        assert_eq!(tables(&View::new(&findings)).len(), 3);
    }
}
