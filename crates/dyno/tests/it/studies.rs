//! Study files by hand: right, wrong, and those shipped.

use std::path::Path;

use crate::support::{Answer, DataFolder, Workbench, read_json};

fn shipped(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    root.join(name).canonicalize().expect("the study is there").display().to_string()
}

#[test]
fn every_shipped_study_is_right_and_can_be_planned() {
    let bench = Workbench::new();
    for name in [
        "quickstart.toml",
        "connections/full.toml",
        "connections/bench-top.toml",
        "cpu-shootout/full.toml",
        "cpu-shootout/bench-top.toml",
        "durability/full.toml",
        "durability/bench-top.toml",
        "declared/quickstart.toml",
        "declared/oltp-read-write.toml",
        "create-index/full.toml",
        "create-index/bench-top.toml",
        "dbstress/full.toml",
        "dbstress/cpus.toml",
        "dbstress/stable-load.toml",
        "dbstress/bench-top.toml",
        "deployments/bench-top.toml",
        "dips/full.toml",
        "dips/bench-top.toml",
        "insert-benchmark/full.toml",
        "insert-benchmark/myrocks.toml",
        "insert-benchmark/bench-top.toml",
        "key-order/full.toml",
        "key-order/bench-top.toml",
        "migration/full.toml",
        "pgbench/full.toml",
        "pgbench/bench-top.toml",
        "pooling/full.toml",
        "pooling/bench-top.toml",
        "replicas/full.toml",
        "replicas/bench-top.toml",
        "queue/full.toml",
        "queue/bench-top.toml",
        "restore/full.toml",
        "sql-servers/full.toml",
        "sql-servers/long-run.toml",
        "sql-servers/bench-top.toml",
        "tpcc-volumes/full.toml",
        "tpcc-volumes/small-server.toml",
        "tpcc-volumes/bench-top.toml",
        "versions/full.toml",
        "versions/bench-top.toml",
        "vectors/bench-top.toml",
        "clickhouse/bench-top.toml",
        "documents/bench-top.toml",
        "aa/full.toml",
        "aa/bench-top.toml",
    ] {
        bench.dyno_good(&["check", &shipped(name)]);
        let plan = bench.dyno_good(&["plan", &shipped(name)]);
        assert!(plan.out.lines().count() > 3, "{name}: {}", plan.out);
    }
}

#[test]
fn the_quickstart_answers_its_question() {
    // It asks for the cost of a sync, so it runs on a disk.
    let (bench, folder) = (Workbench::new(), DataFolder::on_disk());
    let study = shipped("quickstart.toml");
    let command = ["run", &study, "--data-folder", folder.text()];
    let answer = bench.dyno_good(&command);
    let findings = read_json(&bench.path("runs/quickstart/findings.json"));
    let headline = findings["answer"]["headline"].as_str().unwrap();
    assert!(answer.out.contains("report: "), "{}", answer.out);
    assert!(!headline.is_empty());
    // On every machine it is faster not to sync every commit.
    let verdicts: Vec<&str> = findings["comparisons"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|comparison| comparison["metric"] == "throughput")
        .filter_map(|comparison| comparison["verdict"].as_str())
        .collect();
    assert!(verdicts.contains(&"better"), "{verdicts:?} {headline}");
    // The second run has nothing to do, and loses nothing.
    let again = bench.dyno_good(&command);
    assert!(again.err.contains("already done"), "{}", again.err);
}

#[test]
fn all_errors_are_shown_at_once_with_the_nearest_word() {
    let bench = Workbench::new();
    bench.write(
        "wrong.toml",
        r#"title = "x"
[database.a]
prodct = "mariadb"
[database.b]
product = "mariabd"
[workload.oltp_read_onyl]
[design]
vary = { database = ["a", "c"] }
duration = 10
baseline = { database = "z" }
"#,
    );
    let answer = bench.dyno(&["run", "wrong.toml"]);
    assert_eq!(answer.code, 2);
    for expected in ["product", "mariadb", "oltp_read_only", "wrong.toml:3", "wrong.toml:9"] {
        assert!(answer.err.contains(expected), "no {expected} in\n{}", answer.err);
    }
    assert!(!bench.path("runs").exists(), "nothing is made for a wrong study");
}

#[test]
fn the_schema_is_json_and_the_one_beside_the_studies_is_current() {
    let schema = Workbench::new().dyno_good(&["schema"]);
    let value: serde_json::Value = serde_json::from_str(&schema.out).unwrap();
    assert!(value.to_string().contains("point_selects"));
    let beside = std::fs::read_to_string(shipped("study.schema.json")).unwrap();
    assert!(beside == schema.out, "run `dyno schema > studies/study.schema.json`");
}

#[test]
fn the_reference_of_the_study_file_is_current() {
    let printed = Workbench::new().dyno_good(&["schema", "--format", "markdown"]).out;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/study.md");
    let kept = std::fs::read_to_string(path).unwrap();
    assert!(kept == printed, "run `dyno schema --format markdown > docs/study.md`");
}

#[test]
fn the_pages_that_are_made_from_the_program_are_current() {
    for page in ["commands", "readings"] {
        let printed = Workbench::new().dyno_good(&["reference", page]).out;
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/{page}.md"));
        let kept = std::fs::read_to_string(path).unwrap();
        assert!(kept == printed, "run `dyno reference {page} > docs/{page}.md`");
    }
}

#[test]
fn the_words_beside_those_of_other_tools_are_keys() {
    let schema = Workbench::new().dyno_good(&["schema"]).out;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/coming-from.md");
    let page = std::fs::read_to_string(path).unwrap();
    let mut n_keys = 0;
    for row in page.lines().filter(|line| line.starts_with("| ") && !line.contains("| study |")) {
        let ours = row.split(" | ").nth(1).unwrap_or_else(|| panic!("no second column: {row}"));
        // Every second piece between backticks is code.
        for code in ours.split('`').skip(1).step_by(2).filter(|code| !code.starts_with('[')) {
            let key = code.split(" = ").next().unwrap_or(code);
            assert!(schema.contains(&format!("\"{key}\"")), "{key} is no key of a study: {row}");
            n_keys += 1;
        }
    }
    assert!(n_keys > 50, "only {n_keys} keys were looked up");
}

/// From the line `first` to the end of its block.
fn example(document: &str, first: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    let text = std::fs::read_to_string(path).expect("the document is there");
    let lines = text.lines().skip_while(|line| line.trim() != first || !line.starts_with("    "));
    let block = lines.take_while(|line| line.is_empty() || line.starts_with("    "));
    let block: Vec<&str> = block.map(str::trim_start).collect();
    assert!(!block.is_empty(), "{document} has no example that begins with {first}");
    block.join("\n") + "\n"
}

const QUESTION: &str = "title = \"Which one is worth its price?\"\n";
const REST: &str = "[workload.oltp_point_select]\n[design]\nclients = 4\nrepetitions = 3\n\
                    warm_up = \"0s\"\nduration = \"5s\"\nrest = \"0s\"\nseed = 3\n";

#[test]
fn the_documents_show_how_prices_are_compared() {
    let bench = Workbench::new();
    let example = example("docs/cost.md", "[database.small]");
    let vary = "vary = { database = [\"small\", \"large\"] }\n";
    bench.write("documented.toml", &[QUESTION, &example, REST, vary].concat());
    let mut check = bench.command(&["check", "documented.toml"]);
    let answer = Answer::from(check.env("DB_PASSWORD", "x").output().expect("dyno starts"));
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    // With running servers: the large one is twice as fast, at four times the price.
    let simulated = |text: &str, name: &str, service: &str| {
        let url = format!("url            = \"mysql://dyno:${{DB_PASSWORD}}@db-{name}/test\"");
        assert!(text.contains(&url), "{text}");
        let settings = format!("settings = {{ service_time = \"{service}\", noise = 0.02 }}");
        text.replace(&url, &format!("product = \"simulated\"\n{settings}"))
    };
    let example = simulated(&simulated(&example, "small", "2ms"), "large", "1ms");
    bench.write("study.toml", &[QUESTION, &example, REST, vary].concat());
    bench.dyno_good(&["run", "study.toml"]);
    let findings = bench.json("runs/study/findings.json");
    let million = |variant: usize| findings["cost"][variant]["money_per_million"]["value"].as_f64();
    let (small, large) = (million(0).expect("it has a price"), million(1).expect("it has a price"));
    assert!((1.8..2.2).contains(&(large / small)), "{small} {large}");
    // One is faster, the other cheaper.
    for variant in [0, 1] {
        assert_eq!(findings["cost"][variant]["on_frontier"], true, "{}", findings["cost"]);
    }
}

#[test]
fn machines_of_other_prices_are_compared() {
    let bench = Workbench::new();
    let example = example("studies/cpu-shootout/README.md", "[machine]");
    let server = "[database.a]\nproduct = \"simulated\"\nsettings = { service_time = \"1ms\" }\n";
    let study = [QUESTION, &example, server, REST].concat();
    bench.write("first.toml", &study);
    let other = study.replace("0.192 USD", "0.096 USD");
    assert_ne!(study, other, "the price of the example");
    bench.write("second.toml", &other.replace("1ms", "1.1ms"));
    bench.dyno_good(&["run", "first.toml"]);
    bench.dyno_good(&["run", "second.toml"]);
    let answer = bench.dyno_good(&["report", "runs/first", "runs/second", "--format", "json"]);
    let findings: serde_json::Value = serde_json::from_str(&answer.out).expect("it is JSON");
    let cost = findings["cost"].as_array().expect("prices are known");
    let prices = cost.iter().map(|facts| facts["price_per_hour"]["amount"].as_f64());
    assert_eq!(prices.collect::<Vec<_>>(), [Some(0.192), Some(0.096)], "{cost:?}");
    assert!(cost.iter().all(|facts| facts["on_frontier"] == true), "{cost:?}");
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let answer = Workbench::new().dyno_good(&["completions", shell]);
        assert!(answer.out.contains("dyno"), "{shell}");
    }
}

#[test]
fn doctor_says_what_it_found() {
    let answer = Workbench::new().dyno(&["doctor"]);
    assert!(answer.code == 0 || answer.code == 1, "{}", answer.err);
    for expected in ["swap", "clock", "memory"] {
        assert!(answer.out.to_lowercase().contains(expected), "no {expected} in\n{}", answer.out);
    }
}
