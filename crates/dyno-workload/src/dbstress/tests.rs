//! What db_STRESS makes and sends, on a recording connection; audits of right and wrong answers.

mod audits;

use dyno_units::{Nanoseconds, Seed};
use expect_test::{Expect, expect};

use super::*;
use crate::fake::{Fake, Ran, given, made, refused_option, request};
use crate::options::Options;
use crate::{ErrorClass, MadeWorkload, StatementError, Tally};

const DIALECTS: [Dialect; 3] = [Dialect::PostgreSql, Dialect::MySql, Dialect::Sqlite];

fn make(options: &[(&str, &str)]) -> Result<MadeWorkload, PlanError> {
    made(NAME, options, 1)
}

fn settings(options: &[(&str, &str)]) -> Settings {
    Settings::read(&Options::resolve(OPTIONS, &given(options)).unwrap()).unwrap()
}

fn workload(options: &[(&str, &str)]) -> MadeWorkload {
    make(options).unwrap()
}

fn run(options: &[(&str, &str)], n: u64) -> Ran {
    Fake::of(2, 8).run(&workload(options), n)
}

#[track_caller]
fn check_tallies(options: &[(&str, &str)], expected: &[(u64, u64, u64)]) {
    let found: Vec<_> = run(options, expected.len() as u64)
        .tallies
        .iter()
        .map(|tally| (tally.reads, tally.writes, tally.others))
        .collect();
    assert_eq!(found, expected, "{options:?}");
}

#[test]
fn pauses_do_not_go_with_a_rate() {
    let check = |options: &[(&str, &str)]| {
        let workload = workload(options);
        assert_eq!(workload.check_load(false), Ok(()));
        workload.check_load(true)
    };
    assert_eq!(check(&[]), Ok(()));
    assert!(check(&[("think_time_ms", "5")]).unwrap_err().contains("`think_time_ms`"));
}

#[test]
fn a_write_follows_every_so_many_reads() {
    let (read, write) = ((2, 0, 0), (0, 3, 0));
    check_tallies(&[], &[read, write, read, write]);
    check_tallies(&[("rw_ratio", "3")], &[read, read, read, write, read, read, read, write]);
    check_tallies(&[("rw_ratio", "0")], &[read, read, read, read]);
    check_tallies(&[("trx", "on")], &[(2, 0, 2), (0, 3, 2), (2, 0, 2)]);
    check_tallies(&[("sel2", "0"), ("delete_inserts", "0")], &[(1, 0, 0), (0, 1, 0)]);
    check_tallies(&[("sel1", "3"), ("updates", "2")], &[(4, 0, 0), (0, 4, 0)]);
    check_tallies(&[("sel1", "0"), ("sel2", "0")], &[write, write]);
}

#[test]
fn kinds_are_those_that_occur() {
    let check = |options: &[(&str, &str)], expected: &[&str]| {
        assert_eq!(workload(options).kinds(), expected);
    };
    check(&[], &["read", "write"]);
    check(&[("rw_ratio", "0")], &["read"]);
    check(&[("sel1", "0"), ("sel2", "0")], &["write"]);
}

#[track_caller]
fn check_sent(options: &[(&str, &str)], n: u64, expected: Expect) {
    expected.assert_eq(&run(options, n).sent_text());
}

#[test]
fn order_and_values_of_a_read_and_of_the_write_after_it() {
    check_sent(
        &[],
        2,
        expect![[r#"
            SELECT s.ref, s.name, z.ref, z.name, o.name, o.create_date, o.note FROM object1 o, section1 s, zone1 z WHERE s.ref = o.ref_section AND z.ref = s.ref_zone AND o.ref = ? text[10]
            SELECT s.ref, s.name, h.horder, h.begin_date, h.end_date, h.note FROM history1 h, stat1 s WHERE s.ref = h.ref_stat AND h.ref_object = ? ORDER BY h.horder text[10]
            DELETE FROM history1 WHERE ref_object = ? AND horder = ? text[10] 11
            INSERT INTO history1 (ref_object, horder, ref_stat, begin_date, end_date, note) VALUES (?, ?, ?, ?, ?, ?) text[10] 11 text[3] text[10] text[10] text[100]
            UPDATE history1 SET ref_stat = ?, begin_date = ?, end_date = ?, note = ? WHERE ref_object = ? AND horder = ? text[3] text[10] text[10] text[100] text[10] 2
        "#]],
    );
    let sent = run(&[("trx", "on"), ("for_update", "on"), ("rw_ratio", "0")], 1).sent_text();
    let lines: Vec<&str> = sent.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[3]), (4, "BEGIN", "COMMIT"));
    assert!(lines[1].contains("o.ref = ? FOR UPDATE"), "{sent}");
    assert!(lines[2].contains("ORDER BY h.horder FOR UPDATE"), "{sent}");
}

#[test]
fn every_set_has_statements_of_its_own() {
    let ran = run(&[("obj_tables", "3")], 60);
    for set in 1..=3 {
        assert!(ran.sent.iter().any(|sent| sent.sql.contains(&format!("FROM object{set} o"))));
    }
    // A write is for the set that was read.
    let set_of = |sql: &str| sql.chars().find(char::is_ascii_digit);
    let sets: Vec<_> = ran.sent.iter().map(|sent| set_of(&sent.sql)).collect();
    assert!(sets.chunks(5).all(|chunk| chunk.iter().all(|set| *set == chunk[0])), "{sets:?}");
}

#[test]
fn a_retry_sends_the_same_values_again() {
    let mut fake = Fake::of(2, 8);
    // The read, DELETE and INSERT succeed.
    (0..4).for_each(|_| fake.succeed_next());
    fake.fail_next(StatementError::new(ErrorClass::Deadlock, "1213", "no"));
    let ran = fake.run(&workload(&[]), 2);
    let lines: Vec<String> = ran.sent_text().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 2 + 3 + 1 + 3);
    assert_eq!((&lines[2..5], &*lines[5]), (&lines[6..9], "ROLLBACK"));
}

#[track_caller]
fn check_tables(dialect: Dialect, options: &[(&str, &str)], expected: Expect) {
    let text: String = workload(options)
        .tables(dialect)
        .iter()
        .map(|table| format!("{} {}\n  {}\n", table.rows, table.create, table.after.join("\n  ")))
        .collect();
    expected.assert_eq(&text);
}

#[test]
fn tables_are_those_of_the_original_in_every_dialect() {
    check_tables(
        Dialect::MySql,
        &[],
        expect![[r#"
            10 CREATE TABLE zone1 (ref char(2) not null, name char(40) not null, UNIQUE KEY zone1_ref (ref))
              ANALYZE TABLE zone1
            100 CREATE TABLE section1 (ref char(2) not null, ref_zone char(2) not null, name char(40) not null, UNIQUE KEY section1_ref (ref))
              ANALYZE TABLE section1
            1000 CREATE TABLE stat1 (ref char(3) not null, name char(40) not null, numb int not null, UNIQUE KEY stat1_ref (ref))
              ANALYZE TABLE stat1
            10000 CREATE TABLE object1 (ref char(10) not null, ref_section char(2) not null, name char(30) not null, create_date char(12) not null, note char(100), UNIQUE KEY object1_ref (ref))
              ANALYZE TABLE object1
            200000 CREATE TABLE history1 (ref_object char(10) not null, horder int not null, ref_stat char(3) not null, begin_date char(12) not null, end_date char(12), note char(100), KEY history1_ref (ref_object, horder))
              ANALYZE TABLE history1
        "#]],
    );
    let of = |dialect, options: &[(&str, &str)]| workload(options).tables(dialect);
    let tables = of(Dialect::PostgreSql, &[("obj_tables", "2"), ("hpk", "on")]);
    assert_eq!(tables.len(), 10);
    assert_eq!(
        tables[9].after,
        [
            "CREATE UNIQUE INDEX history2_ref ON history2 (ref_object, horder)",
            "VACUUM ANALYZE history2"
        ]
    );
    let tables = of(Dialect::Sqlite, &[("obj_table_size", "50")]);
    assert_eq!((tables[3].rows, tables[4].rows), (50, 1000));
    assert_eq!(
        tables[4].after,
        ["CREATE INDEX history1_ref ON history1 (ref_object, horder)", "ANALYZE history1"]
    );
}

fn line(table_idx: usize, number: u64) -> String {
    let mut row = Row::new();
    workload(&[("obj_tables", "2")]).fill_row(table_idx, number, &mut row);
    let mut out = Vec::new();
    row.write_tab_separated(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn rows_are_those_of_the_original() {
    expect![[r#"
        07	Zone 07 XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX
        42	02	Section 42 XXXXXXXXXXXXXXXXXXXXXXXXXXXXX
        999	Status 999 XXXXXXXXXXXXXXXXXXXXXXXXXXXXX	0
        0000001234	34	0000001234 NAME XXXXXXXXXXXX	03/11/1934	0000001234 NOTES XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX
        0000001234	7	304	10/06/1941	10/06/1941	0000001234_07 HISTORY NOTES XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX
    "#]]
    .assert_eq(&[line(0, 7), line(1, 42), line(2, 999), line(3, 1234), line(4, 24_687)].concat());
    // The second set is like the first.
    assert_eq!(line(9, 24_687), line(4, 24_687));
    for dialect in DIALECTS {
        for (idx, table) in workload(&[]).tables(dialect).iter().enumerate() {
            assert_eq!(line(idx, 0).split('\t').count(), table.columns.len(), "{}", table.name);
        }
    }
}

#[test]
fn a_client_thinks_after_a_read_and_the_write_that_follows_it() {
    let pauses = |spread: &str| -> Vec<Nanoseconds> {
        use crate::Transactions as _;
        let settings = settings(&[("think_time_ms", "10"), ("think_time", spread)]);
        let counts = Counts::default();
        let own = Own::of(settings.sharing, settings.objects, (0, 4));
        let mut client = Client::new(&settings, (0, 4), own, counts.client((0, 4), own));
        let mut random = Seed(5).stream();
        (0..4000)
            .map(|_| {
                let kind = client.draw(&mut random);
                client.pause_after(kind, &mut random)
            })
            .collect()
    };
    let ms = |ms: u64| Nanoseconds::from_millis(ms);
    assert_eq!(pauses("constant")[..4], [ms(0), ms(10), ms(0), ms(10)]);
    for (spread, deviation_ms) in [("uniform", 5.774), ("exponential", 10.0)] {
        let of_writes: Vec<f64> =
            pauses(spread).iter().skip(1).step_by(2).map(|pause| pause.0 as f64 / 1e6).collect();
        let mean = of_writes.iter().sum::<f64>() / 2000.0;
        let variance = of_writes.iter().map(|p| (p - mean).powi(2)).sum::<f64>() / 2000.0;
        assert!((mean - 10.0).abs() < 1.0, "{spread}: mean {mean}");
        assert!((variance.sqrt() - deviation_ms).abs() < 1.0, "{spread}: {}", variance.sqrt());
    }
}

#[track_caller]
fn check_refused(options: &[(&str, &str)], expected: &str) {
    let error = refused_option(make(options));
    assert_eq!(error.name, expected, "{error}");
}

#[test]
fn senseless_options_are_refused() {
    check_refused(&[("obj_tables", "0")], "obj_tables");
    check_refused(&[("obj_table_size", "0")], "obj_table_size");
    check_refused(&[("obj_table_size", "10000M")], "obj_table_size");
    check_refused(&[("ref", "v05")], "ref");
    check_refused(&[("updates", "21")], "updates");
    check_refused(&[("updates", "0"), ("delete_inserts", "0")], "rw_ratio");
    check_refused(&[("sel1", "0"), ("sel2", "0"), ("rw_ratio", "0")], "rw_ratio");
    check_refused(&[("sel1", "0"), ("sel2", "0"), ("rw_ratio", "5")], "rw_ratio");
    check_refused(&[("think_time_ms", "-1")], "think_time_ms");
}

#[test]
fn what_cannot_run_is_refused_before_it_runs() {
    let locking = workload(&[("for_update", "on")]);
    assert!(locking.check(Dialect::Sqlite).unwrap_err().contains("`for_update`"));
    assert_eq!(locking.check(Dialect::MySql), Ok(()));
    let small = |clients| {
        let options = given(&[("obj_table_size", "1000")]);
        spec().plan(&options, request(clients), Seed(1)).map(|workload| workload.steps().len())
    };
    assert_eq!(small(100), Ok(0));
    let error = small(101).unwrap_err().to_string();
    assert!(error.contains("101 clients need at least 1010 objects"), "{error}");
}

#[test]
fn statements_are_prepared_in_the_dialect_s_own_way() {
    for dialect in DIALECTS {
        let statements = workload(&[("obj_tables", "2")]).statements(dialect);
        assert_eq!(statements.len(), 10);
        assert!(statements[4].sql.ends_with(&format!("horder = {}", dialect.placeholder(6))));
    }
    let tally = run(&[], 2).tallies[0];
    assert_eq!(tally, Tally { reads: 2, ..Tally::default() });
}
