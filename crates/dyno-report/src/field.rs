//! Tables of figures that stand beside throughput: the Insert Benchmark's rates, TPC-C's new-orders,
//! the cost of the work. The same for the terminal and for Markdown.

use dyno_analysis::insert_benchmark::InsertBenchmarkCell;
use dyno_analysis::{MetricId, metrics, tpcc};

use crate::author;
use crate::document::Table;
use crate::format::{self, Unit};
use crate::view::{Place, View};

/// All such tables that the findings have something for; their first two columns are variant and step.
pub(crate) fn tables(view: &View<'_>) -> Vec<Table> {
    let tables = [new_orders(view), insert_benchmark(view), cost(view)];
    tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

/// How the transactions of TPC-C follow each other, to be read behind a throughput: `, unpaced`.
/// Empty for other workloads.
pub(crate) fn mode(view: &View<'_>, (variant, step): Place) -> String {
    let findings = view.findings;
    match (findings.variants.get(variant), findings.steps.get(step)) {
        (Some(variant), Some(step)) if variant.workload == tpcc::WORKLOAD => {
            format!(", {}", tpcc::mode(&variant.options, step.rate.is_some()))
        }
        _ => String::new(),
    }
}

/// What is written over the main column: of the Insert Benchmark, throughput is that of different kinds
/// together.
pub(crate) fn main_head(view: &View<'_>, metric: MetricId) -> String {
    match metric {
        metrics::THROUGHPUT if !view.findings.insert_benchmark.is_empty() => {
            "throughput, all kinds".to_owned()
        }
        metric => format!("{}{}", view.metric(metric).title, View::unit_of(metric)),
    }
}

fn place(view: &View<'_>, (variant, step): Place) -> [String; 2] {
    [view.variant(variant).to_owned(), view.step(step).to_owned()]
}

fn new_orders(view: &View<'_>) -> Table {
    let findings = view.findings;
    let is_it = |kind: &&dyno_analysis::kinds::KindCell| {
        kind.kind == "new_order"
            && kind.step < findings.steps.len()
            && findings.variants.get(kind.variant).is_some_and(|v| v.workload == tpcc::WORKLOAD)
    };
    let row = |kind: &dyno_analysis::kinds::KindCell| {
        let (variant, step) = (&findings.variants[kind.variant], &findings.steps[kind.step]);
        let throughput = kind.metrics.get(&metrics::THROUGHPUT)?;
        let is_open = step.rate.is_some();
        let mut a_minute = throughput.clone();
        a_minute.value *= 60.0;
        a_minute.low = a_minute.low.map(|low| 60.0 * low);
        a_minute.high = a_minute.high.map(|high| 60.0 * high);
        "".clone_into(&mut a_minute.unit);
        let numbers = [
            format::estimate(&a_minute),
            throughput.n.to_string(),
            tpcc::new_orders_name(&variant.options, step.clients, is_open).to_owned(),
            tpcc::mode(&variant.options, is_open).to_owned(),
        ];
        Some([&place(view, (kind.variant, kind.step))[..], &numbers].concat())
    };
    let heads = format!("variant | {} | #new-orders | #n | #name | #mode", findings.step_noun());
    Table::headed("TPC-C: new-orders per minute (tpmC not audited by the TPC)", &heads)
        .rows(findings.kinds.iter().filter(is_it).filter_map(row))
}

fn insert_benchmark(view: &View<'_>) -> Table {
    let row = |cell: &InsertBenchmarkCell| {
        let shown = |rate: Option<&dyno_analysis::Estimate>| {
            rate.map_or_else(|| "–".to_owned(), format::estimate)
        };
        let indexed =
            cell.indexed.as_ref().map(|rate| format!("indexed {}", format::estimate(rate)));
        let n = [&cell.inserts, &cell.indexed, &cell.queries].into_iter().flatten().next();
        let kept = cell.sla.as_ref().map(|sla| {
            format!("{} in {} of {}", Unit::PerSecond.tick(sla.target), sla.met, sla.trials)
        });
        let numbers = [
            indexed.unwrap_or_else(|| shown(cell.inserts.as_ref())),
            shown(cell.queries.as_ref()),
            n.map_or_else(|| "–".to_owned(), |rate| rate.n.to_string()),
            kept.unwrap_or_else(|| "–".to_owned()),
        ];
        [&place(view, (cell.variant, cell.step))[..], &numbers].concat()
    };
    let heads = "variant | step | #rows inserted | #queries | #n | #target rate met";
    let rows = author::cells(view).into_iter().map(row);
    Table::headed("Insert Benchmark: rows and queries separately", heads).rows(rows)
}

fn cost(view: &View<'_>) -> Table {
    let findings = view.findings;
    let row = |facts: &dyno_analysis::cost::CostFacts| {
        let price = facts.price_per_hour.as_ref()?;
        let money = facts.money_per_million.as_ref()?;
        let amount = Unit::Other(price.currency.clone()).tick(price.amount);
        let numbers = [amount, format::estimate(money), money.n.to_string()];
        Some([&place(view, (facts.variant, facts.step))[..], &numbers].concat())
    };
    let noun = findings.step_noun();
    let heads = format!("variant | {noun} | #per hour | #per million transactions | #n");
    Table::headed("Cost of the work", &heads).rows(findings.cost.iter().filter_map(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Cell;
    use crate::fixture;

    #[test]
    fn tpcc_is_told_with_its_mode() {
        let mut findings = fixture::single().0;
        let variant = &mut findings.variants[0];
        variant.workload = tpcc::WORKLOAD.to_owned();
        variant.options.insert("mode".to_owned(), "paced".to_owned());
        let view = View::new(&findings);
        assert_eq!(mode(&view, (0, 0)), ", paced");
        let text = crate::terminal::render(&findings, 80, false);
        assert!(text.contains("/s, no CI, paced"), "{text}");
        assert!(crate::markdown::render(&findings).contains("/s, no CI, paced (n = 1)"));
    }

    #[test]
    fn prices_have_a_table() {
        let mut findings = fixture::three_variants().0;
        findings.cost = vec![dyno_analysis::cost::CostFacts {
            price_per_hour: Some(dyno_record::Price { amount: 0.5, currency: "EUR".to_owned() }),
            money_per_million: Some(dyno_analysis::Estimate {
                value: 0.025,
                n: 1,
                unit: "EUR".to_owned(),
                ..dyno_analysis::Estimate::default()
            }),
            ..dyno_analysis::cost::CostFacts::default()
        }];
        let tables = tables(&View::new(&findings));
        assert_eq!(
            tables[0].rows[0].cells[2..].iter().map(Cell::text).collect::<Vec<_>>(),
            ["0.5 EUR", "0.0250 EUR, no CI", "1"]
        );
    }
}
