//! Golden pages: small studies like the bench-top ones, on simulated servers, from study to page.
//! Only intended changes may show: `UPDATE_EXPECT=1 cargo test -p dyno --test it golden` rewrites
//! the pages, for review.

use expect_test::{ExpectFile, expect_file};

use crate::support::{DataFolder, Workbench};

/// Sections with figures of the test's machine.
const OF_THE_MACHINE: [&str; 2] = ["counters", "method"];

/// The page as lines of text: headings, sentences, table rows with bars between cells, and for each
/// chart its label with the numbers of lines, marks and pictures.
fn outline(page: &str) -> String {
    // Below the main part is the time of writing.
    let end = page.rfind("</main>").expect("the main part ends");
    let body = &page[page.find("<main").expect("the page has a main part")..end];
    let mut out = String::new();
    let mut rest = body;
    while let Some(at) = rest.find('<') {
        push(&mut out, &rest[..at]);
        rest = &rest[at..];
        let end = rest.find('>').expect("every tag ends") + 1;
        let tag = &rest[1..end - 1];
        let name = tag.split([' ', '>']).next().unwrap_or_default();
        rest = match name {
            "script" => "",
            "svg" => chart(&mut out, rest),
            "section" if OF_THE_MACHINE.iter().any(|id| tag.contains(&format!("\"{id}\""))) => {
                &rest[rest.find("</section>").expect("every section ends")..]
            }
            _ => &rest[end..],
        };
        out += match name {
            "td" | "th" | "/caption" => " | ",
            "small" | "i" | "span" | "b" | "dd" | "button" | "option" => " ",
            "tr" | "h1" | "h2" | "h3" | "h4" | "p" | "li" | "summary" | "figcaption"
            | "section" | "caption" | "dt" | "label" => "\n",
            _ => "",
        };
    }
    let lines = out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut is_kept = true;
    let kept = lines.filter(|line| {
        // Which loads are low or high depends on the machine's CPUs.
        match line.as_str() {
            "Low and high concurrency" => is_kept = false,
            "Response times" => is_kept = true,
            _ => {}
        }
        is_kept && !line.is_empty()
    });
    kept.map(|line| line + "\n").collect()
}

fn push(out: &mut String, text: &str) {
    // Word joiners keep ranges on one line, invisibly.
    let plain = text
        .replace('\u{2060}', "")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&#39;", "'");
    *out += &plain.replace("&quot;", "\"").replace("&amp;", "&");
}

/// Returns what follows the chart.
fn chart<'a>(out: &mut String, rest: &'a str) -> &'a str {
    let mut depth = 0;
    let mut end = 0;
    for (at, _) in rest.match_indices('<') {
        match &rest[at..] {
            tag if tag.starts_with("<svg") => depth += 1,
            tag if tag.starts_with("</svg>") => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            end = at + "</svg>".len();
            break;
        }
    }
    let svg = &rest[..end];
    if let Some(label) = svg.split("aria-label=\"").nth(1).and_then(|l| l.split('"').next()) {
        let count = |what: &str| svg.matches(what).count();
        *out += &format!(
            "\n[chart: {label}: {} lines, {} marks, {} pictures]\n",
            count("data-n="),
            count("<g class=\"k\""),
            count("<image")
        );
    }
    &rest[end..]
}

pub(crate) fn check(study: &str, golden: ExpectFile) {
    // A page shows where its volumes are.
    let (bench, folder) = (Workbench::new(), DataFolder::on_disk());
    bench.write("study.toml", study);
    bench.dyno_good(&["run", "study.toml", "--no-reuse", "--data-folder", folder.text()]);
    let page = std::fs::read_to_string(bench.path("runs/study/report.html")).unwrap();
    golden.assert_eq(&outline(&page));
}

#[test]
fn the_same_server_twice() {
    check(
        r#"
        title = "A/A: does the laboratory see a difference where there is none?"
        [database.a]
        product = "simulated"
        settings = { service_time = "1ms", noise = 0.02 }
        [database.a-again]
        like = "a"
        [workload.oltp_point_select]
        [design]
        vary = { database = ["a", "a-again"] }
        clients = 4
        repetitions = 6
        warm_up = "2s"
        duration = "20s"
        rest = "0s"
        seed = 11
        threshold = "3%"
        "#,
        expect_file!["../../../dyno-report/tests/golden/aa.txt"],
    );
}

#[test]
fn machines_at_rising_load() {
    check(
        r#"
        title = "Which machine is fastest at low and at high concurrency?"
        [database.old]
        product = "simulated"
        settings = { service_time = "1ms", servers = 4 }
        [database.new]
        like = "old"
        settings = { service_time = "800us", servers = 6 }
        [workload.oltp_point_select]
        [design]
        vary = { database = ["old", "new"], clients = [1, 2, 4, 8, 16] }
        baseline = { database = "old" }
        repetitions = 3
        warm_up = "1s"
        duration = "15s"
        rest = "0s"
        seed = 7
        "#,
        expect_file!["../../../dyno-report/tests/golden/rising-load.txt"],
    );
}

#[test]
fn an_open_load_with_a_stall() {
    check(
        r#"
        title = "What does a stall look like under open load?"
        [database.stalling]
        product = "simulated"
        settings = { service_time = "1ms", distribution = "constant", servers = 4, stall_at = "5s", stall = "1s" }
        [workload.oltp_point_select]
        [design]
        rate = 500
        arrivals = "constant"
        clients = 4
        repetitions = 2
        warm_up = "1s"
        duration = "20s"
        rest = "0s"
        seed = 3
        "#,
        expect_file!["../../../dyno-report/tests/golden/stall.txt"],
    );
}

#[test]
fn tables_are_written_in_every_format_and_say_the_same() {
    let bench = Workbench::new();
    bench.write(
        "study.toml",
        r#"
        title = "Tables"
        [database.a]
        product = "simulated"
        [workload.oltp_point_select]
        [design]
        vary = { clients = [1, 2] }
        repetitions = 2
        warm_up = "1s"
        duration = "5s"
        rest = "0s"
        seed = 1
        "#,
    );
    bench.dyno_good(&["run", "study.toml"]);
    for format in ["csv", "jsonl", "parquet"] {
        let said = bench.dyno_good(&["report", "runs/study", "--format", format]).out;
        // Two trials of two steps with five seconds and a warm-up of one.
        assert!(said.contains(&format!("tables/seconds.{format}: 24 rows")), "{said}");
        assert!(said.contains(&format!("tables/trials.{format}: 4 rows")), "{said}");
    }
    let findings = bench.json("runs/study/findings.json");
    let throughput = findings["cells"][0]["metrics"]["throughput"]["value"].as_f64().unwrap();
    let lines = std::fs::read_to_string(bench.path("runs/study/tables/estimates.jsonl")).unwrap();
    let rows = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let same = rows.filter(|row| row["metric"] == "throughput" && row["step"] == "1 client");
    let same: Vec<f64> = same.filter_map(|row| row["value"].as_f64()).collect();
    assert_eq!(same, [throughput]);
    let csv = std::fs::read_to_string(bench.path("runs/study/tables/seconds.csv")).unwrap();
    assert!(csv.contains(",throughput,") && csv.contains(",response_p95,"), "{csv}");
    let out = bench.path("elsewhere");
    let out = out.to_str().unwrap();
    bench.dyno_good(&["report", "runs/study", "--format", "csv", "--out", out]);
    assert!(bench.path("elsewhere/comparisons.csv").exists());
}
