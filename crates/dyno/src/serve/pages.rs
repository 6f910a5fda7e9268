//! Pages other than reports: the list of runs, the live page, and errors.

use std::path::Path;
use std::sync::Arc;

use dyno_report::html::{SCRIPTS, escaped, shell};
use dyno_units::{Nanoseconds, utc_date_time};

use super::runs::{RunEntry, RunList};
use crate::http::{Reply, Status, encode};

const INDEX_SCRIPT: &str = include_str!("index.js");
const LIVE_SCRIPT: &str = include_str!("live.js");

/// On a small screen the table has no headings, so choices get labels.
const STYLE: &str = "<style>.pick span{display:none}@media screen and (max-width:600px){.pick \
     span{display:inline;margin-left:4px;font-size:12px}}</style>";

pub(super) fn index(folder: &Path, found: &RunList, now_unix_ms: u64) -> String {
    let mut body = format!(
        "{STYLE}<section id=\"answer\"><p class=\"eyebrow\">{}</p><p class=\"headline\">{}</p><div \
         class=\"find\"><input type=\"search\" id=\"search\" placeholder=\"Search question, \
         answer, variant, machine\" aria-label=\"Search runs\"><span class=\"quiet\" id=\"found\" \
         role=\"status\"></span></div><form action=\"/compare\" class=\"find\"><button \
         type=\"submit\" id=\"compare\">Compare the two selected runs</button><span \
         class=\"quiet\">The first is the baseline. Answers are listed for runs whose reports \
         have been opened here.</span>",
        escaped(&folder.display().to_string()),
        match found.runs.len() {
            0 => "No runs yet: `dyno run STUDY` makes one".replace('`', ""),
            1 => "1 run".to_owned(),
            n => format!("{n} runs"),
        }
    );
    body += "<div class=\"scroll\"><table class=\"runs\"><thead><tr><th>Baseline</th><th>Other</th>\
             <th>Run</th><th>Answer</th><th>Began</th><th class=\"n\">Trials</th><th>State</th></tr>\
             </thead><tbody>";
    found.runs.iter().for_each(|run| body += &row(run, now_unix_ms));
    body += "</tbody></table></div></form>";
    if !found.skipped.is_empty() {
        let n = found.skipped.len();
        body +=
            &format!("<p>{n} {} not listed:</p><ul>", if n == 1 { "folder" } else { "folders" });
        for (name, why) in found.skipped.iter().take(SKIPPED_MOST) {
            body += &format!("<li><b>{}</b>: {}</li>", escaped(name), escaped(why));
        }
        body += if n > SKIPPED_MOST { "<li>…</li></ul>" } else { "</ul>" };
    }
    body += "</section>";
    shell("Runs", &body, INDEX_SCRIPT)
}

pub(super) fn indexed(page: Arc<str>) -> Reply {
    Reply::html(Status::Good, page, &[SCRIPTS[0], INDEX_SCRIPT])
}

const SKIPPED_MOST: usize = 20;

/// In steps of ten seconds, or of a minute from ten minutes on.
pub(super) fn rounded(ms: u64) -> String {
    let step = if ms >= 600_000 { 60 } else { 10 };
    let s = (ms / 1000).div_ceil(step).max(1) * step;
    Nanoseconds(s.saturating_mul(1_000_000_000)).to_string()
}

fn row(run: &RunEntry, now_unix_ms: u64) -> String {
    let (name, address) = (escaped(&run.name), encode(&run.name));
    let about = match &run.about {
        Ok(about) => about,
        Err(why) => {
            return format!(
                "<tr><td></td><td></td><th scope=\"row\">{name}</th><td class=\"bad\" \
                 colspan=\"4\">{}</td></tr>",
                escaped(why)
            );
        }
    };
    let planned = run.planned();
    let left = run.left_ms(now_unix_ms).map(|ms| format!(", about {} left", rounded(ms)));
    let left = left.unwrap_or_default();
    let state = match (run.is_running, run.ended() < planned) {
        (true, _) => format!("<a href=\"/run/{address}/live\">running – live</a>{left}"),
        (false, true) => format!("<a href=\"/run/{address}/live\">stopped</a>"),
        (false, false) => "done".to_owned(),
    };
    let report = match run.ended() {
        0 => escaped(&about.title),
        _ => format!("<a href=\"/run/{address}\">{}</a>", escaped(&about.title)),
    };
    format!(
        "<tr data-run><td class=\"pick\"><label><input type=\"radio\" name=\"a\" value=\"{name}\" \
         aria-label=\"Baseline: {name}\"><span>Baseline</span></label></td><td class=\"pick\"><label>\
         <input type=\"radio\" name=\"b\" value=\"{name}\" aria-label=\"Other: {name}\"><span>Other\
         </span></label></td><th scope=\"row\">{report}<small>{name} · {} · {}</small></th>\
         <td data-of=\"Answer\">{}</td><td class=\"when\" data-of=\"Began\">{}</td>\
         <td class=\"n\" data-of=\"Trials\">{} of {planned}</td><td data-of=\"State\">{state}</td></tr>",
        escaped(&about.variants.join(", ")),
        escaped(&about.machine),
        escaped(run.headline.get().map_or("–", String::as_str)),
        utc_date_time(about.created_unix_ms),
        run.ended(),
    )
}

pub(super) fn live(run: &RunEntry) -> Reply {
    let title = run.about.as_ref().map_or(run.name.as_str(), |about| about.title.as_str());
    let address = encode(&run.name);
    let body = format!(
        "<section id=\"answer\" data-events=\"/run/{address}/events\"><p \
         class=\"eyebrow\">{}</p><h1>{}</h1><p class=\"headline\" id=\"state\" \
         role=\"status\">Connecting</p><p class=\"lead\" id=\"phase\"></p><p class=\"lead\"><a \
         href=\"/run/{address}\">Report of the trials that have finished</a></p><p class=\"keys\" \
         id=\"variants\"></p><div class=\"charts\"><figure \
         class=\"chart\"><figcaption><b>Throughput</b><span id=\"throughput\">committed \
         transactions per second</span></figcaption><svg viewBox=\"0 0 560 190\" class=\"ch\" \
         role=\"img\" aria-label=\"Throughput\" data-of=\"throughput\"></svg></figure><figure \
         class=\"chart\"><figcaption><b>p99 response time</b><span id=\"p99_us\">of each \
         second</span></figcaption><svg viewBox=\"0 0 560 190\" class=\"ch\" role=\"img\" \
         aria-label=\"p99 response time\" data-of=\"p99_us\"></svg></figure></div><h3>What \
         happened</h3><div class=\"scroll tall\"><table><thead><tr><th>UTC</th><th>Variant and \
         trial</th><th>What</th></tr></thead><tbody \
         id=\"events\"></tbody></table></div></section>",
        escaped(&run.name),
        escaped(title),
    );
    let page = shell(title, &body, LIVE_SCRIPT);
    Reply::html(Status::Good, page, &[SCRIPTS[0], LIVE_SCRIPT])
}

pub(super) fn problem(status: Status, text: &str) -> Reply {
    let body = format!(
        "<section id=\"answer\"><p class=\"headline\">Something went wrong</p><p>{}</p><p><a \
         href=\"/\">All runs</a></p></section>",
        escaped(text)
    );
    Reply::html(status, shell("Problem", &body, ""), &[SCRIPTS[0]])
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_reported_in_coarse_steps() {
        let check = |ms: u64, expected: &str| assert_eq!(super::rounded(ms), expected);
        check(0, "10 s");
        check(34_000, "40 s");
        check(601_000, "11 min");
        check(u64::MAX, "5124095 h 34 min");
    }
}
