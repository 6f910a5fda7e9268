//! `dyno capture` as a user runs it: a server's log becomes a study that loads the server again.

use crate::support::{read_json, trial_folder};
use crate::up::UpBench;

/// 40 transactions with an update, and 80 reads.
fn statements() -> String {
    let transaction = |n: u64| {
        // Half of the reads are of few rows.
        let (id, other) = (n * 7 % 200 + 1, 40 + n % 4);
        format!(
            "BEGIN; UPDATE stock SET n = n - 1 WHERE id = {id}; SELECT n FROM stock WHERE id = {id}; \
             COMMIT; SELECT c FROM stock WHERE id = {other}; SELECT c FROM stock WHERE id = {id}; "
        )
    };
    (0..40).map(transaction).collect()
}

#[test]
fn the_general_log_of_a_server_becomes_a_study_that_loads_it() {
    let bench = UpBench::new();
    let url = bench.up(&["mariadb", "--name", "here"]);
    let ask = |sql: &str| bench.good(&["connect", "here", "--", "-N", "-e", sql]).out;
    ask("CREATE TABLE stock (id INT PRIMARY KEY, n INT NOT NULL, c TEXT); \
         INSERT INTO stock SELECT seq, 0, 'x' FROM seq_1_to_200; SET GLOBAL general_log = 1");
    ask(&statements());
    ask("SET PASSWORD FOR root@localhost = PASSWORD('s3cret'); CREATE TABLE other (a INT); \
         SET GLOBAL general_log = 0; SET PASSWORD FOR root@localhost = ''");
    let log = ask("SELECT CONCAT(@@datadir, @@general_log_file)");

    let captured = bench.good(&["capture", log.trim(), "--url", &url, "--out", "captured.toml"]);
    for line in
        ["2 kinds of transactions", "         160  replayed", "80  begin or end", "about users"]
    {
        assert!(captured.err.contains(line), "{line}\n{}", captured.err);
    }
    let path = bench.bench.path("captured.toml");
    let study = std::fs::read_to_string(&path).unwrap();
    assert!(!study.contains("s3cret"), "{study}");
    assert!(study.contains("weight = 80") && study.contains("weight = 40"), "{study}");
    assert!(study.contains("uniform = [1, ") && study.contains("zipf = [1, "), "{study}");
    let again = bench.dyno(&["capture", log.trim(), "--out", "captured.toml"]);
    assert_eq!(again.code, 2, "what is there is not written over: {}", again.err);
    assert!(bench.good(&["check", "captured.toml"]).out.contains("no errors"));

    let short = study.replace("duration = \"60s\"", "duration = \"1s\"\nrepetitions = 1");
    std::fs::write(&path, short.replace("warm_up = \"10s\"", "warm_up = \"0s\"")).unwrap();
    bench.good(&["run", "captured.toml", "--out", "run"]);
    let trial = read_json(&trial_folder(&bench.bench.path("run"), 1).join("summary.json"));
    assert_eq!(trial["outcome"]["state"], "finished", "{trial}");
    let kinds = trial["steps"][0]["kinds"].as_array().unwrap();
    let committed = |kind: &serde_json::Value| kind["outcomes"]["committed"].as_f64().unwrap();
    let counts: Vec<f64> = kinds.iter().map(committed).collect();
    // One transaction in three has the update.
    let share = counts[1] / counts.iter().sum::<f64>();
    assert!((0.2..0.5).contains(&share), "{counts:?}");
    assert_eq!(ask("SELECT COUNT(*) FROM stock").trim(), "200");
    let updated: f64 = ask("SELECT -SUM(n) FROM stock").trim().parse().unwrap();
    assert!(updated >= 40.0 + counts[1], "{updated} {counts:?}");
}

#[test]
fn what_is_no_log_is_refused_in_words() {
    let bench = UpBench::new();
    bench.bench.write("notes.txt", "SELECT 1;\n");
    let check = |arguments: &[&str], expected: &str| {
        let answer = bench.dyno(&[&["capture"], arguments].concat());
        assert_eq!(answer.code, 2, "{}", answer.err);
        assert!(answer.err.contains(expected), "{}", answer.err);
    };
    check(&["notes.txt"], "look like neither a general or slow log");
    check(&["missing.log"], "cannot open missing.log");
    check(&["notes.txt", "--url", "mysql://"], "mysql");
    check(&["notes.txt", "--kinds", "0"], "--kinds");
}

#[test]
fn ranges_keep_their_length_and_numbered_tables_are_drawn() {
    let bench = UpBench::new();
    let url = bench.up(&["mariadb", "--name", "here"]);
    let ask = |sql: &str| bench.good(&["connect", "here", "--", "-N", "-e", sql]).out;
    let design = "[design]\nclients = 2\nrepetitions = 1\nduration = \"1s\"\nwarm_up = \"0s\"\n";
    // What Dyno itself asks has to be rare among what the load does.
    let long = design.replace("1s", "5s");
    bench.bench.write(
        "load.toml",
        &format!(
            "title = \"to be captured\"\n[database.here]\nurl = \"{url}\"\nkeep_tables = true\n\
             [workload.oltp_read_write]\ntables = 3\ntable_size = 1000\n{long}"
        ),
    );
    ask("SET GLOBAL general_log = 1");
    bench.good(&["run", "load.toml", "--out", "load"]);
    ask("SET GLOBAL general_log = 0");
    let log = ask("SELECT CONCAT(@@datadir, @@general_log_file)");
    let arguments = ["capture", log.trim(), "--url", &url, "--kinds", "1"];
    let study = bench.good(&arguments).out;
    // Four ranges of 100 rows, on a table of three; other kinds are rare.
    assert_eq!(study.matches(" + 99\" }").count(), 4, "{study}");
    assert_eq!(study.matches("SELECT DISTINCT c FROM sbtest").count(), 3, "{study}");
    assert_eq!(study.matches("times = 10\n").count(), 3, "{study}");
    // The deleted row is inserted again.
    let of = |text: &str, at: &str| {
        let rest = &study[study.find(text).unwrap_or_else(|| panic!("{text}\n{study}"))..];
        let rest = &rest[rest.find(at).unwrap()..];
        rest[..rest.find([',', '"']).unwrap()].replace([' ', '='], "")
    };
    let deleted = of("DELETE FROM sbtest2", ":v");
    assert_eq!(of("INSERT INTO sbtest2", ":v"), deleted, "{study}");
    let from = study.find("[design]").unwrap();
    bench.bench.write("captured.toml", &format!("{}{design}", &study[..from]));
    bench.good(&["run", "captured.toml", "--out", "run"]);
    let trial = read_json(&trial_folder(&bench.bench.path("run"), 1).join("summary.json"));
    assert_eq!(trial["outcome"]["state"], "finished", "{trial}");
    let outcomes = &trial["steps"][0]["kinds"][0]["outcomes"];
    assert!(outcomes["committed"].as_u64().unwrap() > 20, "{outcomes}");
}

#[test]
fn the_log_of_postgresql_becomes_a_study_that_loads_it() {
    let bench = UpBench::new();
    let settings =
        ["--setting", "log_statement=all", "--setting", "log_line_prefix=%m [%p] %q%u@%d "];
    let url = bench.up(&[&["postgresql", "--name", "here"], &settings[..]].concat());
    // Private servers log beside the folder of their data.
    let data = bench.good(&["connect", "here", "--", "-At", "-c", "SHOW data_directory"]).out;
    let log = std::path::Path::new(data.trim()).parent().unwrap().join("server.log");
    let design = "[design]\nclients = 2\nrepetitions = 1\nduration = \"1s\"\nwarm_up = \"0s\"\n";
    // What Dyno itself asks has to be rare among what the load does.
    let long = design.replace("1s", "5s");
    bench.bench.write(
        "load.toml",
        &format!(
            "title = \"to be captured\"\n[database.here]\nurl = \"{url}\"\nkeep_tables = true\n\
             [workload.tpcb]\n{long}"
        ),
    );
    bench.good(&["run", "load.toml", "--out", "load"]);
    let log = log.display().to_string();
    let captured = bench.good(&["capture", &log, "--url", &url, "--kinds", "1"]);
    assert!(captured.out.matches("sql = ").count() >= 5, "{}", captured.out);
    let from = captured.out.find("[design]").unwrap();
    bench.bench.write("captured.toml", &format!("{}{design}", &captured.out[..from]));
    bench.good(&["run", "captured.toml", "--out", "run"]);
    let trial = read_json(&trial_folder(&bench.bench.path("run"), 1).join("summary.json"));
    assert_eq!(trial["outcome"]["state"], "finished", "{trial}");
    let outcomes = &trial["steps"][0]["kinds"][0]["outcomes"];
    assert!(outcomes["committed"].as_u64().unwrap() > 20, "{outcomes}\n{}", captured.out);
}

/// Captures a server's counted statements and runs the study twice; returns study and output.
fn counted(bench: &UpBench, url: &str) -> (String, String) {
    let captured = bench.good(&["capture", url, "--url", url, "--out", "captured.toml"]);
    let path = bench.bench.path("captured.toml");
    let study = std::fs::read_to_string(&path).unwrap();
    assert!(bench.good(&["check", "captured.toml"]).out.contains("no errors"), "{study}");
    let short = study.replace("duration = \"60s\"", "duration = \"1s\"\nrepetitions = 2");
    std::fs::write(&path, short.replace("warm_up = \"10s\"", "warm_up = \"0s\"")).unwrap();
    bench.good(&["run", "captured.toml", "--out", "run"]);
    for number in [1, 2] {
        let folder = trial_folder(&bench.bench.path("run"), number);
        let trial = read_json(&folder.join("summary.json"));
        assert_eq!(trial["outcome"]["state"], "finished", "{trial}");
        let mut committed = 0;
        for kind in trial["steps"][0]["kinds"].as_array().unwrap() {
            // A rare kind may not have been drawn.
            let outcomes = kind["outcomes"].as_object().unwrap();
            assert!(outcomes.keys().all(|outcome| outcome == "committed"), "{kind:#}\n{study}");
            committed += outcomes.get("committed").map_or(0, |n| n.as_u64().unwrap());
        }
        assert!(committed > 0, "{study}");
    }
    (study, captured.err)
}

fn load(bench: &UpBench, url: &str) {
    bench.bench.write(
        "load.toml",
        &format!(
            "title = \"to be captured\"\n[database.here]\nurl = \"{url}\"\nkeep_tables = true\n\
             allow_existing_tables = true\n[workload.oltp_read_write]\ntable_size = 1000\n[design]\n\
             clients = 2\nrepetitions = 1\nduration = \"1s\"\nwarm_up = \"0s\"\n"
        ),
    );
    bench.good(&["run", "load.toml", "--out", "load"]);
}

#[test]
fn digests_of_a_performance_schema_become_a_study() {
    let bench = UpBench::new();
    let url = bench.up(&["mariadb", "--name", "here", "--setting", "performance_schema=ON"]);
    let ask = |sql: &str| bench.good(&["connect", "here", "--", "-N", "-e", sql]).out;
    ask("CREATE TABLE stock (id INT PRIMARY KEY, n INT NOT NULL, c TEXT); \
         INSERT INTO stock SELECT seq, 0, 'x' FROM seq_1_to_200");
    ask(&statements());
    ask("SELECT COUNT(*), SUM(n) FROM stock WHERE id BETWEEN 5 AND 14; \
         INSERT INTO stock (id, n, c) VALUES (201, 1, 'y'), (202, 1, 'z')");
    load(&bench, &url);
    let (study, terminal) = counted(&bench, &url);
    for part in [
        "_select_stock]\nweight = 40\n",
        "_select_stock]\nweight = 80\n",
        "_update_stock]\nweight = 40\n",
        "v1 = { uniform = [1, 202] }",
        "v2 = { expression = \":v1 + 99\" }",
        "numbers of new rows\nv1 = { sequence = 203, step = 2, after = \"`stock`.`id`\" }",
        "`n` = `n` - 1 WHERE ID = :v2",
    ] {
        assert!(study.contains(part), "{part}\n{study}");
    }
    assert!(terminal.contains("counts without their texts"), "{terminal}");
}

#[test]
fn statements_that_postgresql_has_counted_become_a_study() {
    let bench = UpBench::new();
    let setting = "shared_preload_libraries=pg_stat_statements";
    let url = bench.up(&["postgresql", "--name", "here", "--setting", setting]);
    bench.good(&["connect", "here", "--", "-c", "CREATE EXTENSION pg_stat_statements"]);
    load(&bench, &url);
    let ask = |sql: &str| bench.good(&["connect", "here", "--", "-Atc", sql]).out;
    ask("CREATE TABLE lines (order_id int, line int, n int, PRIMARY KEY (order_id, line))");
    // So many that the study draws some of them also on a busy machine.
    let line =
        |line: u32| format!("INSERT INTO lines (order_id, line, n) VALUES (43387, {line}, 5);");
    ask(&(1..=300).map(line).collect::<String>());
    let (study, terminal) = counted(&bench, &url);
    // Rows of an order differ in their lines.
    let after = "after = \"\\\"lines\\\".\\\"line\\\"\"";
    assert!(study.contains(&format!("v2 = {{ sequence = 301, {after} }}")), "{study}");
    assert!(ask("SELECT COUNT(*) FROM lines").trim().parse::<u64>().unwrap() > 300, "{study}");
    for kind in ["t1_select_sbtest1", "_update_sbtest1", "_insert_sbtest1", "_delete_sbtest1"] {
        assert!(study.contains(kind), "{kind}\n{study}");
    }
    assert!(study.contains("uniform = [1, 1000]"), "{study}");
    assert!(study.contains("numbers of new rows"), "{study}");
    assert!(study.contains(" + 99\""), "{study}");
    assert!(
        terminal.contains("kinds of statements") && terminal.contains("  replayed"),
        "{terminal}"
    );
}

/// A function of another user that makes him a superuser when called.
const TRAP: &str = "CREATE ROLE mallory; GRANT CREATE ON SCHEMA public TO mallory; SET ROLE mallory; \
    CREATE FUNCTION public.trap() RETURNS text LANGUAGE plpgsql AS \
    $$ BEGIN ALTER ROLE mallory SUPERUSER; RETURN 'a'; END $$; \
    CREATE VIEW public.pg_stat_statements AS SELECT public.trap() AS query, 1 AS calls, 1 AS rows, \
    0::oid AS dbid, true AS toplevel";

/// The same with a cast, which is called to write values as text.
const CAST: &str = "SET ROLE mallory; DROP VIEW public.pg_stat_statements; \
    CREATE TYPE public.mood AS ENUM ('good', 'bad'); \
    CREATE TABLE public.moods (m public.mood PRIMARY KEY, n int); INSERT INTO public.moods VALUES ('good', 1); \
    CREATE FUNCTION public.as_text(public.mood) RETURNS text LANGUAGE sql AS 'SELECT public.trap()'; \
    CREATE CAST (public.mood AS text) WITH FUNCTION public.as_text(public.mood)";

/// The same with an expression of an index, which the planner evaluates for whoever reads the table.
const INDEX: &str = "SET ROLE mallory; CREATE FUNCTION public.sprung(int) RETURNS int IMMUTABLE LANGUAGE plpgsql \
    AS $$ BEGIN IF current_setting('is_superuser') = 'on' THEN RAISE EXCEPTION 'sprung'; END IF; RETURN 1; END $$; \
    CREATE INDEX sprung ON public.moods ((public.sprung(1)))";

#[test]
fn other_users_of_a_server_get_no_rights_from_a_capture() {
    let bench = UpBench::new();
    let setting = "shared_preload_libraries=pg_stat_statements";
    let url = bench.up(&["postgresql", "--name", "here", "--setting", setting]);
    let ask = |sql: &str| bench.good(&["connect", "here", "--", "-Atc", sql]).out;
    let is_superuser = || ask("SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'");
    ask(TRAP);
    let answer = bench.dyno(&["capture", &url]);
    assert_eq!(answer.code, 2, "{}", answer.err);
    assert!(answer.err.contains("CREATE EXTENSION pg_stat_statements"), "{}", answer.err);
    assert_eq!(is_superuser().trim(), "f");
    ask(CAST);
    ask("CREATE EXTENSION pg_stat_statements");
    ask("SELECT n FROM moods WHERE m = 'good'");
    ask(INDEX);
    let captured = bench.good(&["capture", &url]);
    assert!(captured.out.contains("FROM moods WHERE m = :v1"), "{}", captured.out);
    assert!(captured.err.contains("reading `public.moods` of `mallory`"), "{}", captured.err);
    assert_eq!(is_superuser().trim(), "f");
    // The traps work.
    let sprung = bench.dyno(&["connect", "here", "--", "-Atc", "SELECT n FROM moods"]);
    assert!(sprung.err.contains("sprung"), "{}", sprung.err);
    ask("DROP INDEX sprung");
    ask("SELECT m::text FROM moods");
    assert_eq!(is_superuser().trim(), "t");
}

#[test]
fn a_server_that_counts_nothing_is_told_what_to_do() {
    let bench = UpBench::new();
    let url = bench.up(&["mariadb", "--name", "here"]);
    let answer = bench.dyno(&["capture", &url]);
    assert_eq!(answer.code, 2, "{}", answer.err);
    assert!(answer.err.contains("performance_schema = ON"), "{}", answer.err);
    let answer = bench.dyno(&["capture", &url, "--format", "mysql-slow"]);
    assert!(answer.err.contains("are for logs"), "{}", answer.err);
    let answer = bench.dyno(&["capture", "sqlite://x"]);
    assert_eq!(answer.code, 2, "{}", answer.err);
}
