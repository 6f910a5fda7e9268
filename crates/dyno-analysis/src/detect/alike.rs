//! Whether compared variants are alike in durability, memory, protocol, encryption and caching.

use dyno_record::{LevelRecord, SCHEDULING_GROUP, TrialSummary, VariantRecord};

use super::found::{At, Evidence, Found};
use super::storage;
use crate::attribution::AttributionFacts;
use crate::join::Joined;
use crate::statistics::median;
use crate::words::{bytes, cut, grouped, joined, list, share};
use crate::{Cell, Findings};

/// As a share.
const MEMORY_UNLIKE: f64 = 0.05;
/// As a share.
const SIZE_CHANGED: f64 = 0.1;
/// Disk reads per transaction: at least for data outside memory, and at most inside.
const READS_OUTSIDE: f64 = 0.1;
const READS_INSIDE: f64 = 0.001;
/// Over the engine's cache: such data cannot be in it.
const MUCH_LARGER: f64 = 1.5;

pub(super) fn durability(seen: &Evidence<'_>) -> Option<Found> {
    let pairs = seen.pairs().filter(|pair| is_durability_unlike(seen.findings, *pair));
    let unlike: Vec<(usize, usize)> = pairs.collect();
    let found = Found::of(unlike.iter().flat_map(|&(a, b)| [a, b]))?;
    let found = Found { words: vec![by_durability(seen.findings)], ..found };
    found.advise_if(
        unlike.iter().all(|&pair| is_durability_varied(seen.joined, pair)),
        "Varied on purpose: a less durable variant is not better because it is faster. A ratio to \
         the baseline also includes everything else that differs between the two; the price of \
         durability alone is the ratio of variants that differ in nothing else.",
    )
}

/// As far as known.
pub(crate) fn is_durability_unlike(findings: &Findings, (one, other): (usize, usize)) -> bool {
    let of = |idx: usize| findings.variants[idx].durability.as_str();
    of(one) != of(other) && !of(one).is_empty() && !of(other).is_empty()
}

/// By a setting that decides it, or the volume.
pub(crate) fn is_durability_varied(joined: &Joined<'_>, (one, other): (usize, usize)) -> bool {
    let names = [one, other].map(|idx| joined.product_facts(idx).durability_settings);
    let volume = |variant: &VariantRecord| -> Vec<LevelRecord> {
        let is_it = |level: &&LevelRecord| level.factor.split('.').any(|word| word == "volume");
        variant.levels.iter().filter(is_it).cloned().collect()
    };
    volume(&joined.variants[one]) != volume(&joined.variants[other])
        || is_varied(joined, (one, other), &names.concat())
}

/// `every commit is synced (a, b); not synced (c)`
fn by_durability(findings: &Findings) -> String {
    let variants = findings.variants.iter().filter(|variant| !variant.durability.is_empty());
    let kinds = grouped(variants.map(|variant| (&variant.durability, variant.name.as_str())));
    let kind =
        |(durability, names): &(&String, Vec<&str>)| format!("{durability} ({})", names.join(", "));
    joined(kinds.iter().map(kind), "; ")
}

/// `what` gives both sides of a pair.
fn differing<T: AsRef<str>>(
    seen: &Evidence<'_>,
    what: impl Fn(usize, usize) -> Option<(T, T)>,
) -> Option<Found> {
    let mut found = Found::default();
    for (idx, baseline) in seen.pairs() {
        if let Some((ours, theirs)) = what(idx, baseline) {
            let (us, them) = (seen.variant(idx), seen.variant(baseline));
            let words = format!("{us}: {}; {them}: {}", ours.as_ref(), theirs.as_ref());
            found.add_pair(words, (idx, baseline));
        }
    }
    found.joined(". ", usize::MAX)
}

fn is_varied(joined: &Joined<'_>, (a, b): (usize, usize), names: &[String]) -> bool {
    let (a, b) = (&joined.variants[a].settings, &joined.variants[b].settings);
    names.iter().any(|name| a.get(name) != b.get(name))
}

fn is_memory_varied(joined: &Joined<'_>, (a, b): (usize, usize)) -> bool {
    let names = [a, b].map(|idx| joined.product_facts(idx).memory_settings);
    is_varied(joined, (a, b), &names.concat())
}

pub(super) fn memory(seen: &Evidence<'_>) -> Option<Found> {
    let memory = |idx: usize| seen.findings.variants[idx].memory_bytes;
    let levels = |idx: usize| seen.findings.variants[idx].levels.iter();
    let is_unlike = |a: f64, b: f64| (a - b).abs() > MEMORY_UNLIKE * a.max(b);
    let what = |idx: usize, baseline: usize| {
        let (ours, theirs) = (memory(idx)?, memory(baseline)?);
        // Varying the setting itself is the question.
        let is_factor = is_memory_varied(seen.joined, (idx, baseline))
            && levels(idx).any(|(factor, _)| factor.starts_with("setting."));
        (is_unlike(ours, theirs) && !is_factor).then(|| (bytes(ours), bytes(theirs)))
    };
    let found = differing(seen, what)?;
    // As is setting the memory of variants.
    let unequal = || seen.pairs().filter(|&(idx, baseline)| what(idx, baseline).is_some());
    if unequal().all(|pair| is_memory_varied(seen.joined, pair)) {
        return found.advise("Varied on purpose: read the effect as what the memory is worth.");
    }
    let shards = |idx: usize| levels(idx).find(|(factor, _)| factor.ends_with(".shards"));
    found.advise_if(
        unequal().all(|(idx, baseline)| shards(idx) != shards(baseline)),
        "Each shard adds its own cache: read the effect as that of more servers and more memory \
         together.",
    )
}

fn trial_of<'a>(joined: &Joined<'a>, idx: usize) -> Option<&'a TrialSummary> {
    joined.finished_of(idx).find_map(|trial| trial.finished())
}

/// Same product, other compilers, libraries and options.
pub(super) fn builders(seen: &Evidence<'_>) -> Option<Found> {
    let built = |idx: usize| {
        let server = &trial_of(seen.joined, idx)?.server;
        Some((&server.product, server.product_facts().build.clone()?))
    };
    differing(seen, |idx, baseline| {
        let ((product, ours), (other, theirs)) = (built(idx)?, built(baseline)?);
        let is_same = (&ours.source, &ours.builder) == (&theirs.source, &theirs.builder)
            || (!ours.builder.is_empty() && ours.builder == theirs.builder);
        (product == other && !is_same).then(|| (ours.words(), theirs.words()))
    })
}

/// Whether the difference is the question.
fn is_factor(seen: &Evidence<'_>, variant: usize, is_it: impl Fn(&str) -> bool) -> bool {
    seen.findings.variants[variant].levels.iter().any(|(factor, _)| is_it(factor))
}

pub(super) fn protocols(seen: &Evidence<'_>) -> Option<Found> {
    let parts = |idx: usize| {
        let transport = trial_of(seen.joined, idx)?.server.transport.as_str();
        let options = &seen.findings.variants[idx].options;
        let names = options.iter().filter(|(name, _)| name.contains("protocol"));
        let protocols: Vec<String> = names.map(|(name, value)| format!("{name} {value}")).collect();
        Some((transport, protocols.join(", ")))
    };
    let in_words = |(transport, protocol): (&str, String)| {
        let parts = [transport, protocol.as_str()].into_iter().filter(|part| !part.is_empty());
        list(parts)
    };
    differing(seen, |idx, baseline| {
        let (ours, theirs) = (parts(idx)?, parts(baseline)?);
        let is_meant = is_factor(seen, idx, |factor| factor.contains("protocol"));
        let is_simulated = [idx, baseline].map(|idx| seen.joined.product_facts(idx).simulated);
        let differs = ours.0 != theirs.0 || (ours.1 != theirs.1 && !is_meant);
        (differs && is_simulated == [false; 2]).then(|| (in_words(ours), in_words(theirs)))
    })
}

/// On the generator's machine, in different groups.
pub(super) fn scheduling(seen: &Evidence<'_>) -> Option<Found> {
    let group = |idx: usize| trial_of(seen.joined, idx)?.server.machine.get(SCHEDULING_GROUP);
    differing(seen, |idx, baseline| {
        let (ours, theirs) = (group(idx)?, group(baseline)?);
        let is_meant = is_factor(seen, idx, |factor| factor.ends_with("cpu_weight"));
        (ours != theirs && !is_meant).then_some((ours, theirs))
    })
}

pub(super) fn encryption(seen: &Evidence<'_>) -> Option<Found> {
    let tls = |idx: usize| {
        let is_on = trial_of(seen.joined, idx)?.server.tls;
        Some(if is_on { "TLS" } else { "no TLS" })
    };
    differing(seen, |idx, baseline| {
        let (ours, theirs) = (tls(idx)?, tls(baseline)?);
        (ours != theirs).then_some((ours, theirs))
    })
}

/// Steps of the workload are meant to change the size.
pub(super) fn sizes(seen: &Evidence<'_>) -> Option<Found> {
    if seen.joined.steps.iter().any(|step| step.own.is_some()) {
        return None;
    }
    let change = |trial: &TrialSummary| {
        let data = &trial.data;
        let (mut before, mut after) = (data.bytes?, data.bytes_after?);
        if let (Some(logs), Some(logs_after)) = (data.log_bytes, data.log_bytes_after) {
            (before, after) = (before.saturating_sub(logs), after.saturating_sub(logs_after));
        }
        (before > 0).then_some((before as f64, after as f64))
    };
    let ended = seen.joined.trials.iter();
    let ended = ended.filter_map(|trial| Some((trial.variant, change(trial.finished()?)?)));
    let changed: Vec<(usize, (f64, f64))> =
        ended.filter(|(_, (a, b))| (b / a - 1.0).abs() > SIZE_CHANGED).collect();
    let most = |(_, (a, b)): &(usize, (f64, f64))| (b / a).ln().abs();
    let (variant, (before, after)) = changed.iter().max_by(|a, b| most(a).total_cmp(&most(b)))?;
    let trial = trial_of(seen.joined, *variant);
    let (logs, if_logs) = match trial.is_none_or(|trial| trial.data.log_bytes.is_none()) {
        true => ("included", "only the logs grew, or "),
        false => ("excluded", ""),
    };
    let (name, before, after) = (seen.variant(*variant), bytes(*before), bytes(*after));
    let words = format!("{name} went from {before} to {after}, logs {logs}");
    let later = match seen.findings.steps.len() > 1 {
        true => "Later measurements ran on a different amount of data. ",
        false => "",
    };
    Found::new(words, changed.iter().map(|(variant, _)| *variant)).advise(format!(
        "{later}A faster variant changes its data more, so the variants did not run on the same \
         data. Measure for less time, or start with more rows. If {if_logs}the workload or a job \
         is meant to change the data, this is expected.",
    ))
}

/// InnoDB's: one read, where only bytes are known.
const PAGE_BYTES: f64 = 16_384.0;

/// Fewer say nothing about caches: an ALTER that reads five pages reads hardly anything.
const TRANSACTIONS_LEAST: u64 = 100;

/// Pages read for the server; the data disk's with a filesystem in user space, if they are more.
/// `None` if unknown (the machine's reads may be anybody's), or with few transactions.
fn reads(joined: &Joined<'_>, findings: &Findings, (variant, step): At) -> Option<f64> {
    let is_it = |cell: &&Cell| (cell.variant, cell.step) == (variant, step);
    let committed = findings.cells.iter().find(is_it)?.outcomes.get("committed")?;
    let is_it = |facts: &&AttributionFacts| (facts.variant, facts.step) == (variant, step);
    let facts = findings.attribution.iter().find(is_it)?;
    let per_transaction = |name: &str| {
        let used = facts.uses.iter().find(|used| used.name == name)?;
        let per_transaction = used.per_transaction.as_ref()?;
        // One disturbed trial does not make data uncached.
        Some(match per_transaction.values.len() {
            0..=2 => per_transaction.value,
            _ => median(&per_transaction.values),
        })
    };
    let of_server = per_transaction("read_bytes.server").map(|bytes| bytes / PAGE_BYTES);
    let is_in_user_space = storage::is_on_zfs_fuse(joined, variant);
    let of_disk = is_in_user_space.then(|| per_transaction("reads.data")).flatten();
    let most = [of_server, of_disk].into_iter().flatten().reduce(f64::max);
    most.filter(|_| *committed >= TRANSACTIONS_LEAST)
}

/// The side with its data in memory, if only one, the other, and its disk reads per transaction.
fn cached_unlike(
    joined: &Joined<'_>,
    findings: &Findings,
    (a, b): (usize, usize),
    step: usize,
) -> Option<(usize, usize, f64)> {
    let (ours, theirs) = (reads(joined, findings, (a, step))?, reads(joined, findings, (b, step))?);
    let (least, most) = (ours.min(theirs), ours.max(theirs));
    let is_unlike = least <= READS_INSIDE && most >= READS_OUTSIDE;
    let (inside, outside) = if ours < theirs { (a, b) } else { (b, a) };
    is_unlike.then_some((inside, outside, most))
}

/// And no varied memory setting explains it.
pub(crate) fn is_cached_on_one_side(
    joined: &Joined<'_>,
    findings: &Findings,
    pair: (usize, usize),
    step: usize,
) -> bool {
    cached_unlike(joined, findings, pair, step).is_some() && !is_memory_varied(joined, pair)
}

/// Both have one cause.
pub(super) fn caches(seen: &Evidence<'_>) -> Option<Found> {
    let [one, other] = [cached_on_one_side(seen), unexpected_caching(seen)];
    let (one, other) = match (one, other) {
        (Some(one), Some(other)) => (one, other),
        (one, other) => return one.or(other),
    };
    let words = vec![format!("{} {}", one.words[0], other.words[0])];
    let (variants, steps) = ([one.variants, other.variants], [one.steps, other.steps]);
    Some(Found { words, variants: variants.concat(), steps: steps.concat(), advice: one.advice })
}

fn cached_on_one_side(seen: &Evidence<'_>) -> Option<Found> {
    let mut found = Found::default();
    for (idx, baseline) in seen.pairs() {
        for step in 0..seen.findings.steps.len() {
            let both = (idx, baseline);
            let unlike = cached_unlike(seen.joined, seen.findings, both, step);
            let Some((inside, outside, most)) = unlike else { continue };
            let (place, other) = (seen.place((outside, step)), seen.variant(inside));
            let words =
                format!("{place} did {most:.2} disk reads per transaction, {other} almost none");
            found.add_pair(words, both);
            found.steps.push(step);
        }
    }
    let mut found = found.joined("; ", usize::MAX)?;
    found.words[0] = format!(
        "Only one of two variants that are compared had its data cached: {}.",
        found.words[0]
    );
    found.advise(
        "Unless the study is about caching, give both enough memory to hold the data, or neither, \
         and warm both up until disk reads are steady.",
    )
}

/// Data that fit into the engine's cache but are read, and InnoDB's that do not fit but are not.
fn unexpected_caching(seen: &Evidence<'_>) -> Option<Found> {
    let mut found = Found::default();
    let (mut has_reads, mut has_none) = (false, false);
    for cell in &seen.findings.cells {
        let at = (cell.variant, cell.step);
        let facts = &seen.findings.variants[cell.variant];
        let data = trial_of(seen.joined, cell.variant).map(|trial| &trial.data);
        // Without logs, which are not cached. (The size of a server by URL may lack them already.)
        let size = data.and_then(|data| {
            let bytes = data.bytes?;
            Some(bytes.checked_sub(data.log_bytes.unwrap_or(0)).unwrap_or(bytes) as f64)
        });
        let reads = reads(seen.joined, seen.findings, at);
        let (Some(cache), Some(size), Some(reads)) = (facts.memory_bytes, size, reads) else {
            continue;
        };
        let place = seen.place(at);
        let in_words = format!("{} of data, {} of cache", bytes(size), bytes(cache));
        let is_innodb = facts.settings.contains_key("innodb_buffer_pool_size");
        if size <= 0.9 * cache && reads >= READS_OUTSIDE {
            has_reads = true;
            let n = format!("but did {reads:.2} disk reads per transaction");
            found.add(format!("{place} fits in cache ({in_words}) {n}"), at);
        } else if is_innodb && size > MUCH_LARGER * cache && reads <= READS_INSIDE {
            has_none = true;
            let part = share(cache / size);
            let n = "but did almost no disk reads";
            found.add(format!("{place} caches {part} ({in_words}) {n}"), at);
        }
    }
    cut(&mut found.words, 3, "");
    let mut found = found.joined("; ", usize::MAX)?;
    found.words[0] = format!("Disk reads do not match the size of the data: {}.", found.words[0]);
    let advice = [
        (
            has_reads,
            "If the data fit, warm up for longer, or find out what else reads from the disk.",
        ),
        (
            has_none,
            "If the data do not fit and yet are hardly read, the operating system caches them, or \
             the workload touches only part of them (inserts at the end of a table, a skewed \
             choice of rows). Mention it with the result, use direct I/O, or limit the memory.",
        ),
    ];
    let advice = advice.into_iter().filter_map(|(is_so, text)| is_so.then_some(text));
    found.advise(joined(advice, " "))
}

#[cfg(test)]
mod tests;
