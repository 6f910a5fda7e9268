//! The pages beside the reports: the list of runs, a run live, and what went wrong.

use std::path::Path;

use dyno_report::html::{escaped, shell};

use super::http::encode;
use super::runs::RunEntry;
use crate::commands::report::date;

const INDEX_SCRIPT: &str = include_str!("index.js");
const LIVE_SCRIPT: &str = include_str!("live.js");

/// A run to which nothing was written for so long does not run, milliseconds.
const QUIET_AFTER_MS: u64 = 90_000;

/// Whether a run is being done, as far as its files tell.
fn is_running(run: &RunEntry, now_unix_ms: u64) -> bool {
    run.ended < run.planned() && now_unix_ms.saturating_sub(run.changed_unix_ms) < QUIET_AFTER_MS
}

/// The list of runs.
pub(super) fn index(folder: &Path, runs: &[RunEntry], now_unix_ms: u64) -> String {
    let mut body = format!(
        "<section id=\"answer\"><p class=\"eyebrow\">{}</p><p class=\"headline\">{}</p>\
         <div class=\"find\"><input type=\"search\" id=\"search\" placeholder=\"Search question, \
         answer, variant, machine\" aria-label=\"Search runs\"><span class=\"quiet\" id=\"found\" \
         role=\"status\"></span></div>\
         <form action=\"/compare\" class=\"find\"><button type=\"submit\" id=\"compare\">Compare the \
         two chosen</button><span class=\"quiet\">The first is the baseline.</span>",
        escaped(&folder.display().to_string()),
        match runs.len() {
            0 => "No runs yet: `dyno run STUDY` makes one".replace('`', ""),
            1 => "1 run".to_owned(),
            n => format!("{n} runs"),
        }
    );
    body += "<div class=\"scroll\"><table class=\"runs\"><thead><tr><th>Baseline</th><th>Other</th>\
             <th>Run</th><th>Answer</th><th>Began</th><th class=\"n\">Trials</th><th>State</th></tr>\
             </thead><tbody>";
    runs.iter().for_each(|run| body += &row(run, now_unix_ms));
    body += "</tbody></table></div></form></section>";
    shell("Runs", &body, INDEX_SCRIPT)
}

fn row(run: &RunEntry, now_unix_ms: u64) -> String {
    let (name, address) = (escaped(&run.name), encode(&run.name));
    let manifest = match &run.manifest {
        Ok(manifest) => manifest,
        Err(why) => {
            return format!(
                "<tr><td></td><td></td><th scope=\"row\">{name}</th><td class=\"bad\" \
                 colspan=\"4\">{}</td></tr>",
                escaped(why)
            );
        }
    };
    let variants: Vec<&str> = manifest.variants.iter().map(|v| v.name.as_str()).collect();
    let planned = run.planned();
    let state = match (is_running(run, now_unix_ms), run.ended < planned) {
        (true, _) => format!("<a href=\"/run/{address}/live\">running – live</a>"),
        (false, true) => format!("<a href=\"/run/{address}/live\">stopped</a>"),
        (false, false) => "done".to_owned(),
    };
    let report = match run.ended {
        0 => escaped(&manifest.title),
        _ => format!("<a href=\"/run/{address}\">{}</a>", escaped(&manifest.title)),
    };
    format!(
        "<tr data-run><td><input type=\"radio\" name=\"a\" value=\"{name}\" aria-label=\"Baseline: \
         {name}\"></td><td><input type=\"radio\" name=\"b\" value=\"{name}\" aria-label=\"Other: \
         {name}\"></td><th scope=\"row\">{report}<small>{name} · {} · {}</small></th>\
         <td data-of=\"Answer\">{}</td><td class=\"when\" data-of=\"Began\">{}</td>\
         <td class=\"n\" data-of=\"Trials\">{} of {planned}</td><td data-of=\"State\">{state}</td></tr>",
        escaped(&variants.join(", ")),
        escaped(&manifest.environment.machine),
        escaped(run.headline.as_deref().unwrap_or("–")),
        date(manifest.created_unix_ms),
        run.ended,
    )
}

/// A run while it goes on.
pub(super) fn live(run: &RunEntry) -> String {
    let title = run.manifest.as_ref().map_or(run.name.as_str(), |m| m.title.as_str());
    let address = encode(&run.name);
    let body = format!(
        "<section id=\"answer\" data-events=\"/run/{address}/events\"><p class=\"eyebrow\">{}</p>\
         <h1>{}</h1><p class=\"headline\" id=\"state\" role=\"status\">Connecting</p>\
         <p class=\"lead\" id=\"phase\"></p><p class=\"lead\"><a href=\"/run/{address}\">The report \
         of the trials that have ended</a></p><div class=\"charts\"><figure class=\"chart\">\
         <figcaption><b>Throughput</b><span id=\"throughput\">committed transactions per second\
         </span></figcaption><svg viewBox=\"0 0 560 190\" class=\"ch\" role=\"img\" \
         aria-label=\"Throughput\" data-of=\"throughput\"></svg></figure><figure class=\"chart\">\
         <figcaption><b>p99 response time</b><span id=\"p99_us\">of each second</span></figcaption>\
         <svg viewBox=\"0 0 560 190\" class=\"ch\" role=\"img\" aria-label=\"p99 response time\" \
         data-of=\"p99_us\"></svg></figure></div><h3>What happened</h3>\
         <div class=\"scroll tall\"><table><thead><tr><th>UTC</th><th>Variant and trial</th>\
         <th>What</th></tr></thead><tbody id=\"events\"></tbody></table></div></section>",
        escaped(&run.name),
        escaped(title),
    );
    shell(title, &body, LIVE_SCRIPT)
}

/// A page that says what went wrong.
pub(super) fn problem(text: &str) -> String {
    let body = format!(
        "<section id=\"answer\"><p class=\"headline\">That did not work</p><p>{}</p><p>\
         <a href=\"/\">All runs</a></p></section>",
        escaped(text)
    );
    shell("Problem", &body, "")
}
