//! How it was done: machine, servers, settings, plan, data, study, and what the words mean.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use dyno_analysis::TrialFacts;
use dyno_record::{Run, SCHEDULING_GROUP};
use dyno_units::ByteCount;

use super::Page;
use super::{again, parts};
use crate::document::Section;
use crate::format::{self, Unit};
use crate::markup::{Markup, escape};
use crate::view::View;
use crate::words;

pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let Page { view, runs, .. } = *page;
    let mut section = Section::new("method", "Method", "How it was done", "");
    let out = section.drawn();
    environment(out, view, runs);
    own_share(out, runs);
    variants(out, view);
    settings(out, view);
    stopping(out, view);
    plan(out, view);
    errors(out, view, runs);
    for run in runs {
        study(out, run, runs.len() > 1);
    }
    deeper(out, runs);
    again::section(out, view, runs);
    glossary(out, view);
    Some(section)
}

fn open_facts(out: &mut Markup, caption: &str) {
    out.raw("<div class=\"scroll\"><table class=\"facts\">");
    out.element("caption", caption).raw("<tbody>");
}

fn fact(out: &mut Markup, name: &str, value: &str) {
    let (name, value) = (fact_name(name), fact_value(name, value));
    out.raw("<tr>").raw(format_args!("<th scope=\"row\">{}</th>", escape(name)));
    out.element("td", value).raw("</tr>");
}

/// A fact as people call it; those of the kernel keep the kernel's names.
fn fact_name(name: &str) -> &str {
    let in_words = FACTS_IN_WORDS.iter().find(|(id, _)| *id == name);
    in_words.map_or(name, |(_, words)| words)
}

/// A value as people write it: a number of bytes with a unit.
fn fact_value<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    let bytes = || value.parse().ok().filter(|bytes| *bytes > 0);
    match name {
        "memory.huge_page_bytes" | "memory.swap_bytes" => match (bytes(), value) {
            (Some(bytes), _) => ByteCount(bytes).to_string().into(),
            (None, "0") => "none".into(),
            (None, value) => value.into(),
        },
        "cpu.mhz" => format!("{value} MHz").into(),
        _ => value.into(),
    }
}

const FACTS_IN_WORDS: [(&str, &str); 25] = [
    ("os", "operating system"),
    ("cpu.model", "CPU"),
    ("cpu.cache", "CPU cache"),
    ("cpu.mhz", "CPU clock"),
    ("cpu.mitigations", "CPU vulnerabilities"),
    ("cpu.numa_nodes", "NUMA nodes"),
    ("cpu.online", "CPUs online"),
    ("cpu.threads_per_core", "threads per core"),
    ("clock_source", "clock source"),
    ("disk.name", "disk"),
    ("disk.rotational", "rotating disk, as the kernel reports it"),
    ("disk.scheduler", "I/O scheduler"),
    ("disk.write_cache", "write cache of the disk"),
    ("filesystem", "filesystem of the data"),
    ("filesystem.device", "device of the filesystem"),
    ("filesystem.mount_point", "mounted at"),
    ("filesystem.options", "mount options"),
    ("limit.open_files", "open-file limit"),
    ("limit.open_files_hard", "open-file hard limit"),
    ("load_average", "load average (1 min) when the run began"),
    ("memory.huge_page_bytes", "huge page size"),
    ("memory.swap_bytes", "swap"),
    ("scheduling group", "group of the kernel's scheduler"),
    ("transparent_huge_pages", "transparent huge pages"),
    ("virtualisation", "virtualised by"),
];

/// Names of facts with their values, of one machine.
type Facts = BTreeMap<String, BTreeSet<String>>;

/// The facts that a reader asks for first, in this order; the others are folded.
const FIRST_FACTS: [&str; 18] = [
    "machine",
    "os",
    "kernel",
    "virtualisation",
    "container",
    "cpu.model",
    "CPUs",
    "memory",
    "filesystem",
    "disk.name",
    "disk.rotational",
    "connection",
    "Dyno",
    "run began",
    "seed",
    "order of trials",
    "data sets",
    "load_average",
];

/// Where it ran: one column of values, or one for each machine where there are several.
fn environment(out: &mut Markup, view: &View<'_>, runs: &[Run]) {
    let mut machines: BTreeMap<&str, Facts> = BTreeMap::new();
    for run in runs {
        let name = run.manifest.environment.machine.as_str();
        add_facts(machines.entry(name).or_default(), run);
    }
    if machines.len() <= 1 {
        let mut facts = machines.into_values().next().unwrap_or_default();
        let mut add = |name: &str, value: String| {
            facts.entry(name.to_owned()).or_default().insert(value);
        };
        if view.findings.cpus > 0 {
            add("CPUs", view.findings.cpus.to_string());
        }
        if let Some(sets) = data_sets(view) {
            add("data sets", sets);
        }
        // Findings say `cpus` and `dyno` once more.
        let known: BTreeSet<String> = facts.keys().map(|name| name.to_ascii_lowercase()).collect();
        for (name, value) in &view.findings.environment {
            if !known.contains(&name.to_ascii_lowercase()) {
                facts.insert(name.clone(), BTreeSet::from([value.clone()]));
            }
        }
        open_facts(out, "Where it ran");
        for name in FIRST_FACTS {
            if let Some(values) = facts.remove(name) {
                fact(out, name, &joined(&values));
            }
        }
        if !facts.is_empty() {
            out.raw("</tbody></table></div><details class=\"fold\">");
            out.element("summary", words::counted(facts.len(), "further fact", "further facts"));
            open_facts(out, "");
            facts.iter().for_each(|(name, values)| fact(out, name, &joined(values)));
            out.raw("</tbody></table></div></details>");
            return;
        }
    } else {
        out.raw("<div class=\"scroll\"><table class=\"facts\"><caption>Where it ran</caption>");
        out.raw("<thead><tr><th scope=\"col\">Fact</th>");
        machines.keys().for_each(|name| {
            out.raw(format_args!("<th scope=\"col\">{}</th>", escape(name)));
        });
        out.raw("</tr></thead><tbody>");
        let names: BTreeSet<&String> = machines.values().flat_map(BTreeMap::keys).collect();
        for name in names {
            let head = escape(fact_name(name));
            out.raw("<tr>").raw(format_args!("<th scope=\"row\">{head}</th>"));
            for facts in machines.values() {
                let value = facts.get(name).map_or("–".to_owned(), joined);
                out.element("td", fact_value(name, &value));
            }
            out.raw("</tr>");
        }
    }
    out.raw("</tbody></table></div>");
}

fn joined(values: &BTreeSet<String>) -> String {
    values.iter().map(String::as_str).collect::<Vec<_>>().join(" · ")
}

fn add_facts(facts: &mut Facts, run: &Run) {
    let mut add = |name: &str, value: String| {
        facts.entry(name.to_owned()).or_default().insert(value);
    };
    let (manifest, environment) = (&run.manifest, &run.manifest.environment);
    add("machine", environment.machine.clone());
    add("CPUs", environment.cpus.to_string());
    add("memory", ByteCount(environment.memory_bytes).to_string());
    add("run began", dyno_units::utc_date_time(manifest.created_unix_ms));
    add("Dyno", manifest.dyno.clone());
    add("seed", manifest.seed.to_string());
    add("order of trials", manifest.order.clone());
    environment.facts.iter().for_each(|(name, value)| add(name, value.clone()));
    for server in run.trials.iter().map(|t| &t.server).filter(|s| !s.transport.is_empty()) {
        let tls = if server.tls { " with TLS" } else { "" };
        add("connection", format!("{}{tls}", server.transport));
        if let Some(group) = server.machine.get(SCHEDULING_GROUP) {
            add("scheduling group", format!("{}: {group}", server.product));
        }
        if let Some(build) = &server.product_facts().build {
            add(
                "builds",
                format!("{} {}: {}", server.product, number(&server.version), build.words()),
            );
            let configured = build.configured.iter();
            configured.for_each(|text| add(&format!("{} configured", build.words()), text.clone()));
        }
    }
}

/// A version without what follows its number.
fn number(version: &str) -> &str {
    version.split_whitespace().next().unwrap_or_default()
}

/// How many trials populated their data set, and how many ran on a copy of an earlier one.
fn data_sets(view: &View<'_>) -> Option<String> {
    let has_data = |trial: &&TrialFacts| trial.rows > 0 || trial.bytes.is_some();
    let with_rows = || view.findings.trials.iter().filter(has_data);
    let (all, reused) = (with_rows().count(), with_rows().filter(|t| t.is_reused).count());
    let fresh = words::counted(all - reused, "trial", "trials");
    (all > 0).then(|| format!("populated by {fresh}, reused by {reused}"))
}

fn own_share(out: &mut Markup, runs: &[Run]) {
    let trials = || runs.iter().flat_map(|r| &r.trials);
    let wall: f64 = trials().map(|t| t.probes_wall_s).sum();
    let cpu: f64 = trials().map(|t| t.probes_cpu_s).sum();
    let generators = || trials().flat_map(|t| &t.steps).map(|s| &s.generator);
    let workers = generators().map(|g| g.workers).max().unwrap_or(0);
    if wall <= 0.0 && workers == 0 {
        return;
    }
    open_facts(out, "Measurement overhead");
    if wall > 0.0 {
        let share = Unit::Percent.tick(cpu / wall * 100.0);
        fact(out, "probes", &format!("{share} of one CPU"));
    }
    if workers > 0 {
        let busiest = generators().map(|g| g.busiest_worker).fold(0.0, f64::max);
        let rss = generators().map(|g| g.rss_bytes).max().unwrap_or(0);
        let threads = words::counted(workers as usize, "worker", "workers");
        let busy = Unit::Percent.tick(busiest * 100.0);
        let memory = match rss {
            0 => String::new(),
            rss => format!("; at most {} of memory", ByteCount(rss)),
        };
        let text = match workers {
            1 => format!("1 worker, which used {busy} of a CPU at its busiest{memory}"),
            _ => format!("{threads}; the busiest used {busy} of a CPU at its busiest{memory}"),
        };
        fact(out, "load generator", &text);
    }
    out.raw("</tbody></table></div>");
}

fn variants(out: &mut Markup, view: &View<'_>) {
    let variants = &view.findings.variants;
    let join = |pairs: &mut dyn Iterator<Item = (&String, &String)>| {
        pairs.map(|(a, b)| format!("{a} = {b}")).collect::<Vec<_>>().join(", ")
    };
    // A workload that all share is named once.
    let is_common = variants.len() > 1
        && variants.windows(2).all(|pair| {
            (&pair[0].workload, &pair[0].options) == (&pair[1].workload, &pair[1].options)
        });
    out.raw("<div class=\"scroll\"><table><caption>Variants</caption><thead><tr><th scope=\"col\">Variant</th>");
    out.raw(
        "<th scope=\"col\">Server</th><th scope=\"col\">Levels</th><th \
         scope=\"col\">Durability</th>",
    );
    out.raw(if is_common { "" } else { "<th scope=\"col\">Workload</th>" });
    out.raw("<th class=\"n\" scope=\"col\">Finished</th><th class=\"n\" scope=\"col\">Failed</th></tr></thead><tbody>");
    for (i, variant) in variants.iter().enumerate() {
        let levels = join(&mut variant.levels.iter().map(|(a, b)| (a, b)));
        out.raw(format_args!("<tr class=\"v{i}\"><th scope=\"row\">{}</th>", parts::name(view, i)));
        out.element("td", &variant.server).element("td", levels).element("td", &variant.durability);
        if !is_common {
            let options = join(&mut variant.options.iter());
            out.raw("<td>").text(&variant.workload).element("small", options).raw("</td>");
        }
        out.classed("td", "n", variant.finished.to_string());
        out.classed("td", "n", variant.failed.to_string()).raw("</tr>");
    }
    out.raw("</tbody></table></div>");
    if let Some(first) = variants.first().filter(|_| is_common) {
        out.raw("<p class=\"quiet\">Workload of all variants: ").element("b", &first.workload);
        let options = join(&mut first.options.iter());
        out.element("small", options).raw("</p>");
    }
}

/// Only what differs is shown; all of it is folded.
fn settings(out: &mut Markup, view: &View<'_>) {
    let differences = &view.findings.setting_differences;
    if differences.is_empty() {
        let is_known = view.findings.variants.iter().any(|variant| !variant.settings.is_empty());
        if is_known && view.findings.variants.len() > 1 {
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
    out.raw("<thead><tr><th scope=\"col\">Setting</th>");
    for i in 0..view.findings.variants.len() {
        out.raw(format_args!("<th scope=\"col\">{}</th>", parts::name(view, i)));
    }
    out.raw("</tr></thead><tbody>");
    for (name, values) in rows {
        out.raw(format_args!("<tr><th scope=\"row\"><code>{}</code></th>", escape(name)));
        for value in values {
            match value {
                Some(value) => out.raw("<td>").element("code", value).raw("</td>"),
                None => out.raw("<td class=\"none\">no such setting</td>"),
            };
        }
        out.raw("</tr>");
    }
    out.raw("</tbody></table></div>");
}

fn stopping(out: &mut Markup, view: &View<'_>) {
    let Some(facts) = &view.findings.stopping else { return };
    out.element("h3", "Sequential stopping");
    let (looks, saved) = (
        words::counted(facts.looks as usize, "look at the results", "looks at the results"),
        words::counted(facts.saved_trials as usize, "trial", "trials"),
    );
    let each = Unit::Percent.tick(facts.confidence_of_looks * 100.0);
    out.classed(
        "p",
        "lead",
        format!(
            "Between {} and {} repetitions, with at most {looks}; {saved} of the plan were not needed. \
             The CIs allow for all looks: the confidence is {each} at each look before the last, so \
             that {} holds whenever a variant is stopped.",
            facts.repetitions_min,
            facts.repetitions_max,
            view.confidence()
        ),
    );
    out.raw("<div class=\"scroll\"><table><thead><tr><th scope=\"col\">Variant</th>");
    out.raw("<th class=\"n\" scope=\"col\">Repetitions</th><th scope=\"col\">State</th><th scope=\"col\">Why</th></tr></thead><tbody>");
    for (i, variant) in facts.variants.iter().enumerate().take(view.findings.variants.len()) {
        out.raw(format_args!("<tr class=\"v{i}\"><th scope=\"row\">{}</th>", parts::name(view, i)));
        out.classed("td", "n", variant.repetitions.to_string());
        out.element("td", if variant.settled { "decided" } else { "undecided" });
        out.element("td", &variant.why).raw("</tr>");
    }
    out.raw("</tbody></table></div>");
}

fn plan(out: &mut Markup, view: &View<'_>) {
    let trials = &view.findings.trials;
    let finished = trials.iter().filter(|t| t.state == "finished").count();
    let open = if trials.len() <= 30 || finished < trials.len() { " open" } else { "" };
    out.raw(format_args!("<details class=\"fold\"{open}>"));
    let all = words::counted(trials.len(), "trial", "trials");
    out.element("summary", format!("The plan: {all} in order"));
    out.raw("<div class=\"scroll\"><table><thead><tr><th class=\"n\" scope=\"col\">Trial</th><th scope=\"col\">Variant</th>");
    out.raw("<th class=\"n\" scope=\"col\">Block</th><th class=\"n\" scope=\"col\">Repetition</th><th scope=\"col\">State</th>");
    out.raw("<th scope=\"col\">Began</th><th class=\"n\" scope=\"col\">Rows</th><th scope=\"col\">Data set</th>");
    out.raw("<th class=\"n\" scope=\"col\">Size</th></tr></thead><tbody>");
    trials.iter().for_each(|trial| plan_row(out, view, trial));
    out.raw("</tbody></table></div>");
    if trials.iter().any(|trial| trial.is_rerun) {
        out.classed(
            "p",
            "quiet",
            "rerun: measured again after all other trials, because its block was discarded the first time \
             (see the caveats on the host); the time shown is that of the rerun.",
        );
    }
    out.raw("</details>");
}

fn plan_row(out: &mut Markup, view: &View<'_>, trial: &TrialFacts) {
    out.raw(format_args!("<tr class=\"v{}\"><td class=\"n\">{}</td>", trial.variant, trial.number));
    out.raw(format_args!("<td>{}</td>", parts::name(view, trial.variant)));
    out.classed("td", "n", trial.block.to_string());
    out.classed("td", "n", trial.repetition.to_string());
    let class = if matches!(trial.state.as_str(), "finished" | "not needed") { "" } else { "bad" };
    let state = if trial.is_rerun { "finished, rerun" } else { &trial.state };
    out.classed("td", class, if trial.state == "finished" { state } else { &trial.state });
    out.element("td", trial.began_unix_ms.map_or("–".to_owned(), dyno_units::utc_date_time));
    out.classed(
        "td",
        "n",
        if trial.rows == 0 { "–".to_owned() } else { format::grouped(trial.rows) },
    );
    out.raw("<td>");
    match (trial.rows > 0 || trial.bytes.is_some(), trial.is_reused) {
        (false, _) => out.text("–"),
        (_, false) => out.text(format!("populated in {}", format::seconds(trial.populate_s))),
        (_, true) => out.text("reused").element(
            "small",
            format!("populated by an earlier trial in {}", format::seconds(trial.populate_s)),
        ),
    };
    out.raw("</td>");
    let size = trial.bytes.map_or("unknown".to_owned(), |b| ByteCount(b).to_string());
    out.raw("<td class=\"n\">").text(size);
    if let Some(after) = trial.bytes_after {
        out.element("small", format!("{} after the load", ByteCount(after)));
    }
    out.raw("</td></tr>");
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

/// Letters of a message that are shown at first: servers quote whole statements.
const EXAMPLE_MOST: usize = 200;

fn example(out: &mut Markup, message: &str) {
    match message.char_indices().nth(EXAMPLE_MOST) {
        None => _ = out.text(message),
        Some((at, _)) => {
            out.raw("<details>").element("summary", format!("{}…", message[..at].trim_end()));
            out.element("p", message).raw("</details>");
        }
    }
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
    open_facts(out, "Errors, with an example of each kind");
    for (kind, message) in examples {
        out.raw("<tr><th scope=\"row\">").text(&kind.replace('_', " ")).raw("</th><td>");
        example(out, message);
        out.raw("</td></tr>");
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
    out.classed("p", "quiet", format!("Failed attempts in total: {}.", format::grouped(total)));
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
    out.element("h3", "Reproduce or examine this run");
    out.raw("<ul>");
    if runs.iter().any(|run| !run.manifest.study_source.is_empty()) {
        out.raw("<li>Save the study file above as <code>study.toml</code> and run ");
        let mut seeds: Vec<u64> = runs.iter().map(|run| run.manifest.seed).collect();
        seeds.dedup();
        for (idx, seed) in seeds.iter().enumerate() {
            out.raw(if idx > 0 { " or " } else { "" });
            out.element("code", format!("dyno run study.toml --seed {seed}"));
        }
        out.raw(": with this seed the trials come in the same order.</li>");
    }
    for run in runs {
        out.raw("<li>The record is in ");
        out.element("code", run.folder.display().to_string());
        let mut steps = run.trials.iter().flat_map(|trial| &trial.steps);
        if steps.any(|step| step.imported.is_some()) {
            out.raw(
                ": <code>summary.json</code> of each trial names the files it was read from.</li>",
            );
            continue;
        }
        out.raw(
            ": <code>manifest.json</code> says what was planned; each trial has its events, its ",
        );
        out.raw(
            "readings and one histogram for each second and kind of transaction in HdrHistogram's ",
        );
        out.raw("format.</li>");
    }
    out.raw(
        "<li>Every number of this page is in <code>findings.json</code> (<code>dyno report RUN ",
    );
    out.raw("--format json</code>); <code>docs/findings.md</code> explains its fields.</li></ul>");
}

fn glossary(out: &mut Markup, view: &View<'_>) {
    let confidence = view.confidence();
    let threshold = view.threshold();
    let bounds = format!(
        "The {confidence} confidence interval of the geometric mean over repetitions (Student's t on \
         the logarithms). n counts repetitions, never seconds or transactions. With two \
         repetitions, both values are shown instead."
    );
    let verdict = format!(
        "No difference: the whole CI lies within ± {threshold}. Otherwise better or worse if the \
         difference exceeds what noise explains (p ≤ 5 %), however small it is. Otherwise inconclusive."
    );
    let words: [(&str, &str); 12] = [
        ("throughput", "Committed transactions per second of the measurement phase."),
        (
            "response time",
            "done − due: how long a user waited. Under closed-loop load, due = sent.",
        ),
        ("service time", "done − sent: how long the server took."),
        ("lag", "sent − due: how late the load generator was."),
        (
            "p95",
            "95 % of the committed transactions took at most this long. Within a trial, from merged \
             histograms; across repetitions, the geometric mean of the trials' p95.",
        ),
        ("CI", &bounds),
        (
            "effect",
            "relative: variant ÷ baseline, shown as 1.40×, or as +40 % where all effects of a metric are \
             small; absolute: variant − baseline; paired by block where trials were interleaved. ✓ and ✗ stand for \
             better and worse, whichever way the number moved: a shorter time is better.",
        ),
        (
            "p",
            "How often noise alone would produce an effect at least this large: t-test on the \
             logarithms, with Holm's correction for the number of comparisons. findings.json also \
             has a permutation test.",
        ),
        ("verdict", &verdict),
        (
            "per transaction",
            "Resource use in the measurement phase ÷ transactions committed in it.",
        ),
        ("missed arrival", "A transaction that was due but never sent."),
        (
            "µs, ms; kB, MB",
            "Microseconds, milliseconds; 1,000 and 1,000,000 bytes. KiB, MiB, GiB are \
                            powers of 1024.",
        ),
    ];
    out.raw("<details class=\"fold\" open><summary>Terms, units, formulas</summary><dl>");
    for (word, meaning) in words {
        out.element("dt", word).element("dd", meaning);
    }
    out.raw("</dl></details>");
}
