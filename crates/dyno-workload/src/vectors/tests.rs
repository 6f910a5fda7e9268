//! Steps, statements, rows; exact neighbours against brute force; recall of known answers.

use std::collections::BTreeSet;
use std::sync::Arc;

use dyno_units::Seed;
use proptest::prelude::*;

use super::data::{FvecsFile, InMemory, Mixture, Source};
use super::exact::{Neighbours, Request, neighbours};
use super::*;
use crate::fake::{self, Fake, made, refused_option, request};
use crate::options::Options;
use crate::{KeptRows, MadeWorkload, Value};

fn plan(given: &[(&str, &str)]) -> Vectors {
    let options = Options::resolve(settings::OPTIONS, &fake::given(given)).unwrap();
    let (name, request) = (&NAME.into(), request(2));
    planned(&PlanInput {
        name,
        options: &options,
        target: crate::Target::Sql,
        request,
        seed: Seed(1),
    })
    .unwrap()
}

const SMALL: [(&str, &str); 4] =
    [("rows", "300"), ("queries", "20"), ("dimensions", "8"), ("clusters", "5")];

fn small(more: &[(&'static str, &'static str)]) -> Vectors {
    plan(&[&SMALL[..], more].concat())
}

/// Right answers by computing every distance in double precision.
fn by_brute_force(
    source: &InMemory,
    queries: &[f32],
    k: usize,
    distance: Distance,
) -> Vec<Vec<u64>> {
    let of_query = |query: &[f32]| {
        let vectors = source.numbers.chunks(source.dimensions);
        let mut all: Vec<(f64, u64)> =
            vectors.zip(0..).map(|(vector, id)| (distance.between(query, vector), id)).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let kth = all[k - 1].0;
        let rounding = (source.dimensions + 4) as f64 * f64::from(f32::EPSILON);
        let bound = match distance {
            Distance::L2 => kth * (1.0 + rounding),
            Distance::Cosine => kth + rounding,
        };
        let right: BTreeSet<u64> =
            all.iter().filter(|(distance, _)| *distance <= bound).map(|(_, id)| *id).collect();
        right.into_iter().collect()
    };
    queries.chunks(source.dimensions).map(of_query).collect()
}

fn found(source: &InMemory, queries: &[f32], k: usize, distance: Distance) -> Vec<Vec<u64>> {
    let dimensions = source.dimensions;
    let request = Request { queries, dimensions, k, distance, threads: 2 };
    let all: Neighbours = neighbours(source, &request).unwrap();
    (0..queries.len() / dimensions).map(|query| all.of(query).to_vec()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn exact_neighbours_are_those_of_brute_force(
        seed: u64,
        n in 60_u64..600,
        dimensions in 1_usize..40,
        k in 1_usize..12,
        offset in prop::sample::select(vec![0.0_f32, 100.0, 10_000.0]),
        is_cosine: bool,
    ) {
        // Far from the origin, single precision cannot tell near vectors apart.
        let shifted = |label: &str, n: u64| {
            let mixture = Mixture::new(Seed(seed), label, (n, dimensions, 7));
            let mut numbers = data::first(&mixture, n, dimensions).unwrap();
            numbers.iter_mut().for_each(|number| *number += offset);
            numbers
        };
        let source = InMemory { numbers: shifted("rows", n), dimensions };
        let queries = shifted("queries", 5);
        let distance = if is_cosine { Distance::Cosine } else { Distance::L2 };
        let expected = by_brute_force(&source, &queries, k, distance);
        prop_assert_eq!(found(&source, &queries, k, distance), expected);
    }
}

#[test]
fn all_that_are_as_near_as_the_last_one_are_right() {
    // 200 times the same vector: more than there are candidates.
    let mut numbers = vec![3.0; 200 * 4];
    numbers[0] = 2.0;
    let source = InMemory { numbers, dimensions: 4 };
    let all = found(&source, &[0.0; 4], 2, Distance::L2);
    assert_eq!(all, [(0..200).collect::<Vec<u64>>()]);
}

#[test]
fn blocks_and_tiles_are_put_together() {
    // On a line: the neighbours of each are known without computing.
    let numbers: Vec<f32> = (0..20_000).map(|x| x as f32).collect();
    let source = InMemory { numbers, dimensions: 1 };
    let queries: Vec<f32> = (0..300).map(|nth| nth as f32 * 60.0 + 100.2).collect();
    let all = found(&source, &queries, 3, Distance::L2);
    for (query, ids) in queries.iter().zip(all) {
        let nearest = query.floor() as u64;
        assert_eq!(ids, [nearest - 1, nearest, nearest + 1], "{query}");
    }
}

#[test]
fn vectors_without_a_distance_are_named() {
    let check = |numbers: Vec<f32>, distance, expected: &str| {
        let source = InMemory { numbers, dimensions: 2 };
        let request = Request { queries: &[1.0, 1.0], dimensions: 2, k: 1, distance, threads: 2 };
        let error = neighbours(&source, &request).unwrap_err();
        assert!(error.0.contains(expected), "{error}");
    };
    check(
        vec![1.0, 1.0, f32::NAN, 0.0],
        Distance::L2,
        "vector 1 contains a value that is not a \
        number",
    );
    check(vec![1.0, 1.0, 0.0, 0.0], Distance::Cosine, "vector 1 is zero");
}

#[test]
fn an_answer_is_right_as_far_as_its_ids_are() {
    let source = InMemory { numbers: (0..50).map(|x| x as f32).collect(), dimensions: 1 };
    let request =
        Request { queries: &[10.2], dimensions: 1, k: 3, distance: Distance::L2, threads: 1 };
    let right = neighbours(&source, &request).unwrap();
    let check =
        |found: &[i64], expected| assert_eq!(right.n_right(0, found), expected, "{found:?}");
    check(&[9, 10, 11], 3);
    check(&[11, 10, 9], 3);
    check(&[10, 10, 10], 1);
    check(&[10, 12, -1], 1);
    check(&[], 0);
}

#[test]
fn one_index_is_searched_with_every_parameter() {
    let outline = |given: &[(&'static str, &'static str)]| {
        let steps = small(given).outline.steps;
        let role = |step: &WorkloadStep| format!("{}: {}", step.name, step.roles[0]);
        steps.iter().map(role).collect::<Vec<_>>()
    };
    assert_eq!(
        outline(&[("ef_search", "10,40")]),
        [
            "exact: 2 × query",
            "index: 1 × builder until 2 are committed",
            "search 1: 2 × query",
            "search 2: 2 × query"
        ]
    );
    assert_eq!(outline(&[("index", "none"), ("exact", "off")]), ["exact: 2 × query"]);
    assert_eq!(outline(&[("index", "ivfflat"), ("exact", "off"), ("probes", "3")]).len(), 2);
}

#[test]
fn rows_and_queries_follow_from_the_seed() {
    let (one, same) = (small(&[]), small(&[]));
    let row = |plan: &Vectors, dialect, number| {
        let mut row = Row::new();
        plan.fill_row_in(dialect, 0, number, &mut row);
        let mut text = Vec::new();
        row.write_tab_separated(&mut text);
        text
    };
    let text = row(&one, Dialect::PostgreSql, 7);
    assert_eq!(text, row(&same, Dialect::PostgreSql, 7));
    assert_ne!(text, row(&one, Dialect::PostgreSql, 8));
    let text = String::from_utf8(text).unwrap();
    let (id, vector) = text.trim_end().split_once('\t').unwrap();
    let numbers: Vec<f32> =
        vector.trim_matches(['[', ']']).split(',').map(|number| number.parse().unwrap()).collect();
    let mut expected = vec![0.0; 8];
    one.source.read(7, &mut expected).unwrap();
    assert_eq!((id, numbers), ("7", expected.clone()));
    // The bytes of the numbers: four for each.
    let mut stored = Row::new();
    one.fill_row(0, 7, &mut stored);
    let bytes: Vec<u8> = expected.iter().flat_map(|number| number.to_le_bytes()).collect();
    assert_eq!(stored.text(stored.cells()[1]), bytes);
    let mut query = vec![0.0; 8];
    one.queries.read(7, &mut query).unwrap();
    assert_ne!(query, expected, "a query is no row");
}

/// Runs a client of a step, whose answers are those that `answer` writes.
fn run(
    plan: Vectors,
    dialect: Dialect,
    step: usize,
    answer: impl FnMut(&str, &[Value<'_>], &mut KeptRows) + Send + 'static,
) -> (fake::Ran, Arc<Bench>) {
    let bench = Arc::new(Bench::new(plan.clone()));
    let workload = MadeWorkload::with(Arc::new(plan), bench.clone());
    let fake = Fake::new(dialect).in_step(step, 0).answering(Box::new(answer));
    (fake.run(&workload, 2), bench)
}

#[test]
fn each_server_is_asked_in_its_own_words() {
    let check = |dialect, given: &[(&'static str, &'static str)], step, expected: &[&str]| {
        let (ran, _) = run(small(given), dialect, step, |_, _, rows| rows.clear(1));
        let mut sent: Vec<&str> = ran.sent.iter().map(|sent| sent.sql.as_str()).collect();
        sent.dedup();
        assert_eq!(sent, expected);
    };
    use Dialect::{MySql, PostgreSql};
    let of_postgresql = "SELECT id FROM vectors ORDER BY v <-> $1 LIMIT 10";
    check(PostgreSql, &[], 0, &[of_postgresql]);
    check(
        PostgreSql,
        &[],
        2,
        &["SET hnsw.ef_search = 10", "SET enable_seqscan = off", of_postgresql],
    );
    check(
        MySql,
        &[("distance", "cosine")],
        3,
        &[
            "SET SESSION mhnsw_ef_search = 20",
            "SELECT id FROM vectors FORCE INDEX (vectors_v) \
             ORDER BY VEC_DISTANCE_COSINE(v, CAST(? AS BINARY)) LIMIT 10",
        ],
    );
    check(
        PostgreSql,
        &[],
        1,
        &[
            "CREATE INDEX vectors_v ON vectors USING hnsw (v vector_l2_ops) \
             WITH (m = 16, ef_construction = 64)",
            "SELECT pg_relation_size('vectors_v')",
        ],
    );
    check(
        PostgreSql,
        &[("index", "ivfflat"), ("distance", "cosine")],
        1,
        &[
            "CREATE INDEX vectors_v ON vectors USING ivfflat (v vector_cosine_ops) WITH (lists = 10)",
            "SELECT pg_relation_size('vectors_v')",
        ],
    );
}

#[test]
fn recall_is_that_of_the_answers() {
    let plan = small(&[]);
    let right = plan.neighbours().unwrap();
    let encoded = Bench::new(plan.clone()).encoded(Dialect::MySql).unwrap();
    let answers = move |left_out: usize| {
        let (right, encoded) = (Arc::clone(&right), Arc::clone(&encoded));
        move |_: &str, values: &[Value<'_>], rows: &mut KeptRows| {
            let [Value::Text(sent)] = values else { panic!("{values:?}") };
            let query = encoded.iter().position(|query| **query == **sent).unwrap();
            rows.clear(1);
            right.of(query)[left_out..].iter().for_each(|id| rows.push_integer(*id as i64));
        }
    };
    let recall = |step, left_out| {
        let (_, clients) = run(plan.clone(), Dialect::MySql, step, answers(left_out));
        let figures = clients.figures(&MeasuredStep { step, ..MeasuredStep::default() });
        let audit = clients.audit(&AuditTotals::default(), &[]);
        let exact = audit.last().unwrap();
        (figures, exact.pass, exact.is_undecided)
    };
    let [id, search] = [FIGURES[0].id, FIGURES[1].id];
    assert_eq!(recall(0, 0), (vec![(id, 1.0)], true, false));
    assert_eq!(recall(0, 1), (vec![(id, 0.9)], false, false));
    assert_eq!(recall(3, 4), (vec![(search, 20.0), (id, 0.6)], true, true));
}

#[test]
fn the_size_of_the_index_is_a_figure() {
    let answer = |sql: &str, _: &[Value<'_>], rows: &mut KeptRows| {
        rows.clear(1);
        if sql.contains("innodb_sys_tablespaces") {
            rows.push_text(b"81920");
        }
    };
    let (_, bench) = run(small(&[]), Dialect::MySql, 1, answer);
    let step = MeasuredStep { step: 1, server_memory: Some(5e6), ..MeasuredStep::default() };
    let figures = bench.figures(&step);
    assert_eq!(figures, [(FIGURES[2].id, 81_920.0), (FIGURES[3].id, 5e6)]);
}

#[test]
fn what_cannot_be_is_refused() {
    let check = |given: &[(&'static str, &'static str)], option: &str, part: &str| {
        let error = refused_option(made(NAME, given, 1));
        assert_eq!(error.name, option);
        assert!(error.reason.contains(part), "{error}");
    };
    check(&[("ef_search", "5,10")], "ef_search", "less than `k`");
    check(&[("ef_search", "40,20")], "ef_search", "have to rise");
    check(&[("ef_search", "x")], "ef_search", "a list of whole numbers");
    check(&[("rows", "10")], "rows", "too few");
    check(&[("m", "40")], "ef_construction", "less than twice");
    check(&[("recall", "95")], "recall", "at most 1");
    let large = [("dimensions", "16000"), ("clusters", "100000")];
    check(&large, "clusters", "at most 1048 with so many dimensions");
    check(&[("data", "base.fvecs")], "query_data", "name the file of the queries");
    check(&[("query_data", "q.fvecs")], "query_data", "name the file of vectors");
    let files = [("data", "/nowhere/base.fvecs"), ("query_data", "/nowhere/q.fvecs")];
    check(&files, "data", "paths are relative");
    check(&[("data", "a.hdf5"), ("query_data", "b")], "data", "convert its tables");
    let check = |given: &[(&'static str, &'static str)], dialect, part: &str| {
        let why = small(given).check(dialect).unwrap_err();
        assert!(why.contains(part), "{why}");
    };
    check(&[], Dialect::Sqlite, "SQLite has no vectors");
    check(&[("index", "ivfflat")], Dialect::MySql, "MariaDB has HNSW");
    check(&[("dimensions", "2001")], Dialect::PostgreSql, "at most 2000");
    assert_eq!(small(&[]).check(Dialect::MySql), Ok(()));
}

#[test]
fn files_are_read_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let write = |name: &str, vectors: &[&[f32]]| {
        let mut bytes = Vec::new();
        for vector in vectors {
            bytes.extend_from_slice(&(vector.len() as u32).to_le_bytes());
            vector.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        }
        std::fs::write(path(name), bytes).unwrap();
    };
    write("base.fvecs", &[&[1.0, 2.0], &[3.0, 4.0], &[5.0, 6.0]]);
    write("query.fvecs", &[&[3.1, 4.1]]);
    let (data, queries) = (path("base.fvecs"), path("query.fvecs"));
    let given = [("data", data.as_str()), ("query_data", queries.as_str()), ("k", "2")];
    let plan = plan(&[&given[..], &[("ef_search", "10")]].concat());
    assert_eq!((plan.dimensions, plan.settings.rows), (2, 3));
    assert_eq!(plan.neighbours().unwrap().of(0), [1, 2]);
    let check = |name: &str, part: &str| {
        let error = FvecsFile::open(&path(name)).map(|_| ()).unwrap_err();
        assert!(error.0.contains(part), "{error}");
    };
    std::fs::write(path("cut.fvecs"), &std::fs::read(&data).unwrap()[..30]).unwrap();
    check("cut.fvecs", "cut short");
    std::fs::write(path("empty.fvecs"), "").unwrap();
    check("empty.fvecs", "it is empty");
    std::fs::write(path("text.fvecs"), "1.0 2.0").unwrap();
    check("text.fvecs", "not in fvecs format");
    // The same size, and a second vector that says that it has another length.
    write("mixed.fvecs", &[&[1.0, 2.0, 9.0], &[3.0]]);
    let mixed = FvecsFile::open(&path("mixed.fvecs"));
    assert!(mixed.is_err() || mixed.unwrap().read(1, &mut [0.0; 3]).is_err());
}
