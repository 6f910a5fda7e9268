//! Vector searches on real servers: PostgreSQL with pgvector (by pip), MariaDB 11.8 (from Debian). Skipped,
//! with a message, if they cannot be fetched.

use std::io::Write as _;

use serde_json::Value;

use crate::support::{Answer, DataFolder, Workbench};

/// With a folder for fetched programs.
struct VectorBench {
    bench: Workbench,
    builds: DataFolder,
}

impl VectorBench {
    fn dyno(&self, arguments: &[&str]) -> Answer {
        let mut command = self.bench.command(arguments);
        command.env("DYNO_BUILDS", self.builds.path().join("builds"));
        Answer::from(command.output().unwrap())
    }

    /// None, with a message, if it cannot be fetched.
    fn with(server: &str, source: &str) -> Option<VectorBench> {
        let bench = VectorBench { bench: Workbench::new(), builds: DataFolder::new() };
        let answer = bench.dyno(&["products", "fetch", server, "--from", source]);
        if answer.code == 0 {
            return Some(bench);
        }
        let why = answer.err.lines().last().unwrap_or_default();
        let _ = writeln!(std::io::stderr(), "SKIPPED: 1 test of vectors on {server}: {why}");
        None
    }

    /// Returns the findings.
    #[track_caller]
    fn run(&self, database: &str, options: &str) -> Value {
        let study = format!(
            r#"
            title = "How fast is it at a recall of 0.95?"
            [database.a]
            {database}
            [workload.vectors]
            rows = 4000
            dimensions = 24
            clusters = 3
            queries = 100
            {options}
            [design]
            clients = 2
            repetitions = 1
            warm_up = "0s"
            duration = "700ms"
            rest = "0s"
            "#
        );
        self.bench.write("study.toml", &study);
        let answer = self.dyno(&["run", "study.toml", "--new"]);
        assert_eq!(answer.code, 0, "{}\n{}", answer.out, answer.err);
        let runs = std::fs::read_dir(self.bench.path("runs")).unwrap();
        let mut names: Vec<_> = runs.map(|entry| entry.unwrap().path()).collect();
        names.sort();
        crate::support::read_json(&names.pop().unwrap().join("findings.json"))
    }
}

/// The audit passes, exact scans find all, and recall rises with the search parameter.
#[track_caller]
fn check(findings: &Value, searches: &[f64]) {
    let audit = findings["trials"][0]["audit"].as_array().unwrap();
    assert_eq!(audit.len(), 3, "{audit:#?}");
    assert!(audit.iter().all(|row| row["pass"] == true), "{audit:#?}");
    let facts = &findings["vectors"][0];
    assert_eq!(facts["exact"]["recall"]["value"], 1.0, "{facts:#}");
    let points = facts["points"].as_array().unwrap();
    let number = |point: &Value, name: &str| match &point[name] {
        Value::Object(estimate) => estimate["value"].as_f64().unwrap(),
        value => value.as_f64().unwrap(),
    };
    let all: Vec<f64> = points.iter().map(|point| number(point, "search")).collect();
    assert_eq!(all, searches);
    let recalls: Vec<f64> = points.iter().map(|point| number(point, "recall")).collect();
    assert!(recalls.windows(2).all(|pair| pair[0] <= pair[1]), "{recalls:?}");
    assert!(recalls[0] < recalls[recalls.len() - 1], "{recalls:?}");
    assert!(facts["index_size"]["value"].as_f64().unwrap() > 100_000.0, "{facts:#}");
    assert!(facts["build"]["value"].as_f64().unwrap() > 0.0, "{facts:#}");
}

#[test]
fn pgvector_is_searched_with_rising_recall() {
    let Some(bench) = VectorBench::with("postgresql@16.2", "python") else { return };
    let database = "product = \"postgresql\"\nversion = \"16.2\"\nfrom = \"python\"";
    let findings = bench.run(database, "ef_search = [10, 400]\nm = 4\nef_construction = 8");
    check(&findings, &[10.0, 400.0]);
    let findings = bench.run(database, "index = \"ivfflat\"\nlists = 40\nprobes = [1, 40]");
    check(&findings, &[1.0, 40.0]);
    let findings = bench
        .run(database, "distance = \"cosine\"\nm = 4\nef_construction = 8\nef_search = [10, 400]");
    check(&findings, &[10.0, 400.0]);
}

#[test]
fn vectors_of_mariadb_are_searched_with_rising_recall() {
    let Some(bench) = VectorBench::with("mariadb@11.8", "debian") else { return };
    let database = "product = \"mariadb\"\nversion = \"11.8\"";
    check(&bench.run(database, "ef_search = [10, 400]\nm = 4"), &[10.0, 400.0]);
}

#[test]
fn servers_without_vectors_are_refused_before_the_first_trial() {
    let bench = Workbench::new();
    let check = |database: &str, part: &str| {
        let study = format!(
            "title = \"Is it?\"\n[database.a]\n{database}\n[workload.vectors]\n[design]\nrepetitions = 1\n"
        );
        bench.write("study.toml", &study);
        let answer = bench.dyno(&["run", "study.toml"]);
        assert_eq!(answer.code, 2, "{}\n{}", answer.out, answer.err);
        assert!(answer.err.contains(part), "{}", answer.err);
        assert!(!bench.path("runs/study").exists(), "nothing was run");
    };
    check("product = \"sqlite\"", "SQLite has no vectors");
    // The machine's own versions are older.
    check("product = \"mariadb\"\nversion = \"10\"", "use MariaDB 11.7 or later");
    check("product = \"postgresql\"\nversion = \"15\"", "has no extension `vector`");
}
