//! How it was done: machine, servers, settings, plan, data, study, and what the words mean.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use dyno_analysis::{TrialFacts, VariantFacts};
use dyno_record::{Run, SCHEDULING_GROUP};
use dyno_units::ByteCount;

use super::kinds::is_good;
use super::{again, page::Page};
use crate::document::{Block, Cell, Element, Piece, Row, Section, Table, Text};
use crate::format::{self, Unit};
use crate::view::View;
use crate::words;

pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let Page { view, runs, .. } = *page;
    let mut blocks = environment(view, runs);
    blocks.extend(own_share(runs));
    blocks.extend(variants(view));
    blocks.extend(settings(view));
    blocks.extend(stopping(view));
    blocks.push(plan(view));
    blocks.extend(errors(view, runs));
    blocks.extend(runs.iter().filter_map(|run| study(run, runs.len() > 1)));
    blocks.extend(deeper(runs));
    blocks.extend(again::section(view, runs));
    blocks.push(glossary(view));
    Some(Section::new("method", "Method", "How it was done", "").with(blocks))
}

/// A table of facts: a row for each, its name first.
fn facts<'a>(title: &str, all: impl IntoIterator<Item = (&'a str, String)>) -> Block {
    let row = |(name, value): (&str, String)| {
        [Cell::from(fact_name(name)).head(), fact_value(name, &value).into_owned().into()]
    };
    let table = Table::of([Text::default(), Text::default()], 2).titled(title).class("facts");
    table.rows(all.into_iter().map(row)).into()
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
const FIRST_FACTS: &str = "machine | os | kernel | virtualisation | container | cpu.model | CPUs | memory | \
                           filesystem | disk.name | disk.rotational | connection | Dyno | run began | seed | \
                           order of trials | data sets | load_average";

/// Where it ran: one column of values, or one for each machine where there are several.
fn environment(view: &View<'_>, runs: &[Run]) -> Vec<Block> {
    let mut machines: BTreeMap<&str, Facts> = BTreeMap::new();
    for run in runs {
        let name = run.manifest.environment.machine.as_str();
        add_facts(machines.entry(name).or_default(), run);
    }
    if machines.len() <= 1 {
        let mut all = machines.into_values().next().unwrap_or_default();
        let mut add = |name: &str, value: String| {
            all.entry(name.to_owned()).or_default().insert(value);
        };
        if view.findings.cpus > 0 {
            add("CPUs", view.findings.cpus.to_string());
        }
        if let Some(sets) = data_sets(view) {
            add("data sets", sets);
        }
        // Findings say `cpus` and `dyno` once more.
        let known: BTreeSet<String> = all.keys().map(|name| name.to_ascii_lowercase()).collect();
        for (name, value) in &view.findings.environment {
            if !known.contains(&name.to_ascii_lowercase()) {
                all.insert(name.clone(), BTreeSet::from([value.clone()]));
            }
        }
        let first = FIRST_FACTS.split(" | ");
        let first = first.filter_map(|name| Some((name, joined(&all.remove(name)?))));
        let mut blocks = vec![facts("Where it ran", first.collect::<Vec<_>>())];
        if !all.is_empty() {
            let summary = words::counted(all.len(), "further fact", "further facts");
            let further = all.iter().map(|(name, values)| (name.as_str(), joined(values)));
            blocks.push(Block::fold(summary, false, vec![facts("", further)]));
        }
        return blocks;
    }
    let heads = std::iter::once("Fact").chain(machines.keys().copied());
    let names: BTreeSet<&String> = machines.values().flat_map(BTreeMap::keys).collect();
    let row = |name: &String| {
        let value = |facts: &Facts| {
            let value = facts.get(name).map_or("–".to_owned(), joined);
            Cell::from(fact_value(name, &value).into_owned())
        };
        let values: Vec<Cell> = machines.values().map(value).collect();
        std::iter::once(Cell::from(fact_name(name)).head()).chain(values)
    };
    let table = Table::of(heads, usize::MAX).titled("Where it ran").class("facts");
    vec![table.rows(names.into_iter().map(row)).into()]
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

fn own_share(runs: &[Run]) -> Option<Block> {
    let trials = || runs.iter().flat_map(|r| &r.trials);
    let wall: f64 = trials().map(|t| t.probes_wall_s).sum();
    let cpu: f64 = trials().map(|t| t.probes_cpu_s).sum();
    let generators = || trials().flat_map(|t| &t.steps).map(|s| &s.generator);
    let workers = generators().map(|g| g.workers).max().unwrap_or(0);
    let share = || Unit::Percent.tick(cpu / wall * 100.0);
    let probes = (wall > 0.0).then(|| ("probes", format!("{} of one CPU", share())));
    let busiest = generators().map(|g| g.busiest_worker).fold(0.0, f64::max);
    let rss = generators().map(|g| g.rss_bytes).max().unwrap_or(0);
    let busy = Unit::Percent.tick(busiest * 100.0);
    let memory = match rss {
        0 => String::new(),
        rss => format!("; at most {} of memory", ByteCount(rss)),
    };
    let text = match workers {
        0 => None,
        1 => Some(format!("1 worker, which used {busy} of a CPU at its busiest{memory}")),
        n => Some(format!("{n} workers; the busiest used {busy} of a CPU at its busiest{memory}")),
    };
    let all = probes.into_iter().chain(text.map(|text| ("load generator", text)));
    let all: Vec<(&str, String)> = all.collect();
    (!all.is_empty()).then(|| facts("Measurement overhead", all))
}

fn variants(view: &View<'_>) -> Vec<Block> {
    let variants = &view.findings.variants;
    let join = |pairs: &mut dyn Iterator<Item = (&String, &String)>| {
        pairs.map(|(a, b)| format!("{a} = {b}")).collect::<Vec<_>>().join(", ")
    };
    // A workload that all share is named once.
    let is_common = variants.len() > 1
        && variants.windows(2).all(|pair| {
            (&pair[0].workload, &pair[0].options) == (&pair[1].workload, &pair[1].options)
        });
    let heads = "Variant | Server | Levels | Durability | Workload | #Finished | #Failed";
    let row = |(idx, variant): (usize, &VariantFacts)| {
        let levels = join(&mut variant.levels.iter().map(|(a, b)| (a, b)));
        let options = join(&mut variant.options.iter());
        Row::new([
            view.head(idx),
            variant.server.as_str().into(),
            levels.into(),
            variant.durability.as_str().into(),
            Cell::from(variant.workload.as_str()).small(options),
            variant.finished.to_string().into(),
            variant.failed.to_string().into(),
        ])
    };
    let mut table = Table::headed("Variants", heads).class("variants");
    table.rows = variants.iter().enumerate().map(row).collect();
    let Some(first) = variants.first().filter(|_| is_common) else { return vec![table.into()] };
    let options = join(&mut first.options.iter());
    let text = Text::from("Workload of all variants: ").b(&*first.workload).small(options);
    vec![table.without(4).into(), Block::quiet(text)]
}

/// Only what differs is shown; all of it is folded.
fn settings(view: &View<'_>) -> Vec<Block> {
    let mut blocks = Vec::new();
    let differences = &view.findings.setting_differences;
    if differences.is_empty() {
        let is_known = view.findings.variants.iter().any(|variant| !variant.settings.is_empty());
        if is_known && view.findings.variants.len() > 1 {
            blocks.push(Block::lead("The settings in force are the same in all variants."));
        }
    } else {
        let rows = differences.iter().map(|d| (d.name.as_str(), d.values.clone()));
        blocks.push(settings_table(view, "Settings that differ", rows));
    }
    let all: BTreeSet<&String> =
        view.findings.variants.iter().flat_map(|v| v.settings.keys()).collect();
    if !all.is_empty() {
        let values = |name: &str| {
            view.findings.variants.iter().map(|v| v.settings.get(name).cloned()).collect()
        };
        let rows = all.iter().map(|name| (name.as_str(), values(name)));
        let table = settings_table(view, "Settings in force", rows);
        let summary = format!("All {} settings in force", all.len());
        blocks.push(Block::fold(summary, false, vec![table]));
    }
    blocks
}

fn settings_table<'a>(
    view: &View<'_>,
    title: &str,
    rows: impl Iterator<Item = (&'a str, Vec<Option<String>>)>,
) -> Block {
    let names = view.variants().map(|variant| view.name(variant));
    let heads = std::iter::once(Text::from("Setting")).chain(names);
    let mut table = Table::of(heads, usize::MAX).titled(title).class("settings");
    table.rows.extend(rows.map(|(name, values)| {
        let values = values.into_iter();
        let values = values.map(|value| value.map_or(Cell::none("no such setting"), Cell::code));
        Row::new(std::iter::once(Cell::code(name).head()).chain(values))
    }));
    table.into()
}

fn stopping(view: &View<'_>) -> Vec<Block> {
    let Some(facts) = &view.findings.stopping else { return Vec::new() };
    let looks = words::counted(facts.looks as usize, "look at the results", "looks at the results");
    let saved = words::counted(facts.saved_trials as usize, "trial", "trials");
    let each = Unit::Percent.tick(facts.confidence_of_looks * 100.0);
    let lead = format!(
        "Between {} and {} repetitions, with at most {looks}; {saved} of the plan were not needed. \
         The CIs allow for all looks: the confidence is {each} at each look before the last, so \
         that {} holds whenever a variant is stopped.",
        facts.repetitions_min,
        facts.repetitions_max,
        view.confidence()
    );
    let mut table = Table::headed("", "Variant | #Repetitions | State | Why");
    for (idx, variant) in facts.variants.iter().enumerate().take(view.findings.variants.len()) {
        table.row([
            view.head(idx),
            variant.repetitions.to_string().into(),
            if variant.settled { "decided" } else { "undecided" }.into(),
            variant.why.as_str().into(),
        ]);
    }
    vec![Block::heading(3, "Sequential stopping"), Block::lead(lead), table.into()]
}

fn plan(view: &View<'_>) -> Block {
    let trials = &view.findings.trials;
    let finished = trials.iter().filter(|t| t.state == "finished").count();
    let heads =
        "#Trial | Variant | #Block | #Repetition | State | Began | #Rows | Data set | #Size";
    let mut table = Table::headed("", heads);
    for trial in trials {
        table.row(plan_row(view, trial));
        table.rows.extend(why_row(trial));
    }
    let rerun = trials.iter().any(|trial| trial.is_rerun).then(|| {
        Block::quiet(
            "rerun: measured again after all other trials, because its block was discarded the first time \
             (see the caveats on the host); the time shown is that of the rerun.",
        )
    });
    let all = words::counted(trials.len(), "trial", "trials");
    let is_open = trials.len() <= 30 || finished < trials.len();
    let blocks = [table.into()].into_iter().chain(rerun).collect();
    Block::fold(format!("The plan: {all} in order"), is_open, blocks)
}

fn plan_row(view: &View<'_>, trial: &TrialFacts) -> [Cell; 9] {
    let class = if matches!(trial.state.as_str(), "finished" | "not needed") { "" } else { "bad" };
    let state = match trial.state.as_str() {
        "finished" if trial.is_rerun => "finished, rerun",
        state => state,
    };
    let populated = format::seconds(trial.populate_s);
    let data = match (trial.rows > 0 || trial.bytes.is_some(), trial.is_reused) {
        (false, _) => Cell::from("–"),
        (_, false) => Cell::from(format!("populated in {populated}")),
        (_, true) => {
            Cell::from("reused").small(format!("populated by an earlier trial in {populated}"))
        }
    };
    let size = Cell::from(trial.bytes.map_or("unknown".to_owned(), |b| ByteCount(b).to_string()));
    let after = trial.bytes_after.map(|after| format!("{} after the load", ByteCount(after)));
    [
        trial.number.to_string().into(),
        view.head(trial.variant).value(),
        trial.block.to_string().into(),
        trial.repetition.to_string().into(),
        Cell::from(state).class(class),
        trial.began_unix_ms.map_or("–".to_owned(), dyno_units::utc_date_time).into(),
        if trial.rows == 0 { "–".to_owned() } else { format::grouped(trial.rows) }.into(),
        data,
        after.into_iter().fold(size, Cell::small),
    ]
}

/// Why a trial did not finish, below its row.
fn why_row(trial: &TrialFacts) -> Option<Row> {
    let message = trial.message.as_deref();
    let message = message.map(|message| Element::of("p", message).class("bad"));
    let log = (!trial.server_log.is_empty()).then(|| {
        let title = "The last lines of the server's log:";
        [Element::of("small", title), Element::of("pre", trial.server_log.join("\n"))]
    });
    let why = message.into_iter().chain(log.into_iter().flatten());
    let why = why.fold(Text::default(), Text::element);
    let nothing = Cell { is_plain: true, ..Cell::default() };
    let is_known = !why.0.is_empty();
    let row = Row::new([nothing, Cell::from(why).with("colspan", 8)]);
    is_known.then(|| row.class(format!("why v{}", trial.variant)))
}

/// Letters of a message that are shown at first: servers quote whole statements.
const EXAMPLE_MOST: usize = 200;

fn example(message: &str) -> Text {
    match message.char_indices().nth(EXAMPLE_MOST) {
        None => message.into(),
        Some((at, _)) => {
            let begin = Element::of("summary", format!("{}…", message[..at].trim_end()));
            let parts = [begin, Element::of("p", message)];
            Text::default().element(Element::new("details").inside(parts))
        }
    }
}

/// The first message of each kind of error, in any trial.
fn errors(view: &View<'_>, runs: &[Run]) -> Vec<Block> {
    let mut examples: BTreeMap<&str, &str> = BTreeMap::new();
    let steps = runs.iter().flat_map(|r| &r.trials).flat_map(|t| &t.steps);
    for (kind, message) in steps.flat_map(|s| &s.error_examples) {
        examples.entry(kind).or_insert(message);
    }
    if examples.is_empty() {
        return Vec::new();
    }
    let row = |(kind, message): (&str, &str)| {
        [Cell::from(kind.replace('_', " ")).head(), example(message).into()]
    };
    let title = "Errors, with an example of each kind";
    let table = Table::of([Text::default(), Text::default()], 2).titled(title).class("facts");
    let outcomes = view.findings.cells.iter().flat_map(|cell| &cell.outcomes);
    let total = outcomes.filter(|(name, _)| !is_good(name)).map(|(_, n)| n).sum();
    let note = Block::quiet(format!("Failed attempts in total: {}.", format::grouped(total)));
    vec![table.rows(examples.into_iter().map(row)).into(), note]
}

fn study(run: &Run, is_named: bool) -> Option<Block> {
    let source = run.manifest.study_source.as_str();
    let title = match is_named {
        true => format!("The study file of {}", run.folder.display()),
        false => "The study file".to_owned(),
    };
    let text = Block::Control(Element::of("pre", source));
    (!source.is_empty()).then(|| Block::fold(title, false, vec![text]))
}

fn deeper(runs: &[Run]) -> [Block; 2] {
    let mut items = Vec::new();
    if runs.iter().any(|run| !run.manifest.study_source.is_empty()) {
        let mut seeds: Vec<u64> = runs.iter().map(|run| run.manifest.seed).collect();
        seeds.dedup();
        let again = seeds.iter().map(|seed| format!("`dyno run study.toml --seed {seed}`"));
        items.push(Text::prose(format!(
            "Save the study file above as `study.toml` and run {}: with this seed the trials come in the \
             same order.",
            again.collect::<Vec<_>>().join(" or ")
        )));
    }
    for run in runs {
        let place = run.folder.display().to_string();
        let text = Text::from("The record is in ").code(place).text(": ");
        let mut steps = run.trials.iter().flat_map(|trial| &trial.steps);
        items.push(match steps.any(|step| step.imported.is_some()) {
            true => {
                let rest = " of each trial names the files it was read from.";
                text.code("summary.json").text(rest)
            }
            false => text.code("manifest.json").then(Piece::Own(
                " says what was planned; each trial has its events, its readings and one histogram for each \
                 second and kind of transaction in HdrHistogram's format.",
            )),
        });
    }
    items.push(Text::prose(
        "Every number of this page is in `findings.json` (`dyno report RUN --format json`); \
         `docs/findings.md` explains its fields.",
    ));
    let items = items.into_iter().map(|item| Element::of("li", item));
    let list = Block::Control(Element::new("ul").inside(items));
    [Block::heading(3, "Reproduce or examine this run"), list]
}

fn glossary(view: &View<'_>) -> Block {
    let (confidence, threshold) = (view.confidence(), view.threshold());
    let bounds = format!(
        "CI: The {confidence} confidence interval of the geometric mean over repetitions (Student's t on \
         the logarithms). n counts repetitions, never seconds or transactions. With two \
         repetitions, both values are shown instead."
    );
    let verdict = format!(
        "verdict: No difference: the whole CI lies within ± {threshold}. Otherwise better or worse if the \
         difference exceeds what noise explains (p ≤ 5 %), however small it is. Otherwise undecided."
    );
    let words = [
        "throughput: Committed transactions per second of the measurement phase.",
        "response time: done − due: how long a user waited. Under closed-loop load, due = sent.",
        "service time: done − sent: how long the server took.",
        "lag: sent − due: how late the load generator was.",
        "p95: 95 % of the committed transactions took at most this long. Within a trial, from merged \
         histograms; across repetitions, the geometric mean of the trials' p95.",
        &bounds,
        "effect: relative: variant ÷ baseline, shown as 1.40×, or as +40 % where all effects of a metric are \
         small; absolute: variant − baseline; paired by block where trials were interleaved. ✓ and ✗ stand for \
         better and worse, whichever way the number moved: a shorter time is better.",
        "p: How often noise alone would produce an effect at least this large: t-test on the \
         logarithms, with Holm's correction for the number of comparisons. findings.json also \
         has a permutation test.",
        &verdict,
        "per transaction: Resource use in the measurement phase ÷ transactions committed in it.",
        "missed arrival: A transaction that was due but never sent.",
        "µs, ms; kB, MB: Microseconds, milliseconds; 1,000 and 1,000,000 bytes. KiB, MiB, GiB are \
         powers of 1024.",
    ];
    let words = words.into_iter().filter_map(|line| line.split_once(": "));
    let word = |(word, meaning)| [Element::of("dt", word), Element::of("dd", meaning)];
    let list = Element::new("dl").inside(words.flat_map(word));
    Block::fold("Terms, units, formulas", true, vec![Block::Control(list)])
}
