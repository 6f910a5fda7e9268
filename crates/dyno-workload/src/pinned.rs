//! What each built-in workload makes, sends, audits and refuses, pinned: a change of it changes what is measured.

use std::collections::BTreeMap;
use std::fmt::Write;

use dyno_model::OptionKind;
use dyno_units::Seed;
use expect_test::expect_file;
use md5::{Digest, Md5};

use crate::catalog::Catalog;
use crate::fake::{Fake, given, made, request};
use crate::{AuditTotals, Dialect, KeptRows, KindTotals, MadeWorkload, Row, Value};

const TRANSACTIONS: u64 = 200;
const ROWS: u64 = 100;

type Options = &'static [(&'static str, &'static str)];

/// A step and a role.
type Place = (usize, usize);

const ANY: &[Place] = &[(0, 0)];

/// Workloads with their options, and the steps and roles of which a client is run.
const CASES: &[(&str, Options, &[Place])] = &[
    ("oltp_read_only", &[("tables", "2"), ("row_filter", "on")], ANY),
    ("oltp_read_write", &[("distribution", "special"), ("point_select_keys", "3")], ANY),
    ("oltp_write_only", &[("tables", "3"), ("secondary", "on")], ANY),
    ("oltp_point_select", &[("distribution", "pareto")], ANY),
    ("oltp_update_index", &[], ANY),
    ("oltp_update_non_index", &[("distribution", "gaussian")], ANY),
    ("oltp_delete", &[("distribution", "zipfian")], ANY),
    ("oltp_insert", &[("tables", "2")], ANY),
    ("oltp_insert", &[("auto_inc", "off")], ANY),
    ("bulk_insert", &[("statement_bytes", "600")], ANY),
    ("select_random_points", &[], ANY),
    ("select_random_ranges", &[("delta", "9")], ANY),
    ("dbstress", &[("obj_tables", "2"), ("obj_table_size", "3k")], ANY),
    ("dbstress", &[("ref", "random"), ("trx", "on"), ("hpk", "on"), ("rw_ratio", "3")], ANY),
    ("dbstress", &[("sel1", "0"), ("sel2", "0"), ("think_time_ms", "1")], ANY),
    ("key-order", &[("tables", "2"), ("table_size", "50")], ANY),
    ("key-order", &[("key", "random-string"), ("table_size", "50")], ANY),
    ("key-order", &[("key", "random-string"), ("rows_per_transaction", "3")], ANY),
    ("insert-benchmark", &[], &[(0, 0), (1, 0), (4, 2), (5, 2)]),
    ("insert-benchmark", &[("schema", "2023-07"), ("query_protocol", "text")], &[(4, 2), (5, 2)]),
    ("insert-benchmark", &[("deletes", "off"), ("reads", "q"), ("tables", "one")], &[(4, 1)]),
    ("tpcb", &[("scale", "3")], ANY),
    ("tpcb", &[("script", "simple-update"), ("protocol", "simple")], ANY),
    ("tpcb", &[("script", "select-only"), ("distribution", "zipfian")], ANY),
    ("tpcc", &[("size", "small"), ("warehouses", "2")], ANY),
    ("tpcc", &[("size", "small"), ("tables", "2"), ("batched", "on"), ("mix", "deck")], ANY),
    ("tpcc", &[("size", "small"), ("pipelined", "on"), ("consistency", "after")], ANY),
    ("tpcc", &[("size", "small"), ("procedures", "on"), ("consistency", "none")], ANY),
    ("tpcc", &[("size", "small"), ("foreign_keys", "on"), ("mode", "paced")], ANY),
    (
        "vectors",
        &[("rows", "300"), ("queries", "20"), ("dimensions", "4")],
        &[(0, 0), (1, 0), (2, 0)],
    ),
    ("vectors", &[("rows", "300"), ("queries", "20"), ("index", "ivfflat")], &[(1, 0), (6, 0)]),
    // Commands of these are no SQL, whose parameters the fake counts.
    ("documents", &[("documents", "1000"), ("document_size", "12")], &[]),
    ("file-io", &[("total_size", "64KiB"), ("operation", "mixed"), ("sync", "fsync")], &[]),
    ("file-io", &[("total_size", "64KiB"), ("access", "sequential"), ("files", "2")], &[]),
    ("fsync", &[("position", "append"), ("append_limit", "1600")], &[]),
    ("none", &[], &[]),
];

fn digest(text: &str) -> String {
    Md5::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn rows(workload: &MadeWorkload, dialect: Dialect, table: usize, n_rows: u64) -> String {
    let (mut row, mut bytes) = (Row::new(), Vec::new());
    for number in 0..n_rows.min(ROWS) {
        row.clear();
        workload.fill_row_in(dialect, table, number, &mut row);
        row.write_tab_separated(&mut bytes);
    }
    digest(&bytes.iter().map(|byte| char::from(*byte)).collect::<String>())
}

/// Each statement whose rows are kept gets one of twenty numbers.
fn answer(_sql: &str, _values: &[Value<'_>], rows: &mut KeptRows) {
    rows.clear(20);
    (1..=20).for_each(|number| rows.push_integer(number));
}

/// What a client of this place sends, and its audit with no answers of the server.
fn ran(workload: &MadeWorkload, dialect: Dialect, (step, role): Place) -> [String; 2] {
    let mut fake = Fake::new(dialect).in_step(step, role).answering(Box::new(answer));
    fake = fake.affecting(1);
    let sent = fake.run(workload, TRANSACTIONS).sent_text();
    let kind = KindTotals { committed: 70, undone: 3, lost: 2, ..KindTotals::default() };
    let kinds = vec![kind; workload.kinds().len()];
    let totals = AuditTotals { kinds, in_flight: 1, ..AuditTotals::default() };
    let audit: String =
        workload.audit(&totals, &[]).iter().map(|row| format!("{row:?}\n")).collect();
    [sent, audit]
}

fn pinned((name, options, places): (&str, Options, &[Place])) -> String {
    let mut out = format!("{name} {options:?}\n");
    let mut push = |line: String| writeln!(out, "{line}").unwrap();
    let fresh = || made(name, options, 5).unwrap();
    let workload = fresh();
    push(format!(
        "  recorded {:?} {:?}",
        workload.kinds(),
        digest(&format!("{:?}", workload.options()))
    ));
    push(format!("  steps {}", digest(&format!("{:?}", workload.steps()))));
    for dialect in Dialect::ALL {
        if let Err(why) = workload.check(dialect) {
            push(format!("  {dialect:?}: {why}"));
            continue;
        }
        push(format!("  {dialect:?}"));
        for (idx, table) in workload.tables(dialect).iter().enumerate() {
            let rows = rows(&workload, dialect, idx, table.rows);
            push(format!("    {}; {:?}, {} rows {rows}", table.create, table.columns, table.rows));
            table.after.iter().for_each(|sql| push(format!("      {sql}")));
        }
        let statements = workload.statements(dialect);
        push(format!("    {} statements {}", statements.len(), digest(&format!("{statements:?}"))));
        let queries = workload.audit_queries(dialect);
        push(format!("    {} queries {}", queries.len(), digest(&format!("{queries:?}"))));
        push(format!("    reads {}", digest(&format!("{:?}", workload.readings_query(dialect)))));
        for place in places {
            let [sent, audit] = ran(&fresh(), dialect, *place).map(|text| digest(&text));
            push(format!("    {place:?} sends {sent}, audits {audit}"));
        }
    }
    out
}

#[test]
fn what_is_measured_stays() {
    let all: String = CASES.iter().map(|case| pinned(*case)).collect();
    expect_file!["pinned/workloads.txt"].assert_eq(&all);
}

/// All options of all workloads with values at the ends of ranges, and each word.
#[test]
fn what_is_refused_stays() {
    let values = ["0", "1", "9000000000000000000", "-1", "0.5"].map(str::to_owned);
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for spec in Catalog::built_in().workloads() {
        for option in &spec.options {
            let values = match &option.kind {
                OptionKind::Word(words) => words.iter().map(str::to_owned).collect(),
                _ => values.to_vec(),
            };
            for value in values {
                let planned = spec.plan(&given(&[(&option.name, &value)]), request(2), Seed(1));
                if let Err(why) = planned.map(drop) {
                    let line = format!("{} = {value}: {why}", option.name);
                    found.entry(line).or_default().push(spec.name.to_string());
                }
            }
        }
    }
    let lines = found.iter().map(|(line, names)| format!("{line} ({})\n", names.join(", ")));
    expect_file!["pinned/refused.txt"].assert_eq(&lines.collect::<String>());
}
