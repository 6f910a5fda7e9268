//! Simulates studies whose truth is known and prints, as Markdown, how often the rules err: the
//! tables of docs/method/error-rates.md and docs/gate.md, all `TABLES` or the named ones: `cargo
//! run --release -p dyno-analysis --example error_rates [TABLE…]`.

mod alike;
mod bootstrap;
mod choices;
mod cost;
mod designs;
mod discards;
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

use std::io::Write;

use dyno_analysis::statistics::Rule;

/// The default of studies.
pub(crate) const RULE: Rule = Rule { threshold: 0.03, confidence: 0.95 };

pub(crate) fn percent(hits: u32, of: u32) -> String {
    if of == 0 {
        return "–".to_owned();
    }
    format!("{:.1} %", 100.0 * f64::from(hits) / f64::from(of))
}

/// `columns` as in Markdown; the first `words` are no numbers.
pub(crate) fn head(out: &mut dyn Write, columns: &str, words: usize) -> std::io::Result<()> {
    let rule = |i: usize| if i < words { "---" } else { "--:" };
    let rules: Vec<&str> = (0..columns.split(" | ").count()).map(rule).collect();
    writeln!(out, "| {columns} |\n|{}|", rules.join("|"))
}

type Table = fn(&mut dyn Write) -> std::io::Result<()>;

const TABLES: [(&str, Table); 24] = [
    ("verdicts", verdicts::table),
    ("pooling", pooling::table),
    ("guards", guards::table),
    ("modes", modes::table),
    ("metrics", metrics::table),
    ("designs", designs::table),
    ("gate", gates::table),
    ("gate-repetitions", gates::repetitions),
    ("joined", joins::table),
    ("looks", joins::looks),
    ("cost", cost::table),
    ("durability", choices::durability),
    ("growth", choices::growth),
    ("recall", choices::recall),
    ("turn", scaling::table),
    ("search", search::table),
    ("discards", discards::table),
    ("kept", kept::table),
    ("quantiles", quantiles::table),
    ("bootstrap", bootstrap::table),
    ("needed", needed::table),
    ("alike", alike::table),
    ("steadiness", steadiness::table),
    ("sequential", seconds::table),
];

fn main() -> std::io::Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut out = std::io::stdout();
    for (name, table) in TABLES {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            writeln!(out, "## {name}\n")?;
            table(&mut out)?;
            writeln!(out)?;
        }
    }
    Ok(())
}
