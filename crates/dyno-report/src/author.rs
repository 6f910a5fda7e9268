//! The Insert Benchmark's tables as its author publishes them: one row for each configuration, his
//! columns in his order, numbers as he writes them. The same for the page, for Markdown and for CSV.

use dyno_analysis::insert_benchmark::{BOUNDS_NS, Buckets, COLUMNS, InsertBenchmarkCell};

use crate::document::{Block, Cell, Table};
use crate::format::Unit;
use crate::view::{Place, View};
use crate::words;

/// Statements in the order of the author's tables.
pub(crate) const OPERATIONS: [&str; 3] = ["query", "insert", "delete"];

const UNKNOWN: &str = "NA";

/// The cells of the findings that have a place.
pub(crate) fn cells<'a>(view: &View<'a>) -> Vec<&'a InsertBenchmarkCell> {
    let all = view.findings.insert_benchmark.iter();
    all.filter(|cell| view.has_place(cell.variant, cell.step)).collect()
}

fn of_step<'a>(view: &View<'a>, step: usize) -> Vec<&'a InsertBenchmarkCell> {
    let mut own = cells(view);
    own.retain(|cell| cell.step == step);
    own.sort_by_key(|cell| cell.variant);
    own
}

/// The columns of a step; none where nothing of it was measured.
pub(crate) fn columns(view: &View<'_>, step: usize) -> Option<Table> {
    let own = of_step(view, step);
    if own.iter().all(|cell| cell.columns.is_empty()) {
        return None;
    }
    let row = |cell: &&InsertBenchmarkCell| {
        let number = |name: &&str| match cell.columns.get(*name) {
            Some(value) if value.is_finite() => number(name, *value),
            _ => UNKNOWN.to_owned(),
        };
        let tag = Cell::from(view.variant(cell.variant)).head();
        let tag = Cell { variant: Some(cell.variant), ..tag };
        let numbers: Vec<Cell> = COLUMNS.iter().map(number).map(Cell::from).collect();
        numbers.into_iter().chain([tag])
    };
    let heads = COLUMNS.iter().copied().chain(["tag"]);
    let mut table = Table::of(heads, 0).titled(view.step(step)).rows(own.iter().map(row));
    table.columns[COLUMNS.len()].class = Some("");
    Some(table)
}

/// A number as the author writes it: so many decimals in each column, and more where nothing but zeros
/// would be left of a small one.
fn number(column: &str, value: f64) -> String {
    let decimals = match column {
        "rmbps" | "wmbps" | "cpups" | "dbgb1" | "dbgb2" | "rss" => 1,
        "rpq" | "rkbpq" | "wpi" | "wkbpi" | "cspq" | "maxop" => 3,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    let is_lost = value != 0.0 && text.chars().all(|c| matches!(c, '0' | '.' | '-'));
    match is_lost {
        // Two digits of what is smaller than the column shows.
        true => {
            let more = (1.0 - value.abs().log10().floor()) as usize;
            format!("{value:.more$}")
        }
        false => text,
    }
}

/// Response times of a step in the author's buckets, in percent.
fn buckets(view: &View<'_>, step: usize) -> Option<Table> {
    let edges = BOUNDS_NS.iter().map(|ns| Unit::Micros.tick(*ns as f64 / 1e3).replace(' ', ""));
    let heads = ["op".to_owned()].into_iter().chain(edges);
    let heads = heads.chain(["gt", "max", "tag"].map(str::to_owned));
    let title = format!("{}: response times, percent", view.step(step));
    let mut table = Table::of(heads, 0).titled(title);
    for operation in OPERATIONS {
        for cell in of_step(view, step) {
            let Some(buckets) = cell.response.get(operation) else { continue };
            let longest = format!("{:.3}", buckets.max_s);
            let behind = [longest, view.variant(cell.variant).to_owned()];
            let shares = shares(buckets).into_iter();
            table.row([operation.to_owned()].into_iter().chain(shares).chain(behind));
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Shares in percent with three decimals, nothing for none; `nonzero` where there are some that three
/// decimals do not show.
pub(crate) fn shares(buckets: &Buckets) -> Vec<String> {
    let text = |(percent, count): (f64, u64)| match (count, format!("{percent:.3}").as_str()) {
        (0, _) => String::new(),
        (_, "0.000") => "nonzero".to_owned(),
        (_, text) => text.to_owned(),
    };
    buckets.percent().into_iter().zip(buckets.counts).map(text).collect()
}

/// Rows inserted per second in the steps with a rate, and the target in the last row.
fn insert_rates(view: &View<'_>) -> Option<Table> {
    let steps = steps_with(view, |cell| cell.sla.is_some());
    let title = "Insert rate (rows/s) and target";
    let mut table = by_variant(view, title, &steps, |cell| {
        cell.inserts.as_ref().map(|rate| format!("{:.0}", rate.value))
    })?;
    let target = |step: &usize| {
        let sla = of_step(view, *step).into_iter().find_map(|cell| cell.sla.as_ref());
        sla.map_or_else(|| UNKNOWN.to_owned(), |sla| format!("{:.0}", sla.target))
    };
    table.row(["target".to_owned()].into_iter().chain(steps.iter().map(target)));
    Some(table)
}

/// Seconds of `select min(transactionid)` when a step began, the longest of all.
fn get_min(view: &View<'_>) -> Option<Table> {
    let steps = steps_with(view, |cell| cell.get_min.is_some());
    by_variant(view, "get_min (seconds at the start of the step)", &steps, |cell| {
        cell.get_min.as_ref().map(|min| format!("{:.3}", min.at_start_max_s))
    })
}

pub(crate) fn variants(view: &View<'_>) -> Vec<usize> {
    words::sorted(cells(view).iter().map(|cell| cell.variant))
}

pub(crate) fn steps_with(
    view: &View<'_>,
    has: impl Fn(&InsertBenchmarkCell) -> bool,
) -> Vec<usize> {
    words::sorted(cells(view).into_iter().filter(|cell| has(cell)).map(|cell| cell.step))
}

pub(crate) fn at<'a>(view: &View<'a>, at: Place) -> Option<&'a InsertBenchmarkCell> {
    cells(view).into_iter().find(|cell| (cell.variant, cell.step) == at)
}

fn by_variant(
    view: &View<'_>,
    title: &str,
    steps: &[usize],
    text: impl Fn(&InsertBenchmarkCell) -> Option<String>,
) -> Option<Table> {
    let heads = ["config"].into_iter().chain(steps.iter().map(|step| view.step(*step)));
    let row = |variant: usize| {
        let known = |step: &usize| text(at(view, (variant, *step))?);
        let texts = steps.iter().map(|step| known(step).unwrap_or_else(|| UNKNOWN.to_owned()));
        let texts: Vec<String> = texts.collect();
        [view.variant(variant).to_owned()].into_iter().chain(texts)
    };
    let table = Table::of(heads, 0).titled(title);
    (!steps.is_empty()).then(|| table.rows(variants(view).into_iter().map(row)))
}

/// All tables, folded; none where nobody ran the Insert Benchmark.
pub(crate) fn blocks(view: &View<'_>) -> Option<Block> {
    let columns = view.steps().filter_map(|step| columns(view, step));
    let buckets = view.steps().filter_map(|step| buckets(view, step));
    let all = columns.chain(insert_rates(view)).chain(get_min(view)).chain(buckets);
    let all: Vec<Block> = all.map(Block::Table).collect();
    let summary = "Insert Benchmark, in its author's columns";
    (!all.is_empty()).then(|| Block::fold(summary, false, all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use dyno_analysis::Estimate;
    use dyno_analysis::insert_benchmark::{GetMin, Sla};

    fn findings() -> dyno_analysis::Findings {
        let (mut findings, _) = fixture::own_steps();
        let mut query = Buckets { max_s: 0.25, ..Buckets::default() };
        (query.counts[0], query.counts[4]) = (999_999, 1);
        let columns = [("ips", 100.4), ("qps", 10_309.0), ("wkbpi", 0.000_42), ("dbgb1", 0.21)];
        let cell = InsertBenchmarkCell {
            variant: 1,
            step: 3,
            inserts: Some(Estimate { value: 99.6, n: 1, ..Estimate::default() }),
            columns: columns.map(|(name, value)| (name.to_owned(), value)).into(),
            response: [("query".to_owned(), query)].into(),
            sla: Some(Sla { target: 100.0, ..Sla::default() }),
            get_min: Some(GetMin { at_start_max_s: 4.2, ..GetMin::default() }),
            ..InsertBenchmarkCell::default()
        };
        findings.insert_benchmark = vec![cell];
        findings.variants[1].name = "MyRocks|c5".to_owned();
        findings
    }

    #[test]
    fn columns_are_those_of_the_author_in_his_order() {
        let findings = findings();
        let view = View::new(&findings);
        let table = columns(&view, 3).expect("a table");
        let head = "ips qps rps rmbps wps wmbps rpq rkbpq wpi wkbpi csps cpups cspq cpupq dbgb1 dbgb2 rss \
                    maxop p50 p99 tag";
        let heads: Vec<String> = table.columns.iter().map(|column| column.head.plain()).collect();
        assert_eq!(heads.join(" "), head);
        let row = table.rows[0].cells.iter().map(Cell::text).collect::<Vec<_>>().join(" ");
        assert_eq!(
            row,
            "100 10309 NA NA NA NA NA NA NA 0.00042 NA NA NA NA 0.2 NA NA NA NA NA MyRocks|c5"
        );
        assert!(columns(&view, 0).is_none());
    }

    #[test]
    fn markdown_has_all_of_his_tables() {
        let findings = findings();
        let text = crate::markdown::render(&findings);
        for expected in [
            "| ips | qps | rps |",
            "| op | 256µs | 1ms | 4ms | 16ms | 64ms | 256ms | 1s | 4s | 16s | gt | max | tag |",
            "| query | 100.000 |  |  |  | nonzero |  |  |  |  |  | 0.250 | MyRocks\\|c5 |",
            "| target | 100 |",
            "| MyRocks\\|c5 | 4.200 |",
        ] {
            assert!(text.contains(expected), "no {expected} in {text}");
        }
        let none = fixture::three_variants().0;
        assert!(!crate::markdown::render(&none).contains("Insert Benchmark"));
    }
}
