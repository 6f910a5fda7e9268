//! Searches of vectors: recall against queries a second, and what the index costs.

use dyno_analysis::vectors::{VectorFacts, VectorPoint, recall_text};
use dyno_analysis::{Estimate, metrics};

use super::{page::Page, parts};
use crate::chart::Frame;
use crate::chart::scatter::{Line, Scatter, Spot};
use crate::document::{Block, Cell, Figure, Section, Table};
use crate::format::Unit;
use crate::view::View;

/// The section; none if no variant searches vectors by an index.
pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let view = page.view;
    let tables = tables(view);
    if tables.is_empty() {
        return None;
    }
    let lead = "Recall is the share of the nearest neighbours that a query found, averaged over all queries \
                of a step; Dyno computes the exact neighbours itself. In each trial, a variant builds \
                its index once and searches it with each value of the search parameter.";
    let spots: Vec<Spot> = facts(view).iter().flat_map(|facts| spots(view, facts)).collect();
    let lowest = spots.iter().map(|spot| spot.x).fold(1.0, f64::min);
    let chart = Scatter {
        label: "Queries per second by recall".to_owned(),
        spots,
        line: Line::Variants,
        x_range: Some((lowest, 1.0)),
        x_unit: Unit::Count,
        y_unit: Unit::PerSecond,
        frame: Frame::new(560.0, 300.0),
    };
    let note = "queries per second by recall, a dot for each value of the search parameter; up and right is \
                better; lines merely connect the dots";
    let title = "Recall and queries per second";
    let charts = Block::group("charts", vec![Figure::new(title, note, chart.svg()).block()]);
    let section = Section::new("vectors", "Recall", title, lead);
    Some(section.with([charts]).with(tables.into_iter().map(Block::Table)))
}

/// Facts of known variants and steps with searches by an index.
fn facts<'a>(view: &View<'a>) -> Vec<&'a VectorFacts> {
    let is_known = |facts: &&VectorFacts| {
        let mut points = facts.points.iter().chain(&facts.exact);
        !facts.points.is_empty() && points.all(|point| view.has_place(facts.variant, point.step))
    };
    view.findings.vectors.iter().filter(is_known).collect()
}

fn spots(view: &View<'_>, facts: &VectorFacts) -> Vec<Spot> {
    let spot = |point: &VectorPoint| {
        let rate =
            parts::describe(view.variant(facts.variant), &searched(facts, point), &point.rate);
        Spot {
            variant: facts.variant,
            x: point.recall.value,
            y: point.rate.value,
            bounds: crate::format::bounds(&point.rate),
            is_joined: true,
            tip: format!("{rate} · recall {}", recall_text(point.recall.value)),
        }
    };
    facts.points.iter().map(spot).collect()
}

/// `ef_search 40`
fn searched(facts: &VectorFacts, point: &VectorPoint) -> String {
    point.search.map_or("exact scan".to_owned(), |number| format!("{} {number}", facts.parameter))
}

/// The curves as a table, and what each index costs; none if no variant searches vectors by an index.
fn tables(view: &View<'_>) -> Vec<Table> {
    let all = facts(view);
    let Some(first) = all.first() else { return Vec::new() };
    let heads = "Variant | Step | Search parameter | #Recall | #Queries per second | #p95 response \
         time";
    let mut curves = Table::headed("Recall and queries per second", heads);
    for facts in &all {
        for point in facts.exact.iter().chain(&facts.points) {
            let p95 = view.estimate((facts.variant, point.step), metrics::RESPONSE_P95);
            curves.row([
                view.head(facts.variant),
                Cell::from(view.step(point.step)),
                Cell::from(searched(facts, point)),
                Cell::from(recall_text(point.recall.value)),
                Cell::from(parts::with_n(&point.rate)),
                Cell::from(shown(p95)),
            ]);
        }
    }
    let at = format!("At a recall of {} or more", first.recall_asked);
    let heads = &format!(
        "Variant | {} | #Queries per second there | #Time to build | #Size on disk | \
         #Server memory",
        at.as_str()
    );
    let mut indexes = Table::headed("The index", heads);
    for facts in &all {
        let reached = facts.reached.and_then(|idx| facts.points.get(idx));
        indexes.row([
            view.head(facts.variant),
            Cell::from(reached.map_or("not reached".to_owned(), |point| searched(facts, point))),
            Cell::from(shown(reached.map(|point| &point.rate))),
            Cell::from(shown(facts.build.as_ref())),
            Cell::from(shown(facts.index_size.as_ref())),
            Cell::from(shown(facts.index_memory.as_ref())),
        ]);
    }
    vec![curves, indexes]
}

fn shown(estimate: Option<&Estimate>) -> String {
    estimate.map_or("–".to_owned(), parts::with_n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_curve_has_a_dot_for_each_search() {
        let (mut findings, _) = fixture::three_variants();
        assert_eq!(super::super::written(&findings, section), "");
        let rate = findings.cells[0].metrics[&metrics::THROUGHPUT].clone();
        let point = |search, recall| VectorPoint {
            step: 0,
            search,
            recall: Estimate { value: recall, ..rate.clone() },
            rate: rate.clone(),
        };
        let facts = |variant, recalls: [f64; 2], reached| VectorFacts {
            variant,
            recall_asked: 0.95,
            parameter: "ef_search".to_owned(),
            points: vec![point(Some(10.0), recalls[0]), point(Some(20.0), recalls[1])],
            exact: Some(point(None, 1.0)),
            reached,
            ..VectorFacts::default()
        };
        findings.vectors = vec![facts(0, [0.7, 0.96], Some(1)), facts(2, [0.5, 0.9], None)];
        let page = super::super::written(&findings, section);
        assert_eq!(page.matches("<circle").count(), 4, "exact scans are in the table alone");
        // Swatches of legends are lines as well, but not from dot to dot.
        let paths = page.split("<path d=\"").skip(1).filter_map(|path| path.split('"').next());
        assert_eq!(paths.filter(|path| path.contains('L')).count(), 2, "a line for each variant");
        for part in
            ["ef_search 20", "exact scan", "0.960", "not reached", "At a recall of 0.95 or more"]
        {
            assert!(page.contains(part), "{part}: {page}");
        }
        // Findings of other tools can name what is not there.
        findings.vectors[1].variant = 99;
        assert_eq!(super::super::written(&findings, section).matches("<circle").count(), 2);
    }
}
