//! The audit of the Insert Benchmark: the tables hold exactly what was inserted and not deleted.

use std::sync::atomic::AtomicU64;

use crate::{AuditRow, AuditTotals, Dialect, TextRows, number_in};

use super::clients::{QueryCounters, RowCounters, TableCounters, read};
use super::layout::DRIFT_MAX;
use super::schema::{self, Index};
use super::{Bench, Kind};

/// Deviation of a query kind's share from a third: exceeded in one of 15 million runs.
const MIX_DEVIATIONS: f64 = 5.4;

/// Share of the limit that a range query returns: fewer rows after an index's last values.
const RANGE_ROWS_LEAST: f64 = 0.9;

/// Share of ids that a point query finds: PostgreSQL reserves 1000 for each connection.
const POINT_ROWS_LEAST: f64 = 0.1;

/// With fewer queries than this, the mean says nothing.
const QUERIES_LEAST: u64 = 30;

pub(super) fn queries(n_tables: usize, dialect: Dialect) -> Vec<String> {
    let rows = |idx| format!("SELECT COUNT(*) FROM {}", schema::table_name(idx));
    let indexes = match dialect {
        Dialect::MySql => {
            "SELECT COUNT(DISTINCT table_name, index_name) FROM information_schema.statistics \
             WHERE table_schema = database() AND table_name LIKE 'pi%' AND index_name <> 'PRIMARY'"
        }
        Dialect::PostgreSql => {
            "SELECT COUNT(*) FROM pg_indexes WHERE schemaname = current_schema() \
             AND tablename LIKE 'pi%' AND indexname NOT LIKE '%\\_pkey'"
        }
        Dialect::Sqlite | Dialect::ClickHouse => {
            "SELECT COUNT(*) FROM sqlite_master WHERE type = 'index' AND tbl_name LIKE 'pi%'"
        }
    };
    (0..n_tables).map(rows).chain([indexes.to_owned()]).collect()
}

pub(super) fn judge(bench: &Bench, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
    let tables = &bench.counters.tables;
    let number = |idx: usize| number_in(answers.get(idx)?, 0, 0);
    let mut rows: Vec<AuditRow> = tables
        .iter()
        .enumerate()
        .map(|(idx, counters)| table_rows(idx, counters, number(idx)))
        .collect();
    let inserts = tables.iter().map(|counters| &counters.inserts);
    rows.push(statements("INSERT", Kind::Insert, totals, inserts.clone()));
    rows.push(changed("rows that INSERTs stored", inserts));
    let made = Index::ALL.len() * tables.len();
    rows.push(AuditRow::equal("secondary indexes", made as i128, number(tables.len())));
    if bench.layout.shapes.iter().any(|shape| shape.has_deletes()) {
        let deletes = tables.iter().map(|counters| &counters.deletes);
        rows.push(statements("DELETE", Kind::Delete, totals, deletes.clone()));
        rows.push(changed("rows that DELETEs removed", deletes));
        rows.extend(tables.iter().enumerate().map(|(idx, counters)| balance(idx, counters)));
    }
    rows.push(bench.products.audit_row("productid of inserted rows"));
    rows.extend(mix(totals));
    rows.extend(queried(bench));
    rows
}

fn sum<'a>(all: impl Iterator<Item = &'a RowCounters>, of: fn(&RowCounters) -> &AtomicU64) -> i128 {
    all.map(|counters| i128::from(read(of(counters)))).sum()
}

fn table_rows(idx: usize, counters: &TableCounters, measured: Option<i128>) -> AuditRow {
    let [inserted, deleted] =
        [&counters.inserts.expected, &counters.deletes.expected].map(read).map(i128::from);
    let [more, less] =
        [&counters.inserts.unknown, &counters.deletes.unknown].map(read).map(i128::from);
    let rows = inserted - deleted;
    let name = format!("rows of {}, inserted less deleted", schema::table_name(idx));
    AuditRow::between(name, (rows - less, rows + more), measured)
}

/// Both counters count the same commits. Statements in flight at the end of a step that have ended
/// since are in the clients' alone.
fn statements<'a>(
    word: &str,
    kind: Kind,
    totals: &AuditTotals,
    all: impl Iterator<Item = &'a RowCounters> + Clone,
) -> AuditRow {
    let known = sum(all.clone(), |counters| &counters.statements);
    let unknown = sum(all, |counters| &counters.unknown_statements);
    let committed = totals.kinds.get(kind.index()).map(|kind| i128::from(kind.committed));
    let name = format!("{word}s acknowledged, by clients and by the load generator");
    let in_flight = i128::from(totals.in_flight).min(known);
    AuditRow::between(name, (known - in_flight, known + unknown), committed)
}

fn changed<'a>(name: &str, all: impl Iterator<Item = &'a RowCounters> + Clone) -> AuditRow {
    let expected = sum(all.clone(), |counters| &counters.expected);
    AuditRow::equal(name, expected, Some(sum(all, |counters| &counters.changed)))
}

/// Deletes keep up with inserts: as far apart as inserter and deleter may be, and a batch of each.
fn balance(idx: usize, counters: &TableCounters) -> AuditRow {
    let inserted = i128::from(read(&counters.inserts_with_deletes));
    let unknown =
        i128::from(read(&counters.inserts.unknown)) + i128::from(read(&counters.deletes.unknown));
    let slack = i128::from((DRIFT_MAX + 1) * read(&counters.batch_max)) + unknown;
    let name =
        format!("rows of {} deleted, one for each inserted meanwhile", schema::table_name(idx));
    let deleted = i128::from(read(&counters.deletes.expected));
    AuditRow::between(name, (inserted - slack, inserted + slack), Some(deleted))
}

fn mix(totals: &AuditTotals) -> Vec<AuditRow> {
    let committed = |kind: Kind| totals.kinds.get(kind.index()).map_or(0, |kind| kind.committed);
    let all: u64 = Kind::RANGES.iter().map(|kind| committed(*kind)).sum();
    if all == 0 {
        return Vec::new();
    }
    let third = 1.0 / Kind::RANGES.len() as f64;
    let slack = MIX_DEVIATIONS * (third * (1.0 - third) / all as f64).sqrt() + 1.0 / all as f64;
    let row = |kind: &Kind| {
        let share = committed(*kind) as f64 / all as f64;
        let name = format!("share of {} among range queries", super::KINDS[kind.index()]);
        let (expected, measured) = (format!("{third:.4} ± {slack:.4}"), format!("{share:.4}"));
        let row = AuditRow::judged(name, expected, measured, (share - third).abs() <= slack);
        row.undecided_if(slack >= third)
    };
    Kind::RANGES.iter().map(row).collect()
}

fn queried(bench: &Bench) -> Vec<AuditRow> {
    let most = bench.settings.values.rows_per_query as f64;
    let row = |name: &str, counters: &QueryCounters, least: f64| {
        let queries = read(&counters.queries);
        (queries > 0).then(|| {
            let mean = read(&counters.rows) as f64 / queries as f64;
            let expected = format!("{least:.1} to {most}");
            let is_met = (least..=most).contains(&mean);
            AuditRow::judged(name, expected, format!("{mean:.3}"), is_met)
                .undecided_if(queries < QUERIES_LEAST)
        })
    };
    // Ids have gaps, and some rows of a point query are deleted while it is on its way.
    let ranges = row("rows of a range query", &bench.counters.range, most * RANGE_ROWS_LEAST);
    let points = row("rows of a point query", &bench.counters.point, most * POINT_ROWS_LEAST);
    ranges.into_iter().chain(points).collect()
}
