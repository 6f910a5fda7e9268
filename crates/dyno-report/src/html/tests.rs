//! The whole report: well-formed, without a network, harmless, small enough.

use dyno_units::reading::prelude::*;

use super::*;
use crate::fixture;
use crate::sections::{answer, method, picture, tables, written};

/// The report with the response times of all seconds.
fn render(findings: &Findings, runs: &[Run], made: &str) -> String {
    let mut times = Times::new(findings, runs);
    fixture::times(runs, &mut |run, trial, second| times.add(run, trial, second));
    super::render(findings, runs, &times, made)
}

const MADE: &str = "2026-03-01 15:20 UTC";

/// Elements that have no end tag in HTML.
const VOID: [&str; 3] = ["meta", "br", "input"];

/// Checks that every start tag has its end tag, in order, and that every attribute is quoted.
fn check_balance(html: &str) {
    let mut open: Vec<String> = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if rest.starts_with('!') {
            continue;
        }
        let end = tag_end(rest);
        let (tag, after) = rest.split_at(end);
        rest = &after[1..];
        if let Some(name) = tag.strip_prefix('/') {
            let before = open.pop();
            assert_eq!(before.as_deref(), Some(name), "in {open:?}");
            continue;
        }
        let name: String = tag.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
        assert!(!name.is_empty(), "a bare < before {}", &tag[..tag.len().min(40)]);
        if tag.ends_with('/') || VOID.contains(&name.as_str()) {
            continue;
        }
        // Scripts and styles are not markup: on to their end tag.
        if name == "script" || name == "style" {
            let close = format!("</{name}>");
            rest = &rest[rest.find(&close).expect("closed") + close.len()..];
            continue;
        }
        open.push(name);
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

/// Where a tag ends: the first `>` outside of quotes.
fn tag_end(text: &str) -> usize {
    let mut is_quoted = false;
    for (i, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '>' if !is_quoted => return i,
            '<' if !is_quoted => panic!("a < within a tag: {}", &text[..i.min(80)]),
            _ => {}
        }
    }
    panic!("a tag without an end");
}

fn reports() -> Vec<(&'static str, String)> {
    [
        ("three", fixture::three_variants()),
        ("single", fixture::single()),
        ("many", fixture::many()),
        ("own", fixture::own_steps()),
        ("hostile", fixture::hostile()),
    ]
    .into_iter()
    .map(|(name, (findings, runs))| (name, render(&findings, &runs, MADE)))
    .collect()
}

#[test]
fn every_report_is_well_formed() {
    for (_, html) in reports() {
        check_balance(&html);
        assert_eq!(html.matches("<h1>").count(), 1);
        assert!(html.contains(MADE));
    }
}

#[test]
fn seconds_that_are_not_all_there_are_told() {
    let (findings, runs) = fixture::three_variants();
    assert!(!render(&findings, &runs, MADE).contains("is truncated or missing"));
    let mut times = Times::new(&findings, &runs);
    fixture::times(&runs, &mut |run, trial, second| times.add(run, trial, second));
    let is_finished =
        |trial: &&dyno_record::TrialSummary| trial.outcome == dyno_record::TrialOutcome::Finished;
    let trial = runs[0].trials.iter().find(is_finished).unwrap().number;
    times.lacks(0, trial);
    // No trial of this record.
    times.lacks(0, 9_999);
    let html = super::render(&findings, &runs, &times, MADE);
    assert!(html.contains(&format!("the interval log of trial {trial} is truncated or missing")));
}

#[test]
fn no_report_asks_the_network_for_anything() {
    for (name, html) in reports() {
        for forbidden in ["http://", "https://", "url(", "@import", "src=\"", "//cdn", "<link"] {
            assert!(!html.contains(forbidden), "{name} has {forbidden}");
        }
    }
}

#[test]
fn no_number_is_broken() {
    for (name, html) in reports() {
        for forbidden in ["NaN", "inf ", "\"inf", "Infinity\"", "-inf"] {
            assert!(!html.contains(forbidden), "{name} has {forbidden}");
        }
    }
}

#[test]
fn hostile_text_stays_text() {
    let (findings, runs) = fixture::hostile();
    let html = render(&findings, &runs, "<b>made</b>");
    // One in the head and one at the end, both of the report's own.
    assert_eq!(html.matches("<script>").count(), 2);
    assert_eq!(html.matches("</script>").count(), 2);
    for forbidden in ["<img", "<b>made", "alert(1)</", "\"'>"] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
    assert!(html.contains("&lt;script&gt;alert(1)"));
}

#[test]
fn the_first_screen_is_the_answer_a_picture_and_a_few_lines() {
    let (findings, runs) = fixture::three_variants();
    let html = render(&findings, &runs, MADE);
    let start = html.find(" id=\"answer\">").unwrap();
    let screen = &html[start..start + html[start..].find("<details").unwrap()];
    assert!(screen.contains("<h2 class=\"headline") && screen.contains("class=\"picture\""));
    for line in &findings.answer.lines {
        assert!(screen.contains(&crate::markup::kept_together(line)), "{line}");
    }
    // What is not in the first lines is folded, not gone.
    assert!(!screen.contains("badge") && html.contains(&findings.answer.details[0]));
    assert!(!screen.contains(&findings.caveats[0].message));
    // The picture says in words what it shows.
    assert!(screen.contains(
        "aria-label=\"Throughput (transactions/s) by number of clients. MariaDB 11.8 · 1 client: "
    ));
    // Who does not see it may skip what is above.
    assert!(html.find("href=\"#answer\">Skip to the answer").unwrap() < start);
}

#[test]
fn a_picture_of_two_repetitions_shows_both_and_no_interval() {
    let (mut findings, _) = fixture::three_variants();
    findings.steps.truncate(1);
    findings.cells.retain(|cell| cell.step == 0);
    findings.comparisons.retain(|c| c.step == 0);
    // The effects; the values are below them.
    let picture = |findings: &Findings| {
        let both = document::html::shown(&picture::draw(&View::new(findings)));
        both.split("</figure>").next().unwrap().replace('\u{a0}', " ")
    };
    let three = picture(&findings);
    assert!(three.contains("; line: its 95 % CI; hollow dots: repetitions; "), "{three}");
    for comparison in &mut findings.comparisons {
        comparison.relative.n = 2;
        comparison.relative.values = vec![200.0, 100.0];
    }
    let two = picture(&findings);
    assert!(two.contains("; filled dot: mean; hollow dots: the two repetitions; "), "{two}");
    assert!(two.contains(" (+100 and +200 %)</tspan>") && !two.contains("class=\"eb"), "{two}");
}

#[test]
fn a_sign_and_a_word_stand_beside_every_colour() {
    let (findings, runs) = fixture::three_variants();
    let html = render(&findings, &runs, MADE);
    let numbers = &html[html.find(" id=\"numbers\">").unwrap()..];
    let worse = &numbers[numbers.find("<td class=\"n worse\"").unwrap()..];
    let cell = &worse[..worse.find("</td>").unwrap()];
    assert!(cell.contains("aria-label=\"worse\">✗</span>"), "{cell}");
}

#[test]
fn one_number_has_one_style_on_the_whole_page() {
    let (findings, runs) = fixture::three_variants();
    let html = render(&findings, &runs, MADE);
    let body = &html[html.find("<main").unwrap()..html.rfind("<script>").unwrap()];
    assert!(body.contains("41,000/s") && !body.contains("41.0k/s"));
}

#[test]
fn the_answer_comes_before_the_evidence() {
    let (findings, runs) = fixture::three_variants();
    let html = render(&findings, &runs, MADE);
    let mut before = 0;
    for text in [
        findings.title.as_str(),
        findings.answer.headline.as_str(),
        findings.caveats[0].message.as_str(),
        "badge better",
        "id=\"load\"",
        "id=\"seconds\"",
        "id=\"spectrum\"",
        "id=\"numbers\"",
        "id=\"counters\"",
        "id=\"method\"",
    ] {
        let body = html.find("<main").unwrap();
        let text = &crate::markup::kept_together(text);
        let at = html[body..].find(text).unwrap_or_else(|| panic!("{text} is missing"));
        assert!(at > before, "{text} comes too early");
        before = at;
    }
}

#[test]
fn what_could_not_be_measured_says_why() {
    let (findings, runs) = fixture::three_variants();
    let html = render(&findings, &runs, MADE);
    assert!(html.contains(
        "Data read from disk per transaction</b>: not available. The server&#39;s files are on"
    ));
    assert!(html.contains("the server ended while tables were populated"));
    assert!(html.contains("Disk full (/var/tmp)"));
    assert!(html.contains("<b>0 B/s</b>"));
}

#[test]
fn one_trial_without_a_baseline_is_a_report_too() {
    let (findings, runs) = fixture::single();
    let html = render(&findings, &runs, MADE);
    assert!(html.contains("No comparison: "));
    assert!(html.contains("n = 1, no CI"));
    assert!(!html.contains("class=\"steps\""));
}

#[test]
fn findings_without_runs_or_without_anything_are_a_report_too() {
    let (mut findings, _) = fixture::three_variants();
    let html = render(&findings, &[], MADE);
    check_balance(&html);
    assert!(html.contains("No trial has per-second values."));
    findings.cells.clear();
    findings.comparisons.clear();
    findings.variants.clear();
    findings.steps.clear();
    check_balance(&render(&findings, &[], MADE));
}

#[test]
fn indexes_that_point_nowhere_do_no_harm() {
    let (mut findings, mut runs) = fixture::three_variants();
    findings.comparisons[0].variant = 77;
    findings.comparisons[1].baseline = 77;
    findings.cells[0].step = 77;
    findings.caveats[0].variants = vec![77];
    findings.concurrency[0].variant = 77;
    findings.concurrency[1].baseline = 77;
    findings.trials[0].variant = 77;
    findings.variants[1].baseline = Some(77);
    runs[0].trials[0].variant = 77;
    runs[0].trials[1].steps[0].step = 77;
    check_balance(&render(&findings, &runs, MADE));
    crate::markdown::render(&findings);
    crate::terminal::render(&findings, 80, false);
}

#[test]
fn values_that_are_no_numbers_are_left_out_of_charts() {
    let (mut findings, mut runs) = fixture::three_variants();
    for (i, bad) in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].into_iter().enumerate() {
        findings.comparisons[i].relative.value = bad;
        findings.comparisons[i + 3].relative.high = Some(bad);
        findings.concurrency[i].relative.value = bad;
        for estimate in findings.cells[i].metrics.values_mut() {
            (estimate.value, estimate.low, estimate.values[0]) = (bad, Some(bad), bad);
        }
        findings.cells[i + 3].spectrum[i].1 = bad;
        let step = &mut runs[0].trials[0].steps[i];
        step.intervals.throughput[3] = bad;
        step.intervals.start_s[4] = bad;
        step.readings.values_mut().for_each(|column| column[5] = Some(bad));
    }
    let html = render(&findings, &runs, MADE);
    check_balance(&html);
    for forbidden in ["NaN", "\"inf", " inf", "-inf"] {
        let at = html.find(forbidden);
        assert!(at.is_none(), "{forbidden}: {}", &html[at.unwrap() - 80..at.unwrap() + 20]);
    }
}

#[test]
fn stalls_and_changes_of_level_are_marked() {
    let (findings, runs) = fixture::three_variants();
    let html = render(&findings, &runs, MADE);
    assert!(html.contains("trial 2, 12 s: stall of 2 s, 81,000 fewer transactions than expected"));
    assert!(html.contains("trial 2, 20 s: level changes from 41,000/s to 38,000/s"));
}

#[test]
fn two_runs_of_the_same_names_keep_their_seconds_apart() {
    let (mut findings, mut runs) = fixture::single();
    let mut second = runs[0].clone();
    let steps = second.trials.iter_mut().flat_map(|trial| &mut trial.steps);
    steps.for_each(|s| s.intervals.throughput.iter_mut().for_each(|v| *v = 0.0));
    runs.push(second);
    let mut renamed = findings.variants[0].clone();
    renamed.name += ", other";
    findings.variants.push(renamed);
    let mut trial = findings.trials[0].clone();
    trial.variant = 1;
    findings.trials.push(trial);
    let planned = crate::findings_index::planned(&findings, &runs);
    assert_eq!((planned[0][&1], planned[1][&1]), (0, 1));
    // Where the findings list other trials, names must tell.
    findings.trials.truncate(1);
    let planned = crate::findings_index::planned(&findings, &runs);
    assert!(planned.iter().all(|run| run.is_empty()));
}

#[test]
fn trials_find_their_variant_by_name() {
    let (findings, mut runs) = fixture::three_variants();
    let expected = render(&findings, &runs, MADE);
    // The same run as another one may have written it: variants and steps in another order.
    let manifest = &mut runs[0].manifest;
    manifest.variants.reverse();
    manifest.steps.reverse();
    for trial in &mut runs[0].trials {
        trial.variant = 2 - trial.variant;
        trial.steps.iter_mut().for_each(|s| s.step = 4 - s.step);
    }
    assert!(render(&findings, &runs, MADE) == expected);
}

/// 100 trials × 1800 s × 20 readings and 9 columns are 5.2 million values, and each second has a
/// histogram for each of six kinds; the report keeps every extreme and stays below 10 MB.
#[test]
fn a_large_run_is_a_report_of_reasonable_size() {
    let (findings, mut runs) = fixture::hundred_trials();
    fixture::make_kinds(&mut runs, 6);
    let summary = &runs[0].trials[42].steps[0];
    assert_eq!(runs[0].trials.len(), 100);
    assert_eq!((summary.readings.len(), summary.intervals.start_s.len()), (20, 1805));
    // A stall of one second in one trial: the lowest point of its chart.
    for trial in &mut runs[0].trials {
        trial.steps[0].intervals.throughput.iter_mut().for_each(|v| *v = v.max(1000.0));
    }
    runs[0].trials[42].steps[0].intervals.throughput[917] = 0.0;
    let html = render(&findings, &runs, MADE);
    assert!(html.len() < 10_000_000, "{} bytes", html.len());
    check_balance(&html);
    let at = html.find("Throughput by second").unwrap();
    let chart = &html[at..at + html[at..].find("</figure>").unwrap()];
    let variant = runs[0].trials[42].variant;
    let area = chart.split("<path ").find(|p| p.contains(&format!("env v{variant} "))).unwrap();
    // The plot is 2000 units high: zero is at its foot, x is the second.
    assert!(area_points(area).contains(&(917, 2000)));
}

#[test]
fn many_steps_are_a_report_of_reasonable_size_too() {
    let (findings, runs) = fixture::hundred_trials_of_many_steps();
    let html = render(&findings, &runs, MADE);
    // 20 variants at 18 steps; every mark of a chart holds its numbers for those who take them away.
    assert!(html.len() < 16_000_000, "{} bytes", html.len());
    check_balance(&html);
}

/// The points of a path of relative steps.
fn area_points(path: &str) -> Vec<(i64, i64)> {
    let d = path.split('"').nth(1).unwrap().trim_end_matches('z');
    let spaced = d.replace('-', " -").replace(['M', 'l'], " ");
    let n: Vec<i64> = spaced.split_whitespace().map(|n| n.parse().unwrap()).collect();
    let mut at = (0, 0);
    n.chunks(2)
        .map(|step| {
            at = (at.0 + step[0], at.1 + step[1]);
            at
        })
        .collect()
}

#[test]
fn a_demand_that_was_not_met_is_told_first_and_unfolded() {
    let (mut findings, runs) = fixture::three_variants();
    let page = render(&findings, &runs, "today");
    assert!(page.contains("checks, all passed"), "the audit is not on the page");
    let failed = dyno_record::AuditRow {
        name: "rows in <history>".to_owned(),
        expected: "10".to_owned(),
        measured: "9".to_owned(),
        pass: false,
        is_undecided: false,
    };
    findings.trials[3].audit.push(failed);
    let page = render(&findings, &runs, "today");
    assert!(page.contains("1 failed"));
    let (not_met, met) = (page.find("rows in &lt;history&gt;"), page.find("<td>passed"));
    assert!(not_met.is_some() && not_met < met, "{not_met:?} {met:?}");
}

#[test]
fn kinds_are_told_apart_and_steps_of_the_workload_have_no_axis_of_clients() {
    let (findings, runs) = fixture::own_steps();
    let html = render(&findings, &runs, MADE);
    assert!(html.contains("<h2>By step</h2>") && !html.contains("by number of clients"));
    for text in ["Throughput of query by step", "Throughput of insert by step", "l.i0"] {
        assert!(html.contains(text), "{text}");
    }
    // Two variants at four steps; the last has two kinds, which have grids of their own.
    let grids = html.matches("<data class=\"grid\"").count();
    assert_eq!(grids, 2 * 4 + 2 * 2);
    assert!(html.contains("data-kind=\"query\""));
    assert!(html.contains("% done") && html.contains("<small>met in 2 of 3 trials</small>"));
}

#[test]
fn what_is_cheaper_because_it_is_less_durable_says_so() {
    use dyno_record::CommitSafety;
    let (mut findings, runs) = fixture::three_variants();
    let beaten =
        findings.cost.iter().find_map(|cost| Some((cost.variant, cost.dominated.as_ref()?.by)));
    let (variant, by) = beaten.expect("one is beaten");
    assert!(!render(&findings, &runs, MADE).contains("less durable"));
    findings.variants[by].commit_safety = Some(CommitSafety::LastCommitsAtRisk);
    let expected =
        ", which is less durable (a power failure or OS crash may lose the last commits)</td>";
    assert!(render(&findings, &runs, MADE).contains(expected));
    findings.variants[variant].commit_safety = Some(CommitSafety::LastCommitsAtRisk);
    assert!(!render(&findings, &runs, MADE).contains(expected));
}

#[test]
fn evidence_has_its_place() {
    let (findings, runs) = fixture::three_variants();
    let html = render(&findings, &runs, MADE);
    for text in [
        "nothing committed for 1.4 s, 41,300 fewer transactions than expected",
        "What moved first",
        "a server that waits or is suspended",
        "<code>cpupq</code>",
        "Run-off: time from the end of the load",
        "class=\"frontier\"",
        "beaten by MariaDB 12.3<",
        "Highest load within a response time limit",
        "dyno bench oltp_read_write --on mariadb",
        "Something that MySQL counts",
    ] {
        assert!(html.contains(text), "{text}");
    }
    let ids = [
        "load",
        "scaling",
        "seconds",
        "spectrum",
        "numbers",
        "price",
        "resources",
        "debt",
        "counters",
        "audit",
        "method",
    ];
    let places: Vec<usize> = ids
        .iter()
        .map(|id| html.find(&format!(" id=\"{id}\">")).unwrap_or_else(|| panic!("{id}")))
        .collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn what_is_read_every_five_seconds_is_a_line_with_marks() {
    let (findings, mut runs) = fixture::three_variants();
    let id = "data.tables_bytes";
    let tables = reading(id, Bytes, "Tables", "files of rows").chart(Topic::Files, 1);
    for trial in &mut runs[0].trials {
        trial.meanings.insert(id.to_owned(), tables.clone());
        for step in &mut trial.steps {
            let n = step.intervals.start_s.len();
            let read = |i: usize| (i % 5 == 2).then_some(1e6 + i as f64 * 1e3);
            step.readings.insert(id.to_owned(), (0..n).map(read).collect());
        }
    }
    let html = render(&findings, &runs, MADE);
    let row = |id: &str| {
        let at = html.find(&format!("data-reading=\"{id}\"")).expect("it has a row");
        html[at..at + html[at..].find("</tr>").unwrap()].to_owned()
    };
    let path = |row: &str| {
        let at = row.find("<path d=\"").expect("it has a line") + 9;
        row[at..at + row[at..].find('"').unwrap()].to_owned()
    };
    let tables = row(id);
    assert!(tables.contains("data-dots") && tables.contains(">Tables<"), "{tables}");
    assert!(path(&tables).contains('l') && !path(&tables).contains('h'), "{}", path(&tables));
    // What is read each second is a level for each, and has no marks.
    let cpu = row("server.cpu_s_per_s");
    assert!(!cpu.contains("data-dots") && path(&cpu).contains('h'), "{cpu}");
    assert!(!html.split("<b>Throughput</b>").nth(1).unwrap()[..2_000].contains("l dots"));
}

#[test]
fn why_variants_were_settled_is_told() {
    use dyno_analysis::stopping::{StoppingFacts, VariantStopping};
    let (mut findings, runs) = fixture::three_variants();
    assert!(!render(&findings, &runs, MADE).contains("When variants were settled"));
    let settled = VariantStopping {
        repetitions: 3,
        settled: true,
        why: "decided against <a>: worse".to_owned(),
    };
    findings.stopping = Some(StoppingFacts {
        repetitions_min: 3,
        repetitions_max: 20,
        looks: 9,
        confidence_of_looks: 0.9969,
        variants: vec![settled],
        saved_trials: 17,
    });
    findings.trials[0].state = "not needed".to_owned();
    let html = render(&findings, &runs, MADE);
    check_balance(&html);
    for text in [
        "at most 9 looks at the results; 17 trials",
        "99.7 % at each",
        "decided against &lt;a&gt;: worse",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert!(html.contains("<td class=\"\">not needed</td>"));
    assert!(!crate::markdown::render(&findings).contains("not needed |"));
}

#[test]
fn several_machines_have_a_column_each() {
    let (findings, mut runs) = fixture::three_variants();
    let one = render(&findings, &runs, MADE);
    assert!(!one.contains(">Fact</th>") && one.contains("further facts</summary>"));
    let mut other = runs[0].clone();
    other.manifest.environment.machine = "m6<g>".to_owned();
    other.manifest.environment.cpus = 77;
    runs.push(other);
    let html = render(&findings, &runs, MADE);
    check_balance(&html);
    let table = html.split(">Fact</th>").nth(1).expect("a table of facts by machine");
    let table = &table[..table.find("</table>").unwrap()];
    assert!(table.contains(">m6&lt;g&gt;</th>") && table.contains("<td>77</td>"), "{table}");
}

#[test]
fn the_picture_speaks_of_what_the_answer_speaks_of() {
    let (mut findings, _) = fixture::three_variants();
    findings.steps.truncate(1);
    findings.cells.retain(|cell| cell.step == 0);
    findings.comparisons.retain(|c| c.step == 0);
    let picture = |findings: &dyno_analysis::Findings| {
        document::html::shown(&picture::draw(&View::new(findings)))
    };
    let against_baseline = |html: &str| html.contains("Throughput relative to MariaDB 11.8");
    assert!(against_baseline(&picture(&findings)));
    findings.answer.against = Some(0);
    assert!(against_baseline(&picture(&findings)));
    // The answer is relative to another one: a picture of the values contradicts neither.
    findings.answer.against = Some(2);
    let html = picture(&findings);
    assert!(
        !html.contains("relative to") && html.contains("MariaDB 11.8 · 1 client: 5,240/s"),
        "{html}"
    );
}

#[test]
fn percentiles_on_few_observations_are_marked() {
    let (mut findings, _) = fixture::three_variants();
    let tables = |findings: &Findings| written(findings, tables::section);
    findings.cells.iter_mut().for_each(|cell| cell.few_beyond.clear());
    assert!(!tables(&findings).contains('†'));
    findings.cells[0].few_beyond.insert(dyno_analysis::metrics::RESPONSE_P95, 3);
    let marked = tables(&findings);
    // One value, and what the mark means.
    assert_eq!(marked.matches('†').count(), 2, "{marked}");
    assert!(marked.contains("†</b>") && marked.contains("† based on too few observations"));
}

#[test]
fn effects_in_different_metrics_are_drawn_apart() {
    let (mut findings, _) = fixture::three_variants();
    let last = findings.steps.len() - 1;
    findings.steps[last].main_metric = dyno_analysis::metrics::RESPONSE_P95;
    let answer = written(&findings, answer::section);
    // Effects in throughput at four steps; effects in p95 and their values at one.
    assert_eq!(answer.matches("class=\"picture\"").count(), 3);
    assert_eq!(answer.matches("right is better").count(), 1);
    assert_eq!(answer.matches("left is better").count(), 2);
}

#[test]
fn trials_that_were_measured_again_are_marked() {
    let (mut findings, _) = fixture::three_variants();
    let method = |findings: &Findings| written(findings, method::section);
    assert!(!method(&findings).contains("rerun"));
    let trial = findings.trials.iter_mut().find(|trial| trial.state == "finished");
    trial.expect("some have finished").is_rerun = true;
    assert_eq!(method(&findings).matches("finished, rerun").count(), 1);
}

#[test]
fn long_messages_of_errors_are_folded() {
    let (findings, mut runs) = fixture::three_variants();
    let long = format!("no table in SELECT {}1", "column_of_a_table, ".repeat(20));
    let examples = &mut runs[0].trials[0].steps[0].error_examples;
    examples.insert("refused".to_owned(), long.clone());
    examples.insert("timed_out".to_owned(), "no answer".to_owned());
    let html = render(&findings, &runs, MADE);
    assert!(html.contains("<td>no answer</td>"));
    assert!(html.contains("<td><details><summary>no table in SELECT column_of_a_table, "));
    assert!(html.contains(&format!("…</summary><p>{long}</p></details>")));
}
