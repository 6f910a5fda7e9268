//! Output of other tools, as a record.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{Workbench, read_json};
use crate::up::UpBench;

/// Writes the tool's output into a file of the bench.
fn printed(bench: &Workbench, file: &str, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(bench.path("."))
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}\n{text}");
    bench.write(file, &text);
    text
}

/// After the label.
fn value(text: &str, label: &str) -> f64 {
    let rest = text.split_once(label).unwrap_or_else(|| panic!("{label} in {text}")).1;
    let word = rest.trim_start_matches([' ', '=']).split([' ', 's', '\n']).next().unwrap();
    word.parse().unwrap_or_else(|_| panic!("{label}: {word}"))
}

fn throughput(findings: &Value, variant: u64) -> &Value {
    let cells = findings["cells"].as_array().unwrap();
    let cell = cells.iter().find(|cell| cell["variant"] == variant).unwrap();
    &cell["metrics"]["throughput"]
}

/// sysbench's CPU test needs no server.
#[test]
fn outputs_of_sysbench_are_repetitions_of_variants() {
    let bench = Workbench::new();
    let mut rates = Vec::new();
    for (file, prime) in
        [("small-1", "1000"), ("small-2", "1000"), ("large-1", "20000"), ("large-2", "20000")]
    {
        let prime = format!("--cpu-max-prime={prime}");
        let words = ["cpu", &prime, "--threads=1", "--time=1", "--histogram", "run"];
        let text = printed(&bench, &format!("{file}.log"), "sysbench", &words);
        rates.push(value(&text, "total number of events:") / value(&text, "total time:"));
    }
    let answer = bench.dyno_good(&[
        "import",
        "small=small-1.log",
        "small=small-2.log",
        "large=large-1.log",
        "large=large-2.log",
        "--out",
        "runs/primes",
    ]);
    assert!(answer.err.contains("imported 4 runs"), "{}", answer.err);
    let findings = read_json(&bench.path("runs/primes/findings.json"));
    let mean = |a: f64, b: f64| (a * b).sqrt();
    for (variant, expected) in [(0, mean(rates[0], rates[1])), (1, mean(rates[2], rates[3]))] {
        let found = throughput(&findings, variant);
        assert_eq!(found["n"], 2);
        let relative = found["value"].as_f64().unwrap() / expected;
        assert!((0.99..1.01).contains(&relative), "{found} {expected}");
    }
    // Its histogram has every event.
    let p95 = &findings["cells"][0]["metrics"]["response_p95"];
    assert!(p95["value"].as_f64().is_some_and(|us| us > 0.0), "{p95}");
    let caveats = findings["caveats"].as_array().unwrap();
    let is_said = caveats.iter().any(|caveat| caveat["kind"] == "imported");
    assert!(is_said, "{caveats:?}");
    // Such a record is like any other.
    let text = bench.dyno_good(&["report", "runs/primes"]).out;
    assert!(text.contains("small") && text.contains("large"), "{text}");
    let rows = bench.dyno_good(&["sql", "runs/primes", "SELECT COUNT(*) FROM trial", "--tsv"]).out;
    assert!(rows.contains('4'), "{rows}");
}

/// Debian's package does not put it in PATH.
fn pgbench() -> String {
    let folder = Path::new("/usr/lib/postgresql");
    let versions = std::fs::read_dir(folder).expect("PostgreSQL is installed");
    let programs = versions.flatten().map(|version| version.path().join("bin/pgbench"));
    let found = programs.filter(|program| program.is_file()).max();
    found.expect("pgbench is installed").display().to_string()
}

#[test]
fn logs_of_pgbench_have_all_response_times() {
    let bench = UpBench::new();
    let url = bench.up(&["postgresql", "--name", "here"]);
    let pgbench = pgbench();
    printed(&bench.bench, "init.txt", &pgbench, &["-i", "-q", "-s", "1", &url]);
    let words = ["-c", "2", "-j", "2", "-T", "2", "-P", "1", "-l", "--log-prefix=tx", &url];
    let text = printed(&bench.bench, "out.txt", &pgbench, &words);
    let processed = value(&text, "number of transactions actually processed:");
    let mut logs: Vec<String> = std::fs::read_dir(bench.bench.path("."))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("tx."))
        .collect();
    logs.sort();
    assert_eq!(logs.len(), 2, "{logs:?}");
    let (first, second) = (format!("log={}", logs[0]), format!("log={}", logs[1]));
    bench.good(&["import", &first, &second, "--out", "logs"]);
    bench.good(&["import", "output=out.txt", "--out", "output"]);
    let (logs, output) = ("logs/findings.json", "output/findings.json");
    let (logs, output) = (bench.bench.json(logs), bench.bench.json(output));
    let committed = |findings: &Value| findings["cells"][0]["outcomes"]["committed"].clone();
    assert_eq!(committed(&logs).as_f64(), Some(processed));
    assert_eq!(committed(&output).as_f64(), Some(processed));
    let (of_logs, of_output) = (&logs["cells"][0]["metrics"], &output["cells"][0]["metrics"]);
    let mean = of_logs["response_mean"]["value"].as_f64().unwrap();
    let printed = of_output["pgbench.latency_mean"]["value"].as_f64().unwrap();
    assert!((0.9..1.1).contains(&(mean / printed)), "{mean} {printed}");
    assert!(of_output.get("response_p99").is_none());
}

#[test]
fn what_cannot_be_imported_is_said() {
    let bench = Workbench::new();
    bench.write("notes.txt", "nothing of a benchmark\n");
    let check = |arguments: &[&str], expected: &str| {
        let answer = bench.dyno(&[&["import"], arguments].concat());
        assert_eq!(answer.code, 2, "{}", answer.err);
        assert!(answer.err.contains(expected), "{}", answer.err);
    };
    check(&["notes.txt", "--out", "x"], "notes.txt: unknown format");
    check(&["none.txt", "--out", "x"], "cannot read none.txt");
    check(&["notes.txt", "--format", "sysbench", "--out", "x"], "contains no run of sysbench");
    check(&["notes.txt"], "--out");
    assert!(!bench.path("x").exists());
}
