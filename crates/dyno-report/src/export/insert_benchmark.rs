//! The Insert Benchmark in its author's columns: one row for each configuration and step.

use dyno_analysis::Findings;
use dyno_analysis::insert_benchmark::{BOUNDS_NS, COLUMNS};

use super::Table;
use super::tables::{Builder, Cell, Columns, NUMBER, TEXT, WHOLE, name};

const UNITS: [&str; COLUMNS.len()] = [
    "1/s", "1/s", "1/s", "MiB/s", "1/s", "MiB/s", "", "KiB", "", "KiB", "1/s", "%", "", "µs",
    "GiB", "GiB", "GiB", "s", "1/s", "1/s",
];

/// The author's columns, whether the insert rate was kept, and the time of `min(transactionid)`.
pub(super) fn columns(findings: &Findings) -> Table {
    let mut heads: Vec<Columns<'_>> = vec![(TEXT, "", "step")];
    heads.extend(COLUMNS.iter().zip(UNITS).map(|(name, unit)| (NUMBER, unit, *name)));
    heads.extend([
        (TEXT, "", "tag"),
        (NUMBER, "", "relative_to_baseline"),
        (NUMBER, "1/s", "indexed_rows delete_rate target_insert_rate"),
        (WHOLE, "", "trials_that_met_it trials"),
        (NUMBER, "", "share_of_seconds_that_met_it"),
        (WHOLE, "s", "longest_miss"),
        (NUMBER, "s", "get_min_at_start_median get_min_at_start_max get_min_later_max"),
    ]);
    let mut table = Builder::new("insert_benchmark", &heads);
    for cell in &findings.insert_benchmark {
        let mut row = vec![name(findings.steps.get(cell.step).map(|s| &s.name))];
        row.extend(COLUMNS.iter().map(|name| Cell::from(cell.columns.get(*name).copied())));
        row.push(name(findings.variants.get(cell.variant).map(|v| &v.name)));
        let (sla, min) = (cell.sla.as_ref(), cell.get_min.as_ref());
        row.extend([
            cell.relative.into(),
            cell.indexed.as_ref().map(|rate| rate.value).into(),
            cell.deletes.as_ref().map(|rate| rate.value).into(),
            sla.map(|sla| sla.target).into(),
            Cell::Whole(sla.map(|sla| sla.met.into())),
            Cell::Whole(sla.map(|sla| sla.trials.into())),
            sla.and_then(|sla| sla.seconds_met).into(),
            Cell::Whole(sla.map(|sla| sla.longest_miss_s.into())),
            min.map(|min| min.at_start_median_s).into(),
            min.map(|min| min.at_start_max_s).into(),
            min.filter(|min| min.later > 0).map(|min| min.later_max_s).into(),
        ]);
        table.row(row);
    }
    table.finish()
}

/// Statements in each of the author's buckets, counted; from when they were sent, and from when they
/// were due.
pub(super) fn buckets(findings: &Findings) -> Table {
    let names = BOUNDS_NS.iter().map(|ns| format!("up_to_{}_us", ns / 1000));
    let names: Vec<String> = names.chain(["longer".into()]).collect();
    let heads = [
        (TEXT, "", "step tag operation from"),
        (WHOLE, "", &*names.join(" ")),
        (NUMBER, "s", "max"),
    ];
    let mut table = Builder::new("insert_benchmark_buckets", &heads);
    for cell in &findings.insert_benchmark {
        for (from, all) in [("sent", &cell.response), ("due", &cell.response_from_due)] {
            for (operation, buckets) in all {
                let mut row = vec![
                    name(findings.steps.get(cell.step).map(|s| &s.name)),
                    name(findings.variants.get(cell.variant).map(|v| &v.name)),
                    operation.as_str().into(),
                    from.into(),
                ];
                row.extend(buckets.counts.iter().map(|count| Cell::from(*count)));
                row.push(buckets.max_s.into());
                table.row(row);
            }
        }
    }
    table.finish()
}
