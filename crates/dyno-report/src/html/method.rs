//! How it was done: machine, servers, settings, plan, data, study, and what the words mean.

use std::collections::{BTreeMap, BTreeSet};

use dyno_analysis::TrialFacts;
use dyno_record::Run;
use dyno_units::ByteCount;

use super::{again, parts};
use crate::format::{self, Unit};
use crate::markup::{Markup, escape};
use crate::view::View;
use crate::words;

/// Writes the section.
pub(crate) fn section(out: &mut Markup, view: &View<'_>, runs: &[Run]) {
    parts::open_section(out, "method", "How it was done", "");
    environment(out, view, runs);
    own_share(out, runs);
    variants(out, view);
    settings(out, view);
    plan(out, view);
    errors(out, view, runs);
    for run in runs {
        study(out, run, runs.len() > 1);
    }
    deeper(out, runs);
    again::section(out, view, runs);
    glossary(out, view);
    out.raw("</section>");
}

/// Opens a table of names and values.
fn open_facts(out: &mut Markup, caption: &str) {
    out.raw("<div class=\"scroll\"><table class=\"facts\">");
    out.element("caption", caption).raw("<tbody>");
}

fn fact(out: &mut Markup, name: &str, value: &str) {
    out.raw("<tr>").raw(format_args!("<th scope=\"row\">{}</th>", escape(name)));
    out.element("td", value).raw("</tr>");
}

fn environment(out: &mut Markup, view: &View<'_>, runs: &[Run]) {
    open_facts(out, "Where it ran");
    let mut facts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut add = |name: &str, value: String| {
        facts.entry(name.to_owned()).or_default().insert(value);
    };
    for run in runs {
        let manifest = &run.manifest;
        let environment = &manifest.environment;
        add("machine", environment.machine.clone());
        add("memory", ByteCount(environment.memory_bytes).to_string());
        add("run began", format::date(manifest.created_unix_ms));
        add("Dyno", manifest.dyno.clone());
        add("seed", manifest.seed.to_string());
        add("order of trials", manifest.order.clone());
        environment.facts.iter().for_each(|(name, value)| add(name, value.clone()));
        for server in run.trials.iter().map(|t| &t.server).filter(|s| !s.transport.is_empty()) {
            let tls = if server.tls { " with TLS" } else { "" };
            add("connection", format!("{}{tls}", server.transport));
        }
    }
    add("CPUs", view.findings.cpus.to_string());
    view.findings.environment.iter().for_each(|(name, value)| add(name, value.clone()));
    for (name, values) in &facts {
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        fact(out, name, &values.join(" · "));
    }
    out.raw("</tbody></table></div>");
}

/// What the laboratory itself took from the machine.
fn own_share(out: &mut Markup, runs: &[Run]) {
    let trials = || runs.iter().flat_map(|r| &r.trials);
    let wall: f64 = trials().map(|t| t.probes_wall_s).sum();
    let cpu: f64 = trials().map(|t| t.probes_cpu_s).sum();
    let generators = || trials().flat_map(|t| &t.steps).map(|s| &s.generator);
    let workers = generators().map(|g| g.workers).max().unwrap_or(0);
    if wall <= 0.0 && workers == 0 {
        return;
    }
    open_facts(out, "What measuring took");
    if wall > 0.0 {
        let share = Unit::Percent.tick(cpu / wall * 100.0);
        fact(out, "probes", &format!("{share} of one CPU"));
    }
    if workers > 0 {
        let busiest = generators().map(|g| g.busiest_worker).fold(0.0, f64::max);
        let rss = generators().map(|g| g.rss_bytes).max().unwrap_or(0);
        let threads = words::counted(workers as usize, "worker", "workers");
        let busy = Unit::Percent.tick(busiest * 100.0);
        let text = format!(
            "{threads}; the busiest used {busy} of a CPU in its busiest step; at most {} of memory",
            ByteCount(rss)
        );
        fact(out, "load generator", &text);
    }
    out.raw("</tbody></table></div>");
}

fn variants(out: &mut Markup, view: &View<'_>) {
    out.raw("<div class=\"scroll\"><table><caption>Variants</caption><thead><tr><th>Variant</th>");
    out.raw("<th>Server</th><th>Levels</th><th>A commit survives</th><th>Workload</th>");
    out.raw("<th class=\"n\">Finished</th><th class=\"n\">Failed</th></tr></thead><tbody>");
    for (i, variant) in view.findings.variants.iter().enumerate() {
        let join = |pairs: &mut dyn Iterator<Item = (&String, &String)>| {
            pairs.map(|(a, b)| format!("{a} = {b}")).collect::<Vec<_>>().join(", ")
        };
        let levels = join(&mut variant.levels.iter().map(|(a, b)| (a, b)));
        let options = join(&mut variant.options.iter());
        out.raw(format_args!("<tr class=\"v{i}\"><th scope=\"row\">{}</th>", parts::name(view, i)));
        out.element("td", &variant.server).element("td", levels).element("td", &variant.durability);
        out.raw("<td>").text(&variant.workload).element("small", options).raw("</td>");
        out.classed("td", "n", variant.finished.to_string());
        out.classed("td", "n", variant.failed.to_string()).raw("</tr>");
    }
    out.raw("</tbody></table></div>");
}

/// Only what differs is shown; all of it is folded.
fn settings(out: &mut Markup, view: &View<'_>) {
    let differences = &view.findings.setting_differences;
    if differences.is_empty() {
        if view.findings.variants.len() > 1 {
            out.classed("p", "lead", "The settings in force are the same in all variants.");
        }
    } else {
        let rows = differences.iter().map(|d| (d.name.as_str(), d.values.clone()));
        settings_table(out, view, "Settings that differ", rows);
    }
    let all: BTreeSet<&String> =
        view.findings.variants.iter().flat_map(|v| v.settings.keys()).collect();
    if all.is_empty() {
        return;
    }
    out.raw("<details class=\"fold\">");
    out.element("summary", format!("All {} settings in force", all.len()));
    let values = |name: &str| {
        view.findings.variants.iter().map(|v| v.settings.get(name).cloned()).collect::<Vec<_>>()
    };
    let rows = all.iter().map(|name| (name.as_str(), values(name)));
    settings_table(out, view, "Settings in force", rows);
    out.raw("</details>");
}

fn settings_table<'a>(
    out: &mut Markup,
    view: &View<'_>,
    caption: &str,
    rows: impl Iterator<Item = (&'a str, Vec<Option<String>>)>,
) {
    out.raw("<div class=\"scroll\"><table class=\"settings\">").element("caption", caption);
    out.raw("<thead><tr><th>Setting</th>");
    for i in 0..view.findings.variants.len() {
        out.raw(format_args!("<th scope=\"col\">{}</th>", parts::name(view, i)));
    }
    out.raw("</tr></thead><tbody>");
    for (name, values) in rows {
        out.raw(format_args!("<tr><th scope=\"row\"><code>{}</code></th>", escape(name)));
        for value in values {
            match value {
                Some(value) => out.raw("<td>").element("code", value).raw("</td>"),
                None => out.raw("<td class=\"none\">has none</td>"),
            };
        }
        out.raw("</tr>");
    }
    out.raw("</tbody></table></div>");
}

fn plan(out: &mut Markup, view: &View<'_>) {
    let trials = &view.findings.trials;
    let finished = trials.iter().filter(|t| t.state == "finished").count();
    let open = if trials.len() <= 30 || finished < trials.len() { " open" } else { "" };
    out.raw(format_args!("<details class=\"fold\"{open}>"));
    let all = words::counted(trials.len(), "trial", "trials");
    out.element("summary", format!("The plan: {all} in the order in which they ran"));
    out.raw("<div class=\"scroll\"><table><thead><tr><th class=\"n\">Trial</th><th>Variant</th>");
    out.raw("<th class=\"n\">Block</th><th class=\"n\">Repetition</th><th>State</th>");
    out.raw("<th>Began</th><th class=\"n\">Rows</th><th class=\"n\">Populated in</th>");
    out.raw("<th class=\"n\">Size</th></tr></thead><tbody>");
    trials.iter().for_each(|trial| plan_row(out, view, trial));
    out.raw("</tbody></table></div></details>");
}

fn plan_row(out: &mut Markup, view: &View<'_>, trial: &TrialFacts) {
    out.raw(format_args!("<tr class=\"v{}\"><td class=\"n\">{}</td>", trial.variant, trial.number));
    out.raw(format_args!("<td>{}</td>", parts::name(view, trial.variant)));
    out.classed("td", "n", trial.block.to_string());
    out.classed("td", "n", trial.repetition.to_string());
    let class = if trial.state == "finished" { "" } else { "bad" };
    out.classed("td", class, &trial.state);
    out.element("td", trial.began_unix_ms.map_or("–".to_owned(), format::date));
    out.classed(
        "td",
        "n",
        if trial.rows == 0 { "–".to_owned() } else { format::grouped(trial.rows) },
    );
    let populated =
        if trial.rows == 0 { "–".to_owned() } else { format::seconds(trial.populate_s) };
    out.classed("td", "n", populated);
    let size = trial.bytes.map_or("unknown".to_owned(), |b| ByteCount(b).to_string());
    out.classed("td", "n", size).raw("</tr>");
    if trial.message.is_none() && trial.server_log.is_empty() {
        return;
    }
    out.raw(format_args!("<tr class=\"why v{}\"><td></td><td colspan=\"8\">", trial.variant));
    if let Some(message) = &trial.message {
        out.classed("p", "bad", message);
    }
    if !trial.server_log.is_empty() {
        out.element("small", "The last lines of the server's log:");
        out.element("pre", trial.server_log.join("\n"));
    }
    out.raw("</td></tr>");
}

/// The first message of each kind of error, in any trial.
fn errors(out: &mut Markup, view: &View<'_>, runs: &[Run]) {
    let mut examples: BTreeMap<&str, &str> = BTreeMap::new();
    let steps = runs.iter().flat_map(|r| &r.trials).flat_map(|t| &t.steps);
    for (kind, message) in steps.flat_map(|s| &s.error_examples) {
        examples.entry(kind).or_insert(message);
    }
    if examples.is_empty() {
        return;
    }
    open_facts(out, "Errors, an example of each kind");
    for (kind, message) in examples {
        fact(out, &kind.replace('_', " "), message);
    }
    out.raw("</tbody></table></div>");
    let total: u64 = view
        .findings
        .cells
        .iter()
        .flat_map(|c| &c.outcomes)
        .filter(|(name, _)| *name != "committed" && *name != "rolled_back")
        .map(|(_, n)| n)
        .sum();
    out.classed("p", "quiet", format!("{} attempts failed in all.", format::grouped(total)));
}

fn study(out: &mut Markup, run: &Run, is_named: bool) {
    let manifest = &run.manifest;
    if manifest.study_source.is_empty() {
        return;
    }
    out.raw("<details class=\"fold\">");
    let title = match is_named {
        true => format!("The study file of {}", run.folder.display()),
        false => "The study file".to_owned(),
    };
    out.element("summary", title);
    out.raw("<pre>").text(&manifest.study_source).raw("</pre></details>");
}

fn deeper(out: &mut Markup, runs: &[Run]) {
    out.element("h3", "Do it again, look deeper");
    out.raw(
        "<ul><li>Save the study file above as <code>study.toml</code> and call <code>dyno run ",
    );
    out.raw("study.toml</code>. With the same seed the trials come in the same order.</li>");
    for run in runs {
        out.raw("<li>The record is in ");
        out.element("code", run.folder.display().to_string());
        out.raw(
            ": <code>manifest.json</code> says what was planned; each trial has its events, its ",
        );
        out.raw("readings and one histogram per second and kind of transaction in HdrHistogram's ");
        out.raw("format.</li>");
    }
    out.raw(
        "<li>Every number of this page is in <code>findings.json</code> (<code>dyno report RUN ",
    );
    out.raw("--format json</code>); <code>docs/findings.md</code> explains its fields.</li></ul>");
}

fn glossary(out: &mut Markup, view: &View<'_>) {
    let confidence = parts::confidence(view);
    let threshold = parts::threshold(view);
    let bounds = format!(
        "The two ends of a {confidence} confidence interval of the geometric mean over repetitions \
         (Student's t of the logarithms). The \
         repetition is what is counted (n), never the second and never the transaction."
    );
    let verdict = format!(
        "Better or worse: by more than chance explains. No difference: all of the bounds lie within \
         ± {threshold}. Inconclusive: the data do not decide."
    );
    let words: [(&str, &str); 12] = [
        ("throughput", "Committed transactions per second of the measure phase."),
        ("response time", "done − due: what a user waited. Under closed load due = sent."),
        ("service time", "done − sent: what the server took."),
        ("lag", "sent − due: how late the load generator was."),
        (
            "p95",
            "Of committed transactions, 95 % took at most this long. From histograms merged over \
                 kinds, never an average of percentiles.",
        ),
        ("bounds", &bounds),
        (
            "effect",
            "relative = 100 % × (variant ÷ baseline − 1), absolute = variant − baseline; \
                    paired by block where trials were interleaved.",
        ),
        (
            "p",
            "How often chance alone would give an effect at least this large, if there were none: \
             Student's t of the logarithms, corrected for the number of comparisons (Holm). \
             findings.json has a permutation test beside it.",
        ),
        ("verdict", &verdict),
        ("per transaction", "What was used in the measure phase ÷ transactions committed in it."),
        ("missed arrival", "A transaction that was due and never sent."),
        (
            "µs, ms; kB, MB",
            "Microseconds, milliseconds; 1000 and 1 000 000 bytes. KiB, MiB, GiB are \
                            powers of 1024.",
        ),
    ];
    out.raw("<details class=\"fold\" open><summary>Words, units, formulas</summary><dl>");
    for (word, meaning) in words {
        out.element("dt", word).element("dd", meaning);
    }
    out.raw("</dl></details>");
}
