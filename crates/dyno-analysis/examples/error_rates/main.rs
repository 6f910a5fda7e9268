//! Simulates studies whose truth is known and prints, as Markdown, how often the rules err: the
//! tables of docs/method/error-rates.md and docs/gate.md, all `TABLES` or the named ones: `cargo
//! run --release -p dyno-analysis --example error_rates [TABLE…]`.

mod alike;
mod bootstrap;
mod bound;
mod choices;
mod cost;
mod designs;
mod discards;
mod firsts;
mod gates;
mod guards;
mod joins;
mod kept;
mod metrics;
mod modes;
mod needed;
mod noise;
mod pooling;
mod quantiles;
mod scaling;
mod search;
mod seconds;
mod steadiness;
mod verdicts;
mod why;

use std::io::Write;

use dyno_analysis::statistics::{Call, Effect, Rule, calls_at};

/// The default of studies.
const RULE: Rule = Rule { threshold: 0.03, confidence: 0.95 };

/// Of tests by that rule.
const LEVEL: f64 = 1.0 - RULE.confidence;

fn percent(hits: u32, of: u32) -> String {
    if of == 0 {
        return "–".to_owned();
    }
    format!("{:.1} %", 100.0 * f64::from(hits) / f64::from(of))
}

/// As cells of a row.
fn percents(hits: &[u32], of: u32) -> String {
    hits.iter().map(|hits| percent(*hits, of)).collect::<Vec<_>>().join(" | ")
}

/// The shares of so many studies in which each of these occurs, as cells of a row.
fn shares<const N: usize>(studies: u32, mut study: impl FnMut() -> [bool; N]) -> String {
    shares_of(studies, || study().map(Some))
}

/// The same, each of those studies that have it.
fn shares_of<const N: usize>(studies: u32, mut study: impl FnMut() -> [Option<bool>; N]) -> String {
    let mut counts = [(0, 0); N];
    for _ in 0..studies {
        for ((hits, of), found) in counts.iter_mut().zip(study()) {
            *hits += u32::from(found == Some(true));
            *of += u32::from(found.is_some());
        }
    }
    counts.map(|(hits, of)| percent(hits, of)).join(" | ")
}

fn paired(differences: &[f64]) -> Effect {
    Effect::paired(differences, 0.0).expect("two pairs at least")
}

/// Of a single comparison.
fn call_at(effect: Effect, level: f64) -> Call {
    calls_at(&[(Some(effect), level)], &RULE)[0].0
}

/// Takes the cells of each row, as in Markdown.
type Rows<'a> = &'a mut dyn FnMut(String);

/// Name, columns as in Markdown, how many of these are no numbers, and rows.
type Table = (&'static str, &'static str, usize, fn(Rows<'_>));

const TABLES: [Table; 34] = [
    ("verdicts", verdicts::COLUMNS, 2, verdicts::table),
    ("pooling", pooling::COLUMNS, 2, pooling::table),
    ("guards", guards::COLUMNS, 3, guards::table),
    ("modes", modes::COLUMNS, 1, modes::table),
    ("metrics", metrics::COLUMNS, 0, metrics::table),
    ("designs", designs::COLUMNS, 2, designs::table),
    ("gate", gates::COLUMNS, 1, gates::table),
    ("gate-repetitions", gates::NEEDED, 0, gates::repetitions),
    ("joined", joins::COLUMNS, 3, joins::table),
    ("looks", joins::LOOKS, 1, joins::looks),
    ("cost", cost::COLUMNS, 0, cost::table),
    ("durability", choices::DURABILITY, 0, choices::durability),
    ("growth", choices::GROWTH, 0, choices::growth),
    ("recall", choices::RECALL, 0, choices::recall),
    ("limit", choices::LIMIT, 0, choices::limit),
    ("fastest", firsts::FASTEST, 0, firsts::fastest),
    ("loads", firsts::LOADS, 0, firsts::loads),
    ("furthest", firsts::FURTHEST, 0, firsts::furthest),
    ("largest", firsts::LARGEST, 0, firsts::largest),
    ("open", firsts::OPEN, 0, firsts::open),
    ("groups", firsts::GROUPS, 0, firsts::groups),
    ("why", why::COLUMNS, 0, why::table),
    ("turn", scaling::COLUMNS, 1, scaling::table),
    ("ends", scaling::ENDS, 1, scaling::ends),
    ("search", search::COLUMNS, 0, search::table),
    ("discards", discards::COLUMNS, 1, discards::table),
    ("kept", kept::COLUMNS, 0, kept::table),
    ("quantiles", quantiles::COLUMNS, 1, quantiles::table),
    ("bootstrap", bootstrap::COLUMNS, 0, bootstrap::table),
    ("needed", needed::COLUMNS, 0, needed::table),
    ("alike", alike::COLUMNS, 1, alike::table),
    ("steadiness", steadiness::COLUMNS, 0, steadiness::table),
    ("sequential", seconds::COLUMNS, 1, seconds::table),
    ("bound-by", bound::COLUMNS, 1, bound::table),
];

fn main() -> std::io::Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    let mut out = std::io::stdout();
    for (name, columns, words, table) in TABLES.into_iter().filter(|(name, ..)| is_wanted(name)) {
        let rule = |i: usize| if i < words { "---" } else { "--:" };
        let rules: Vec<&str> = (0..columns.split(" | ").count()).map(rule).collect();
        writeln!(out, "## {name}\n\n| {columns} |\n|{}|", rules.join("|"))?;
        let mut written = Ok(());
        table(&mut |cells| {
            if written.is_ok() {
                written = writeln!(out, "| {cells} |");
            }
        });
        written?;
        writeln!(out)?;
    }
    Ok(())
}
