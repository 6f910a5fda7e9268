//! The gate's verdict as text, Markdown, JSON, a GitHub annotation, JUnit XML.

use std::path::Path;

use dyno_analysis::{Findings, Gate, GateCall, GateRow};
use serde_json::json;

use crate::commands::report;

const HEADINGS: [&str; 5] = ["variant", "metric", "difference", "worst case", "verdict"];

/// Harm in percent from which a factor is easier to read.
const FACTOR_FROM: f64 = 900.0;

/// In percent; written as 0.0 %.
const NOTHING: f64 = 0.05;

/// `1.9 % better`, `× 21`.
fn difference(harm: Option<f64>) -> String {
    match harm {
        None => "–".to_owned(),
        Some(harm) if harm.abs() < NOTHING => "unchanged".to_owned(),
        Some(harm) if harm >= FACTOR_FROM => format!("× {:.0}", 1.0 + harm / 100.0),
        Some(harm) if harm < 0.0 => format!("{:.1} % better", -harm),
        Some(harm) => format!("{harm:.1} % worse"),
    }
}

/// The upper bound of harm.
fn worst_case(limit: Option<f64>) -> String {
    match limit {
        None => "–".to_owned(),
        Some(limit) if limit.abs() < NOTHING => "at most 0.0 % worse".to_owned(),
        Some(better) if better < 0.0 => format!("at least {}", difference(limit)),
        Some(_) => format!("at most {}", difference(limit)),
    }
}

/// `new at 8 clients`.
fn place(findings: &Findings, row: &GateRow) -> String {
    format!("{} at {}", findings.variants[row.variant].name, findings.steps[row.step].name)
}

fn verdict(row: &GateRow) -> &'static str {
    match (row.call, row.is_required) {
        (GateCall::NoWorse, _) => "no worse",
        (GateCall::Worse, _) => "worse",
        (GateCall::Open, true) => "undecided",
        (GateCall::Open, false) => "undecided, but not required",
    }
}

fn cells(findings: &Findings, row: &GateRow) -> [String; 5] {
    [
        place(findings, row),
        findings.metrics.get(row.metric).title.to_string(),
        difference(row.harm_percent),
        worst_case(row.limit_percent),
        verdict(row).to_owned(),
    ]
}

pub(super) fn text(findings: &Findings, gate: &Gate, folder: &Path) -> String {
    let mut text = String::new();
    for row in &findings.gate_rows {
        let [place, metric, difference, worst_case, verdict] = cells(findings, row);
        text += &format!("{place}: {metric} {difference}, {worst_case} ({verdict})\n");
    }
    text.extend(findings.caveats.iter().map(|caveat| format!("note: {}\n", caveat.message)));
    text.extend(findings.unseen_modes().map(|modes| format!("note: {modes}\n")));
    let gate = gate.in_lines();
    text + &format!("record and report in {}\ngate: {gate}\n", folder.display())
}

pub(super) fn markdown(findings: &Findings, gate: &Gate) -> String {
    let escaped = dyno_report::markdown::escaped;
    let mut text = format!("**Gate: {}**\n\n", escaped(&gate.to_string()));
    text += &format!("| {} |\n|---|---|--:|--:|---|\n", HEADINGS.join(" | "));
    for row in &findings.gate_rows {
        let row = cells(findings, row).map(|cell| escaped(&cell).to_string());
        text += &format!("| {} |\n", row.join(" | "));
    }
    let n = findings.gate_rows.iter().map(|row| row.n).min().unwrap_or(0);
    text += &format!(
        "\n{n} repetitions of each build, interleaved; a regression of {:.0} % or more has to be \
         ruled out (one-sided, {:.1} %).\n",
        findings.threshold * 100.0,
        50.0 + findings.confidence * 50.0
    );
    text.extend(findings.caveats.iter().map(|caveat| format!("- {}\n", escaped(&caveat.message))));
    text.extend(findings.unseen_modes().map(|modes| format!("- {}\n", escaped(&modes))));
    text
}

/// By names, as readers have no list of variants and steps.
pub(super) fn json(findings: &Findings, gate: &Gate, folder: &Path) -> anyhow::Result<String> {
    let variant = |at: usize| &findings.variants[at].name;
    let rows = findings.gate_rows.iter().map(|row| {
        let mut shown = serde_json::to_value(row)?;
        shown["variant"] = json!(variant(row.variant));
        shown["baseline"] = json!(variant(row.baseline));
        shown["step"] = json!(findings.steps[row.step].name);
        anyhow::Ok(shown)
    });
    let caveats = findings.caveats.iter().map(|caveat| {
        let variants: Vec<&String> = caveat.variants.iter().map(|at| variant(*at)).collect();
        let mut shown = report::caveat(findings, caveat);
        shown["variants"] = json!(variants);
        shown
    });
    let value = json!({
        "format": crate::commands::JSON_FORMAT,
        "gate": gate,
        "threshold": findings.threshold,
        "confidence": findings.confidence,
        "record": folder,
        "rows": rows.collect::<anyhow::Result<Vec<_>>>()?,
        "caveats": caveats.collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

/// Newlines and special characters are encoded as GitHub requires.
pub(super) fn github(gate: &Gate) -> String {
    let encoded = gate.to_string().replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let level = match gate {
        Gate::NoWorse => "notice",
        Gate::Worse(_) => "error",
        Gate::Inconclusive(_) => "warning",
    };
    format!("::{level} title=dyno gate::{encoded}\n")
}

/// Worse is a failure, required but undecided an error, neither is skipped; the first case is the
/// gate.
pub(super) fn junit(findings: &Findings, gate: &Gate) -> String {
    let gate_outcome = match gate {
        Gate::NoWorse => None,
        Gate::Worse(_) => Some("failure"),
        Gate::Inconclusive(_) => Some("error"),
    };
    let mut cases = vec![("gate".to_owned(), gate_outcome, gate.to_string())];
    for row in &findings.gate_rows {
        let [place, metric, difference, worst_case, verdict] = cells(findings, row);
        let outcome = match (row.call, row.is_required) {
            (GateCall::NoWorse, _) => None,
            (GateCall::Worse, _) => Some("failure"),
            (GateCall::Open, true) => Some("error"),
            (GateCall::Open, false) => Some("skipped"),
        };
        let message = format!("{difference}, {worst_case} ({verdict})");
        cases.push((format!("{metric} of {place}"), outcome, message));
    }
    let count = |wanted: &str| cases.iter().filter(|case| case.1 == Some(wanted)).count();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"dyno gate\" tests=\"{}\" \
         failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
        cases.len(),
        count("failure"),
        count("error"),
        count("skipped")
    );
    for (name, outcome, message) in &cases {
        let (name, message) = (in_xml(name), in_xml(message));
        xml += &format!("  <testcase classname=\"dyno.gate\" name=\"{name}\">\n");
        xml += &match outcome {
            Some(outcome) => format!("    <{outcome} message=\"{message}\"/>\n"),
            None => format!("    <system-out>{message}</system-out>\n"),
        };
        xml += "  </testcase>\n";
    }
    xml + "</testsuite>\n"
}

/// For attributes and text. Control characters, which XML 1.0 lacks, become blanks.
fn in_xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_one_line() {
        let gate = Gate::Worse(vec!["p95 of a at 4 clients (7 % worse)\nx".to_owned()]);
        assert_eq!(
            github(&gate),
            "::error title=dyno gate::worse: p95 of a at 4 clients (7 %25 worse)%0Ax\n"
        );
    }

    #[test]
    fn differences_have_a_side_and_large_ones_are_factors() {
        let check = |harm: Option<f64>, expected: [&str; 2]| {
            assert_eq!([difference(harm), worst_case(harm)], expected);
        };
        check(None, ["–", "–"]);
        check(Some(7.94), ["7.9 % worse", "at most 7.9 % worse"]);
        check(Some(-1.9), ["1.9 % better", "at least 1.9 % better"]);
        check(Some(203_735.9), ["× 2038", "at most × 2038"]);
        check(Some(-0.01), ["unchanged", "at most 0.0 % worse"]);
    }

    #[test]
    fn xml_takes_any_text() {
        assert_eq!(in_xml("a<b> & \"c\"\u{1b}[0m ≤"), "a&lt;b&gt; &amp; &quot;c&quot; [0m ≤");
        let gate = Gate::Inconclusive(vec!["p95 of <a> at 4 clients".to_owned()]);
        let xml = junit(&Findings::default(), &gate);
        assert!(xml.contains("tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\""), "{xml}");
        let expected = "<error message=\"undecided: p95 of &lt;a&gt; at 4 clients\"/>";
        assert!(xml.contains(expected), "{xml}");
    }
}
