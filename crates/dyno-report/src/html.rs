//! Findings and runs → one HTML file that needs nothing else: no network, no script to be readable.
//!
//! The answer comes first, then the evidence, then how it was done: [`crate::sections`] has the order.

#[cfg(test)]
mod tests;

use base64::Engine;
use dyno_analysis::Findings;
use dyno_record::Run;
use sha2::{Digest, Sha256};

use crate::document::{self, Section};
use crate::markup::{Markup, escape};
use crate::sections;
use crate::times::Times;
use crate::view::View;

const STYLE: &str = include_str!("html/report.css");
/// One function in three files: what is seen, what can be taken away, and what the address keeps.
const SCRIPT: &str = concat!(
    include_str!("html/report.js"),
    include_str!("html/take.js"),
    include_str!("html/start.js")
);
/// Set before the body is parsed, so that other steps are never laid out.
const MARK: &str = "document.documentElement.classList.add(\"js\")";

/// The scripts of a report's page, as they stand in it: what a server may allow by their digests.
pub const SCRIPTS: [&str; 2] = [MARK, SCRIPT];

/// From this many bytes on a page takes long to lay out as a whole.
const LARGE_BYTES: usize = 2_000_000;

/// Renders the report. `runs` give the one-second charts and the study's source, `times` the response
/// times of their seconds (empty where they were not read); `made` is the text that tells when the
/// report was made.
pub fn render(findings: &Findings, runs: &[Run], times: &Times, made: &str) -> String {
    let view = View::new(findings);
    let sections = sections::of_page(&view, runs, times);
    let mut out = Markup::new();
    head(&mut out, &findings.title, &policy(&SCRIPTS));
    out.raw("<a class=\"skip\" href=\"#answer\">Skip to the answer</a>");
    top(&mut out, &sections);
    let mut body = Markup::new();
    for (idx, section) in sections.iter().enumerate() {
        document::html::section(&mut body, section);
        if idx == 0 {
            document::html::blocks(&mut body, &[sections::parts::sticky_legend(&view)]);
        }
    }
    let body = body.finish();
    // Where many variants share a plot, what is behind their medians is drawn more faintly.
    let crowd = if findings.variants.len() > 8 { " crowd" } else { "" };
    // A browser then lays out no more than what is in sight.
    let large = if body.len() > LARGE_BYTES { " large" } else { "" };
    out.raw(format_args!("<main class=\"wrap{crowd}{large}\">"));
    out.raw(body).raw("</main><footer class=\"wrap\">");
    out.element("p", format!("Report written {made} by Dyno.")).raw("</footer>");
    out.raw(format_args!("<script>{SCRIPT}</script></body></html>\n"));
    out.finish()
}

/// A page in the look of the report, for what stands beside reports: `body` and `script` (which comes
/// beside the first of [`SCRIPTS`]) are markup and code of the program's own, in which text from
/// outside was escaped with [`escaped`].
pub fn shell(title: &str, body: &str, script: &str) -> String {
    let mut out = Markup::new();
    // The answer that it is sent in has a policy of its own.
    head(&mut out, title, "");
    out.raw("<header class=\"top\"><div class=\"wrap\"><b>Dyno</b><nav aria-label=\"Pages\">");
    out.raw("<a href=\"/\">Runs</a></nav></div></header><main class=\"wrap\">").raw(body);
    out.raw(format_args!("</main><script>{script}</script></body></html>\n"));
    out.finish()
}

/// A text as it is safe in an element and in a quoted attribute.
pub fn escaped(text: &str) -> String {
    escape(text)
}

/// What a browser may do with a page that has these scripts: run them, and no others. Nothing is loaded from
/// elsewhere or sent there.
pub fn policy(scripts: &[&str]) -> String {
    let sources: Vec<String> = scripts.iter().map(|script| script_source(script)).collect();
    let sources = if sources.is_empty() { "'none'".to_owned() } else { sources.join(" ") };
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src {sources}; img-src data: blob:; \
         base-uri 'none'; form-action 'self'"
    )
}

/// The source expression for an inline script: its SHA-256.
fn script_source(script: &str) -> String {
    let digest = Sha256::digest(script.as_bytes());
    format!("'sha256-{}'", base64::engine::general_purpose::STANDARD.encode(digest))
}

/// `policy` holds wherever the file is opened from; empty if the page is only ever sent with one.
fn head(out: &mut Markup, title: &str, policy: &str) {
    out.raw("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    if !policy.is_empty() {
        // Before everything that it is about.
        out.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"").text(policy).raw("\">");
    }
    out.raw("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">");
    out.raw("<meta name=\"color-scheme\" content=\"light dark\">");
    out.raw("<meta name=\"generator\" content=\"Dyno\">");
    out.raw(format_args!("<title>{} – Dyno</title>", escape(title)));
    out.raw(format_args!("<style>{STYLE}</style>"));
    out.raw(format_args!("<script>{MARK}</script></head><body>"));
}

/// The line above everything: what this is, where to go, and the theme.
fn top(out: &mut Markup, sections: &[Section]) {
    out.raw("<header class=\"top\"><div class=\"wrap\"><b>Dyno</b><nav aria-label=\"Sections\">");
    for Section { id, nav, .. } in sections {
        out.raw(format_args!("<a href=\"#{id}\">{nav}</a>"));
    }
    out.raw("</nav><button type=\"button\" id=\"link\" hidden>Copy link</button>");
    out.raw("<button type=\"button\" id=\"theme\" hidden>Dark</button></div></header>");
}
