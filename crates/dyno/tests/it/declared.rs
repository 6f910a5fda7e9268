//! Workloads declared in a study: refused if something is wrong, run and audited on every product.

use serde_json::Value;

use crate::foreign::Standing;
use crate::support::{Workbench, read_json, trial_folder};

/// A shop with one transaction of each kind: names that need quotes, all kinds of letters, values
/// that look like names, texts of a megabyte.
const HOSTILE: &str = r#"
title = "hostile"

[workload.mine]
scale = 2

[workload.mine.table.Order]
rows = 500
indexes = [["select"]]
unique = [["a b", "id"]]

[workload.mine.table.Order.columns]
id = { type = "bigint", key = true, identity = true, value = { sequence = 1 } }
"select" = { type = "int", value = { zipf = [-5, 5], null = "10%" } }
"a b" = { type = "varchar(80)", value = { text = 'Zoë"`\t\{{id}\} :x \\n ##' } }
"größe" = { type = { mysql = "double", postgresql = "double precision", sqlite = "real" }, value = { uniform = [-1.5, 1.5], decimals = 2 } }
half = { type = "int", value = { expression = "CASE WHEN :id % 2 = 0 THEN :id / 2 END" } }
stamp = { type = "timestamp", value = { timestamp = ["2020-01-01", "2020-12-31 23:59:59"] } }

[workload.mine.table.big]
rows = 2
scaled = false

[workload.mine.table.big.columns]
id = { type = "int", key = true, value = { sequence = 0 } }
body = { type = { mysql = "longtext", postgresql = "text", sqlite = "text" }, value = { letters = 1000000 } }
note = { type = "varchar(10)" }

[workload.mine.transaction.literals]
let = { i = { uniform = "Order" } }

[[workload.mine.transaction.literals.steps]]
rows = 1
read = ["a", "b", "c"]
[workload.mine.transaction.literals.steps.sql]
mysql = "SELECT ':i', \"it\\\":i\", half /* :i */ FROM `Order` WHERE id = :i -- :i"
postgresql = "SELECT ':i', $$:i$$::text, half /* /* :i */ */ FROM \"Order\" WHERE id = :i::bigint -- :i"
sqlite = "SELECT ':i', [größe], half /* :i */ FROM \"Order\" WHERE id = :i -- :i"

[[workload.mine.transaction.literals.steps]]
if = ":c IS NOT NULL AND :rows = 1"
rows = "0..1"
[workload.mine.transaction.literals.steps.sql]
mysql = "UPDATE `Order` SET `größe` = :c WHERE id = :c"
postgresql = "UPDATE \"Order\" SET größe = :c WHERE id = :c"
sqlite = "UPDATE \"Order\" SET größe = :c WHERE id = :c"

[workload.mine.transaction.large]
let = { i = { uniform = [0, 1] } }
steps = [
    { sql = "SELECT body FROM big WHERE id = :i", read = ["body"], rows = 1 },
    { sql = "UPDATE big SET body = :body, note = :n WHERE id = :i", let = { n = { text = "'#`\"\\\\" } } },
]

[workload.mine.transaction.grow]
let = { n = { sequence = "Order" } }
[[workload.mine.transaction.grow.steps]]
rows = 1
[workload.mine.transaction.grow.steps.sql]
mysql = "INSERT INTO `Order` (`id`, `select`, `a b`) VALUES (:n, 1, 'x')"
postgresql = "INSERT INTO \"Order\" (id, \"select\", \"a b\") VALUES (:n, 1, 'x')"
sqlite = "INSERT INTO \"Order\" (id, [select], [a b]) VALUES (:n, 1, 'x')"

[workload.mine.transaction.taken_back]
let = { d = { uniform = [1, 10] } }
[[workload.mine.transaction.taken_back.steps]]
rows = 10
[workload.mine.transaction.taken_back.steps.sql]
mysql = "DELETE FROM `Order` WHERE id <= 10 AND :d > 0"
postgresql = "DELETE FROM \"Order\" WHERE id <= 10 AND :d::int > 0"
sqlite = "DELETE FROM \"Order\" WHERE id <= 10 AND :d > 0"
[[workload.mine.transaction.taken_back.steps]]
roll_back = true
"#;

/// One short trial on a product.
fn design(product: &str) -> String {
    format!(
        "\n[database.x]\nproduct = \"{product}\"\n[design]\nclients = 3\nrepetitions = 1\n\
         duration = \"1500ms\"\nwarm_up = \"300ms\"\nrest = \"0s\"\nreuse = false\n"
    )
}

/// Of one trial; returns its summary.
fn run(bench: &Workbench, study: &str) -> Value {
    bench.write("study.toml", study);
    bench.dyno_good(&["run", "study.toml", "--out", "run"]);
    read_json(&trial_folder(&bench.path("run"), 1).join("summary.json"))
}

/// The audit covers all rows and passes; transactions fail only by locks.
#[track_caller]
fn check(summary: &Value, n_tables: usize) {
    let audit = summary["audit"].as_array().unwrap();
    let of_tables = audit
        .iter()
        .filter(|row| row["name"].as_str().is_some_and(|name| name.starts_with("rows of table")));
    assert_eq!(of_tables.count(), n_tables, "{audit:#?}");
    assert!(audit.iter().all(|row| row["pass"] == true), "{audit:#?}");
    for kind in summary["steps"][0]["kinds"].as_array().unwrap() {
        let outcomes = kind["outcomes"].as_object().unwrap();
        let allowed = ["committed", "rolled_back", "deadlock", "lock_timeout", "serialization"];
        let is_right = outcomes.keys().all(|outcome| allowed.contains(&outcome.as_str()));
        assert!(is_right, "{kind:#} {:#}", summary["steps"][0]["error_examples"]);
        let done = outcomes.get("committed").or(outcomes.get("rolled_back"));
        assert!(done.and_then(Value::as_u64).unwrap_or(0) > 0, "{kind:#}");
    }
}

fn hostile_on(product: &str) {
    let bench = Workbench::new();
    let summary = run(&bench, &format!("{HOSTILE}{}", design(product)));
    check(&summary, 2);
}

#[test]
fn a_hostile_study_runs_on_sqlite() {
    hostile_on("sqlite");
}

#[test]
fn a_hostile_study_runs_on_mariadb() {
    hostile_on("mariadb");
}

#[test]
fn a_hostile_study_runs_on_postgresql() {
    hostile_on("postgresql");
}

/// The shipped quickstart's workload on another product.
fn shop_on(product: &str) {
    let bench = Workbench::new();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../studies/declared/quickstart.toml");
    let study = std::fs::read_to_string(path).unwrap();
    let from = study.find("[workload.").unwrap();
    let to = study.find("[design]").unwrap();
    let summary = run(&bench, &format!("title = \"x\"\n{}{}", &study[from..to], design(product)));
    check(&summary, 3);
}

#[test]
fn the_shop_runs_on_mariadb() {
    shop_on("mariadb");
}

#[test]
fn the_shop_runs_on_postgresql() {
    shop_on("postgresql");
}

/// One table and one statement.
fn small(table: &str, transaction: &str) -> String {
    format!(
        "title = \"x\"\n[workload.mine.table.t]\nrows = 10\ncolumns = {{ id = {{ type = \"int\", key = true, \
         value = {{ sequence = 1 }} }}{table} }}\n[workload.mine.transaction.go]\n{transaction}\n"
    )
}

#[test]
fn wrong_declarations_are_refused_with_their_place() {
    let bench = Workbench::new();
    let check = |table: &str, transaction: &str, place: &str, why: &str| {
        let study = small(table, transaction) + &design("sqlite");
        bench.write("study.toml", &study);
        let answer = bench.dyno(&["check", "study.toml"]);
        assert!(answer.code == 2 && answer.err.contains(why), "{why}: {}", answer.err);
        let line = answer.err.lines().find(|line| line.contains(" --> ")).unwrap_or_default();
        assert!(line.ends_with(place), "{why}: {}", answer.err);
    };
    let select = "steps = [{ sql = \"SELECT 1\" }]";
    check("", "steps = [{ sql = \"SELECT :x\" }]", ":6:18", "`:x` has no value here");
    check("", "steps = [{ sql = \"SELECT 'x\" }]", ":6:18", "is not closed");
    check("", "steps = [{ sql = \"SELECT 1\", row = 1 }]", ":6:36", "unknown key `row`");
    check(
        "",
        "steps = [{ sql = \"SELECT 1\", if = \":rows >\" }]",
        ":6:35",
        "is not an expression",
    );
    check("", "begin = false\nsteps = [{ roll_back = true }]", ":5:28", "nothing to roll back");
    check("", &format!("weight = 0\n{select}"), ":5:16", "weight 0");
    check("", &format!("let = {{ x = 1 }}\n{select}"), ":6:13", "never used");
    check(
        "",
        "steps = [{ sql = \"INSERT INTO T (id, k) VALUES (1, 1)\" }]",
        ":6:18",
        "no column `k`",
    );
    check(
        ", x = { type = \"int\", value = { zipf = [5, 1] } }",
        select,
        ":4:111",
        "is above the upper",
    );
    check(
        ", x = { type = \"int\", value = { zipf = [1, \"u\"] } }",
        select,
        ":4:115",
        "no table `u`",
    );
    check(
        ", x = { type = \"int\", value = { expression = \":y\" } }",
        select,
        ":4:117",
        "`y` is not known",
    );
    check(
        ", x = { type = \"int\", value = { expression = \"1 / (:id - 3)\" } }",
        select,
        ":4:74",
        "in row 3",
    );
    check(
        ", x = { type = \"int\", value = { uniform = [1, 2], zipf = 1 } }",
        select,
        ":4:94",
        "a value has only one",
    );
}

#[test]
fn what_only_one_dialect_refuses_is_refused_there() {
    let bench = Workbench::new();
    let only = "steps = [{ sql = { postgresql = \"SELECT $1\", mysql = \"SELECT 1\" } }]";
    for (product, why) in [
        ("sqlite", "transaction `go`, step 1: the statement is not given for this dialect"),
        ("postgresql", "transaction `go`, step 1: `$1` is a placeholder"),
        ("mariadb", ""),
    ] {
        bench.write("study.toml", &(small("", only) + &design(product)));
        let answer = bench.dyno(&["check", "study.toml"]);
        assert_eq!(answer.code, if why.is_empty() { 0 } else { 2 }, "{}", answer.err);
        assert!(answer.err.contains(why), "{}", answer.err);
    }
}

#[test]
fn what_the_server_refuses_ends_the_trial_with_its_words() {
    let bench = Workbench::new();
    for (sql, why) in [("SELEC 1", "syntax"), ("SELECT * FROM missing", "missing")] {
        let study = small("", &format!("steps = [{{ sql = \"{sql}\" }}]")) + &design("sqlite");
        bench.write("study.toml", &study);
        let answer = bench.dyno(&["run", "study.toml", "--out", "run"]);
        assert!(answer.code != 0 && answer.err.contains(why), "{} {}", answer.out, answer.err);
        std::fs::remove_dir_all(bench.path("run")).ok();
    }
}

#[test]
fn rows_that_are_not_there_are_counted_as_errors() {
    let bench = Workbench::new();
    let transaction = "let = { i = { uniform = [1, 20] } }\n\
        steps = [{ sql = \"SELECT id FROM t WHERE id = :i\", rows = 1 }]";
    let summary = run(&bench, &(small("", transaction) + &design("sqlite")));
    let outcomes = &summary["steps"][0]["kinds"][0]["outcomes"];
    let count = |name: &str| outcomes[name].as_u64().unwrap_or(0) as f64;
    let share = count("refused") / (count("refused") + count("committed"));
    assert!((0.4..0.6).contains(&share), "{outcomes}");
    let examples = summary["steps"][0]["error_examples"].to_string();
    assert!(
        examples.contains("transaction `go`, step 1: 0 rows, and 1 were expected"),
        "{examples}"
    );
}

#[test]
fn values_come_from_a_file_beside_the_study() {
    let bench = Workbench::new();
    let table = ", city = { type = \"varchar(30)\", value = { lines = \"cities.txt\" } }";
    let transaction = "let = { c = { lines = \"cities.txt\" } }\n\
        steps = [{ sql = \"SELECT COUNT(*) FROM t WHERE city = :c\", rows = 1 }]";
    let study = small(table, transaction) + &design("sqlite");
    bench.write("study.toml", &study);
    let answer = bench.dyno(&["check", "study.toml"]);
    assert!(
        answer.code == 2 && answer.err.contains("cannot read the list of values"),
        "{}",
        answer.err
    );
    bench.write("cities.txt", "Zürich\nParis\n");
    check(&run(&bench, &study), 1);
}

/// One table with these steps; expects the place and words of each mistake.
#[track_caller]
fn check_sql(product: &str, steps: &str, more: &[&str], expected: &[(&str, &str)]) {
    let bench = Workbench::new();
    bench.write("study.toml", &(small("", steps) + &design(product)));
    let answer = bench.dyno(&[&["check", "study.toml"], more].concat());
    assert_eq!(
        answer.code,
        if expected.is_empty() { 0 } else { 2 },
        "{}{}",
        answer.out,
        answer.err
    );
    let places = answer.err.lines().filter(|line| line.contains(" --> "));
    let places: Vec<&str> = places.collect();
    assert_eq!(places.len(), expected.len(), "{}", answer.err);
    for (place, (end, words)) in places.iter().zip(expected) {
        assert!(place.ends_with(end) && answer.err.contains(words), "{}", answer.err);
    }
}

/// Two steps are wrong: a missing column and a missing table.
const MISSPELT: &str = "let = { i = { uniform = [1, 9] } }\n\
    steps = [{ sql = \"SELECT id FROM t WHERE id = :i\" },\n\
    { sql = \"UPDATE t SET idd = :i\" },\n\
    { sql = { mysql = \"SELECT id FROM tt\", postgresql = \"SELECT id FROM tt\", \
    sqlite = \"SELECT id FROM tt\" } }]";

#[test]
fn misspelt_names_are_found_before_anything_runs_on_sqlite() {
    let wrong = [(":8:9", "no such column: idd"), (":9:83", "no such table: tt")];
    check_sql("sqlite", MISSPELT, &[], &wrong);
    check_sql("sqlite", "steps = [{ sql = \"SELECT id FROM t\" }]", &[], &[]);
}

#[test]
fn misspelt_names_are_found_on_servers_that_are_started_for_it() {
    let start = ["--start-servers"];
    let wrong = [(":8:9", "Unknown column 'idd'"), (":9:19", "tt' doesn't exist")];
    check_sql("mariadb", MISSPELT, &start, &wrong);
    let wrong =
        [(":8:9", "column \"idd\" of relation"), (":9:53", "relation \"tt\" does not exist")];
    check_sql("postgresql", MISSPELT, &start, &wrong);
    check_sql("postgresql", "steps = [{ sql = \"SELECT id FROM t\" }]", &start, &[]);
}

/// Expects these words in the answer.
#[track_caller]
fn check_kinds(product: &str, more: &[&str], kinds: &[(&str, &str)], expected: (i32, &[&str])) {
    let bench = Workbench::new();
    let mut study = small(", u = { type = \"varchar(40)\", value = { uuid = true } }", kinds[0].1);
    for (name, transaction) in &kinds[1..] {
        study += &format!("[workload.mine.transaction.{name}]\n{transaction}\n");
    }
    bench.write("study.toml", &(study + &design(product)));
    let answer = bench.dyno(&[&["check", "study.toml"], more].concat());
    let said = answer.out + &answer.err;
    assert_eq!(answer.code, expected.0, "{said}");
    assert!(expected.1.iter().all(|words| said.contains(words)), "{said}");
}

#[test]
fn each_kind_of_transaction_is_executed_once() {
    let right = ("go", "steps = [{ sql = \"SELECT id FROM t\", rows = 100 }]");
    // The row that is read does not exist, so the rest cannot be tried.
    let reads = (
        "reads",
        "steps = [{ sql = \"SELECT id FROM t WHERE id = 77\", read = [\"i\"] },\n\
         { sql = \"INSERT INTO t (id) SELECT id FROM t\" }]",
    );
    let ddl = ("ddl", "steps = [{ sql = \"CREATE TABLE made (a int)\" }]");
    let wrong = ("wrong", "let = { v = { letters = 4 } }\nsteps = [{ sql = \"SELECT json(:v)\" }]");
    let unchecked = [
        "no errors",
        "not checked: transaction `reads` of `mine` on `x`: it was not tried to its end: UNIQUE",
        "not checked: transaction `ddl` of `mine` on `x`: not all of its statements only read",
    ];
    check_kinds("sqlite", &[], &[right, reads, ddl], (0, &unchecked));
    let refused = ["the database refuses this transaction", "malformed JSON", "transaction.wrong"];
    check_kinds("sqlite", &[], &[right, wrong], (2, &refused));
    let wrong = (
        "wrong",
        "let = { v = { letters = 36 } }\nsteps = [{ sql = \"SELECT id FROM t WHERE CAST(u AS uuid) = :v\" }]",
    );
    let refused = ["the database refuses this transaction", "invalid input syntax for type uuid"];
    check_kinds("postgresql", &["--start-servers"], &[right, wrong], (2, &refused));
}

#[test]
fn a_transaction_that_cannot_run_ends_the_trial_before_its_load() {
    let bench = Workbench::new();
    let kind = |name: &str, sql: &str| {
        format!(
            "[workload.mine.transaction.{name}]\nlet = {{ v = {{ letters = 4 }} }}\n\
             steps = [{{ sql = \"SELECT id FROM t\" }}, {{ sql = \"{sql}\" }}]\n"
        )
    };
    let study = small("", "steps = [{ sql = \"DELETE FROM t WHERE id < 0\" }]")
        + &kind("wrong", "SELECT json(:v)")
        + &kind("text", "SELECT upper(:v)")
        + &design("sqlite");
    bench.write("study.toml", &study);
    bench.dyno(&["run", "study.toml", "--out", "run"]);
    let trial = read_json(&trial_folder(&bench.path("run"), 1).join("summary.json"));
    let said = trial["outcome"].to_string();
    assert!(said.contains("transaction `wrong`: malformed JSON"), "{trial}");
    assert!(!said.contains("`text`") && trial["steps"].as_array().unwrap().is_empty(), "{trial}");
}

#[test]
fn what_was_not_checked_is_said() {
    let bench = Workbench::new();
    bench.write("study.toml", &(small("", MISSPELT) + &design("postgresql")));
    let answer = bench.dyno_good(&["check", "study.toml"]);
    let said = "not checked: the statements of `mine` on `x`: no server was started";
    assert!(answer.out.contains(said), "{}", answer.out);
    bench.write("study.toml", &(small("", MISSPELT) + &design("null-mysql")));
    let answer = bench.dyno_good(&["check", "study.toml"]);
    assert!(answer.out.contains("`null-mysql` has no tables"), "{}", answer.out);
}

#[test]
fn a_type_that_the_database_refuses_is_shown_at_its_table() {
    let bench = Workbench::new();
    let column = ", x = { type = \"int int (\", value = 1 }";
    let study = small(column, "steps = [{ sql = \"SELECT 1\" }]") + &design("sqlite");
    bench.write("study.toml", &study);
    let answer = bench.dyno(&["check", "study.toml"]);
    assert_eq!(answer.code, 2, "{}", answer.out);
    assert!(
        answer.err.contains("refuses this table") && answer.err.contains(":2:22"),
        "{}",
        answer.err
    );
}

/// A server by URL with a user's table: statements are prepared, and nothing changes.
fn check_on_a_standing(product: &str, url: impl Fn(&Standing) -> String, words: [&str; 2]) {
    let standing = Standing::start(product);
    let mut connection = standing.connection();
    connection.query("CREATE TABLE theirs (id int)").unwrap();
    connection.query("INSERT INTO theirs VALUES (7)").unwrap();
    let bench = Workbench::new();
    let study = |url: &str, steps: &str| {
        format!(
            "title = \"x\"\n[database.x]\nurl = \"{url}\"\nallow_existing_tables = true\n\
             [workload.mine.transaction.go]\nsteps = [{steps}]\n[design]\nclients = 1\n"
        )
    };
    let right = "{ sql = \"DELETE FROM theirs\" }, { sql = \"SELECT id FROM theirs\" }";
    let wrong = "{ sql = \"DELETE FROM theirs\" }, { sql = \"SELECT idd FROM theirs\" },\n\
                 { sql = \"SELECT id FROM their\" }, { sql = \"SELECT id FROM theirs\" }";
    bench.write("right.toml", &study(&url(&standing), right));
    let answer = bench.dyno_good(&["check", "right.toml"]);
    let said = "not checked: the transactions of `mine` on `x`: they were prepared, not executed";
    assert_eq!(answer.out.matches("not checked").count(), 1, "{}", answer.out);
    assert!(answer.out.contains(said), "{}", answer.out);
    bench.write("wrong.toml", &study(&url(&standing), wrong));
    let answer = bench.dyno(&["check", "wrong.toml"]);
    assert_eq!(answer.code, 2, "{}", answer.out);
    assert_eq!(answer.err.matches(" --> ").count(), 2, "{}", answer.err);
    assert!(words.iter().all(|word| answer.err.contains(word)), "{}", answer.err);
    assert!(answer.err.contains(":6:50") && answer.err.contains(":7:9"), "{}", answer.err);
    let rows = connection.query("SELECT id FROM theirs").unwrap();
    assert_eq!(rows, [[Some("7".to_owned())]]);
    let made = small("", "steps = [{ sql = \"SELECT id FROM t\" }]");
    let made = format!("{made}[database.x]\nurl = \"{}\"\n[design]\nclients = 1\n", url(&standing));
    bench.write("made.toml", &made);
    let answer = bench.dyno_good(&["check", "made.toml"]);
    assert!(answer.out.contains("its tables are created there only when"), "{}", answer.out);
    assert!(connection.query("SELECT id FROM t").is_err(), "a table was made");
}

#[test]
fn statements_are_prepared_on_a_mariadb_that_runs_and_change_nothing() {
    let url = |standing: &Standing| {
        let catalog = standing.connection().query("SELECT DATABASE()").unwrap();
        let catalog = catalog[0][0].clone().unwrap();
        format!("mysql://root@x/{catalog}?socket={}", standing.socket.display())
    };
    check_on_a_standing("mariadb", url, ["Unknown column 'idd'", "their' doesn't exist"]);
}

#[test]
fn statements_are_prepared_on_a_postgresql_that_runs_and_change_nothing() {
    let url = |standing: &Standing| {
        let catalog = standing.connection().query("SELECT current_database()").unwrap();
        let catalog = catalog[0][0].clone().unwrap();
        let folder = standing.socket.parent().unwrap().display().to_string();
        let port = standing.socket.extension().unwrap().to_string_lossy().into_owned();
        format!("postgresql://dyno@x:{port}/{catalog}?host={folder}")
    };
    let words = ["column \"idd\" does not exist", "relation \"their\" does not exist"];
    check_on_a_standing("postgresql", url, words);
}

#[test]
fn a_server_that_is_not_there_leaves_statements_unchecked() {
    let bench = Workbench::new();
    let study = "title = \"x\"\n[database.x]\nurl = \"mysql://me:hunter7@127.0.0.1:1/shop\"\n\
                 [workload.mine.transaction.go]\nsteps = [{ sql = \"SELECT a FROM b\" }]\n[design]\nclients = 1\n";
    bench.write("study.toml", study);
    let answer = bench.dyno_good(&["check", "study.toml"]);
    assert!(
        answer.out.contains("not checked: the statements of `mine` on `x`: cannot connect"),
        "{}",
        answer.out
    );
    assert!(!answer.out.contains("hunter7"), "{}", answer.out);
}
