//! A record of others, with text of an attacker in one kind of place after the other: every text that its types
//! can hold, wherever it is shown.

use std::collections::BTreeSet;

use dyno_analysis::Findings;
use dyno_record::Run;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::export::{Values, csv, tables};
use crate::times::Times;
use crate::{fixture, html, json, markdown, terminal};

/// It would begin a formula, end an attribute, open an element, steer a terminal, turn the text around, and end a
/// table's cell.
const ATTACK: &str = "=zq\"'><img src=x onerror=zq>\u{1b}[8m\u{202e}\n| `zq` [zq](javascript:zq)";

/// The kinds of places in a value that hold text, a name among them: `.variants[].name`, `.environment{}`.
fn kinds(value: &Value, at: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::String(_) => _ = into.insert(at.to_owned()),
        Value::Array(items) => items.iter().for_each(|item| kinds(item, &format!("{at}[]"), into)),
        Value::Object(fields) => {
            for (name, value) in fields {
                // A field may be one of many with names from outside; if it is not, the name is refused below.
                into.insert(format!("{at}{{}}"));
                kinds(value, &format!("{at}.{name}"), into);
            }
        }
        _ => {}
    }
}

/// The value with the attack in all places of a kind.
fn attacked(value: &Value, at: &str, kind: &str) -> Value {
    match value {
        Value::String(_) if at == kind => ATTACK.into(),
        Value::Array(items) => {
            items.iter().map(|item| attacked(item, &format!("{at}[]"), kind)).collect()
        }
        Value::Object(fields) => {
            let is_it = format!("{at}{{}}") == kind;
            let mut all: serde_json::Map<String, Value> = fields
                .iter()
                .map(|(name, value)| (name.clone(), attacked(value, &format!("{at}.{name}"), kind)))
                .collect();
            if let Some((_, value)) = fields.iter().next().filter(|_| is_it) {
                all.insert(ATTACK.to_owned(), value.clone());
            }
            Value::Object(all)
        }
        other => other.clone(),
    }
}

/// All that the value becomes with the attack in one kind of place. What is refused when it is read, or is not
/// kept, is none.
fn all_attacked<T: Serialize + DeserializeOwned>(value: &T) -> Vec<(String, T)> {
    let value = serde_json::to_value(value).unwrap();
    let mut places = BTreeSet::new();
    kinds(&value, "", &mut places);
    let read = |kind: String| {
        let read: T = serde_json::from_value(attacked(&value, "", &kind)).ok()?;
        serde_json::to_string(&read).unwrap().contains("=zq").then_some((kind, read))
    };
    places.into_iter().filter_map(read).collect()
}

fn check(kind: &str, findings: &Findings, runs: &[Run]) {
    let times = Times::new(findings, runs);
    let page = html::render(findings, runs, &times, "2026-03-01");
    for bad in ["zq\"", "zq'", "<img", "\u{1b}", "\u{202e}"] {
        assert!(!page.contains(bad), "{kind}: the page has {bad:?}");
    }
    let text = markdown::render(findings);
    for bad in ["<img", "\u{1b}", "\u{202e}", "zq](", "\n| `zq`"] {
        assert!(!text.contains(bad), "{kind}: the Markdown has {bad:?}");
    }
    let text = terminal::render(findings, 100, false);
    let is_bad = |c: char| c != '\n' && dyno_units::is_unsafe_char(c);
    assert!(!text.contains(is_bad), "{kind}: the terminal's text");
    assert!(serde_json::from_str::<Value>(&json::render(findings)).is_ok(), "{kind}");
    for table in tables(findings, runs, &times) {
        let csv = csv(&table);
        assert!(!csv.contains("\"=zq") && !csv.contains(",=zq"), "{kind}: {} as CSV", table.name);
        let texts = table.columns.iter().filter(|c| matches!(c.values, Values::Text(_)));
        assert!(texts.count() > 0);
        // A quote that does not end the field is written twice.
        assert!(!csv.replace("\"\"", "").contains("zq\""), "{kind}: {} as CSV", table.name);
    }
}

#[test]
fn text_of_findings_is_text_wherever_it_is_shown() {
    let (findings, runs) = fixture::small();
    let all = all_attacked(&findings);
    // What is refused is not shown; if all were, nothing would be tried.
    assert!(all.len() > 60, "{} kinds of places", all.len());
    for (kind, findings) in all {
        check(&format!("findings{kind}"), &findings, &runs);
    }
}

#[test]
fn text_of_a_record_is_text_wherever_it_is_shown() {
    let (findings, runs) = fixture::small();
    let run = &runs[0];
    let manifests = all_attacked(&run.manifest).into_iter();
    let manifests = manifests.map(|(kind, manifest)| (kind, Run { manifest, ..run.clone() }));
    let trials = all_attacked(&run.trials).into_iter();
    let trials = trials.map(|(kind, trials)| (kind, Run { trials, ..run.clone() }));
    let all: Vec<(String, Run)> = manifests.chain(trials).collect();
    assert!(all.len() > 60, "{} kinds of places", all.len());
    for (kind, run) in all {
        // What analysis makes of it is in findings, which are tried above.
        check(&format!("record{kind}"), &findings, &[run]);
    }
}

#[test]
fn the_file_itself_admits_its_own_scripts_alone() {
    let (findings, runs) = fixture::small();
    let page = html::render(&findings, &runs, &Times::default(), "2026-03-01");
    let head = &page[..page.find("<title>").unwrap()];
    let policy = html::policy(&html::SCRIPTS).replace('\'', "&#39;");
    assert!(head.contains(&format!("http-equiv=\"Content-Security-Policy\" content=\"{policy}\"")));
    let scripts: Vec<&str> = page
        .split("<script>")
        .skip(1)
        .map(|rest| rest.split("</script>").next().unwrap())
        .collect();
    assert_eq!(scripts, html::SCRIPTS);
    // printf alert | openssl dgst -sha256 -binary | base64
    let of_alert = "script-src 'sha256-35BQWN1npAn++BSA6B5HNlcrDttNf7mHxpXNB+Jg7IE=';";
    assert!(html::policy(&["alert"]).contains(of_alert));
    assert!(html::policy(&[]).contains("script-src 'none';"));
}
