//! Findings and runs → one HTML file that needs nothing else: no network, no script to be readable.
//!
//! The answer comes first, then the evidence, then how it was done. The order of the page is the
//! order of the calls in [`render`].

mod answer;
mod audit;
mod loads;
mod method;
mod parts;
mod readings;
mod scaling;
mod searches;
mod seconds;
mod spectra;
mod tables;

#[cfg(test)]
mod tests;

use dyno_analysis::Findings;
use dyno_record::Run;

use crate::markup::{Markup, escape};
use crate::view::View;

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

/// Renders the report. `runs` give the one-second charts and the study's source; `made` is the text
/// that tells when the report was made.
pub fn render(findings: &Findings, runs: &[Run], made: &str) -> String {
    let view = View::new(findings);
    let mut out = Markup::new();
    head(&mut out, findings);
    top(&mut out, made);
    // Where many variants share a plot, what is behind their medians is drawn more faintly.
    let crowd = if findings.variants.len() > 8 { " crowd" } else { "" };
    out.raw(format_args!("<main class=\"wrap{crowd}\">"));
    answer::section(&mut out, &view);
    parts::sticky_legend(&mut out, &view);
    tables::section(&mut out, &view);
    loads::section(&mut out, &view);
    spectra::section(&mut out, &view);
    seconds::section(&mut out, &view, runs);
    method::section(&mut out, &view, runs);
    out.raw("</main>");
    out.raw(format_args!("<script>{SCRIPT}</script></body></html>\n"));
    out.finish()
}

fn head(out: &mut Markup, findings: &Findings) {
    out.raw("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    out.raw("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">");
    out.raw("<meta name=\"color-scheme\" content=\"light dark\">");
    out.raw("<meta name=\"generator\" content=\"Dyno\">");
    out.raw(format_args!("<title>{} – Dyno</title>", escape(&findings.title)));
    out.raw(format_args!("<style>{STYLE}</style></head><body>"));
}

/// The line above everything: what this is, where to go, and the theme.
fn top(out: &mut Markup, made: &str) {
    out.raw("<header class=\"top\"><div class=\"wrap\"><b>Dyno</b><nav aria-label=\"Sections\">");
    let sections = [
        ("answer", "Answer"),
        ("numbers", "Numbers"),
        ("load", "By load"),
        ("spectrum", "Response times"),
        ("seconds", "By second"),
        ("method", "Method"),
    ];
    for (id, name) in sections {
        out.raw(format_args!("<a href=\"#{id}\">{name}</a>"));
    }
    out.raw("</nav>").classed("span", "made", made);
    out.raw("<button type=\"button\" id=\"theme\" hidden>Dark</button></div></header>");
}
