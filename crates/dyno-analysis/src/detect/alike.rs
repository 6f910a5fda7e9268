//! Whether compared variants are alike in memory, protocol, encryption and caching.

use dyno_record::{SCHEDULING_GROUP, TrialSummary};

use crate::join::Joined;
use crate::statistics::median;
use crate::words::{bytes, list, share};
use crate::{Caveat, CaveatKind, Findings};

use super::{place_name, sorted};

/// As a share.
const MEMORY_UNLIKE: f64 = 0.05;
/// As a share.
const SIZE_CHANGED: f64 = 0.1;
/// Disk reads per transaction: at least for data outside memory, and at most inside.
const READS_OUTSIDE: f64 = 0.1;
const READS_INSIDE: f64 = 0.001;
/// Over the engine's cache: such data cannot be in it.
const MUCH_LARGER: f64 = 1.5;

pub(super) fn caveats(joined: &Joined<'_>, findings: &Findings) -> Vec<Caveat> {
    [
        different_memory(joined, findings),
        different_builders(joined, findings),
        different_protocol(joined, findings),
        different_scheduling(joined, findings),
        different_tls(joined, findings),
        changed_size(joined, findings),
        one_of_caches(cache_not_alike(joined, findings), unexpected_caching(joined, findings)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn pairs(findings: &Findings) -> impl Iterator<Item = (usize, usize)> {
    let variants = findings.variants.iter().enumerate();
    variants.filter_map(|(idx, variant)| Some((idx, variant.baseline?)))
}

/// `what` gives both sides of a pair.
fn differing(
    findings: &Findings,
    kind: CaveatKind,
    (heading, advice): (&str, &str),
    what: impl Fn(usize, usize) -> Option<(String, String)>,
) -> Option<Caveat> {
    let (mut parts, mut variants) = (Vec::new(), Vec::new());
    for (idx, baseline) in pairs(findings) {
        let Some((ours, theirs)) = what(idx, baseline) else { continue };
        let name = |idx: usize| &findings.variants[idx].name;
        parts.push(format!("{}: {ours}; {}: {theirs}", name(idx), name(baseline)));
        variants.extend([idx, baseline]);
    }
    (!parts.is_empty()).then(|| Caveat {
        kind,
        message: format!("{heading} {}.", parts.join(". ")),
        advice: advice.to_owned(),
        variants: sorted(variants.into_iter()),
        steps: Vec::new(),
    })
}

fn is_varied(joined: &Joined<'_>, (a, b): (usize, usize), names: &[String]) -> bool {
    let (a, b) = (&joined.variants[a].settings, &joined.variants[b].settings);
    names.iter().any(|name| a.get(name) != b.get(name))
}

fn is_memory_varied(joined: &Joined<'_>, (a, b): (usize, usize)) -> bool {
    let names = [a, b].map(|idx| joined.product_facts(idx).memory_settings);
    is_varied(joined, (a, b), &names.concat())
}

fn different_memory(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let memory = |idx: usize| findings.variants[idx].memory_bytes;
    let is_unlike = |a: f64, b: f64| (a - b).abs() > MEMORY_UNLIKE * a.max(b);
    let what = |idx: usize, baseline: usize| {
        let (ours, theirs) = (memory(idx)?, memory(baseline)?);
        // Varying the setting itself is the question.
        let is_factor = is_memory_varied(joined, (idx, baseline))
            && findings.variants[idx].levels.iter().any(|(f, _)| f.starts_with("setting."));
        (is_unlike(ours, theirs) && !is_factor).then(|| (bytes(ours), bytes(theirs)))
    };
    // As is setting the memory of variants.
    let unequal: Vec<(usize, usize)> =
        pairs(findings).filter(|&(idx, baseline)| what(idx, baseline).is_some()).collect();
    let is_varied = unequal.iter().all(|&pair| is_memory_varied(joined, pair));
    let is_sharded = unequal.iter().all(|&(idx, baseline)| {
        let shards = |idx: usize| {
            findings.variants[idx].levels.iter().find(|(factor, _)| factor.ends_with(".shards"))
        };
        shards(idx) != shards(baseline)
    });
    let advice = match () {
        () if is_varied => "Varied on purpose: read the effect as what the memory is worth.",
        () if is_sharded => {
            "Each shard adds its own cache: read the effect as that of more servers and more \
             memory together."
        }
        () => {
            "Give both the same memory for data (`innodb_buffer_pool_size`, `shared_buffers`, \
             `cache_size`), or publish the difference with the result."
        }
    };
    differing(
        findings,
        CaveatKind::DifferentMemory,
        ("The engines have different amounts of memory for data.", advice),
        what,
    )
}

fn trial_of<'a>(joined: &Joined<'a>, idx: usize) -> Option<&'a TrialSummary> {
    joined.trials.iter().filter(|trial| trial.variant == idx).find_map(|trial| trial.finished())
}

/// Same product, other compilers, libraries and options.
fn different_builders(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let built = |idx: usize| {
        let server = &trial_of(joined, idx)?.server;
        let build = server.product_facts().build.clone()?;
        Some((server.product.clone(), build))
    };
    let what = |idx: usize, baseline: usize| {
        let ((product, ours), (other, theirs)) = (built(idx)?, built(baseline)?);
        let is_same = (&ours.source, &ours.builder) == (&theirs.source, &theirs.builder)
            || (!ours.builder.is_empty() && ours.builder == theirs.builder);
        (product == other && !is_same).then(|| (ours.words(), theirs.words()))
    };
    let advice = "Compilers, libraries and build options differ as well, so the effect is not that of the \
                  version alone. Take all versions from one builder (`from`), or mention both with the \
                  result.";
    differing(
        findings,
        CaveatKind::DifferentBuilders,
        ("The servers were built by different builders.", advice),
        what,
    )
}

fn different_protocol(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let parts = |idx: usize| {
        let transport = trial_of(joined, idx)?.server.transport.as_str();
        let options = &findings.variants[idx].options;
        let names = options.iter().filter(|(name, _)| name.contains("protocol"));
        let protocols: Vec<String> = names.map(|(name, value)| format!("{name} {value}")).collect();
        Some((transport, protocols.join(", ")))
    };
    let what = |idx: usize, baseline: usize| {
        let (ours, theirs) = (parts(idx)?, parts(baseline)?);
        let is_meant =
            findings.variants[idx].levels.iter().any(|(factor, _)| factor.contains("protocol"));
        let is_simulated = [idx, baseline].iter().any(|idx| joined.product_facts(*idx).simulated);
        let in_words = |(transport, protocol): (&str, String)| {
            let parts = [transport, protocol.as_str()].map(str::to_owned);
            list(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<String>>())
        };
        let differs = ours.0 != theirs.0 || (ours.1 != theirs.1 && !is_meant);
        (differs && !is_simulated).then(|| (in_words(ours), in_words(theirs)))
    };
    let advice = "The connection is part of every response time and uses CPU on both sides. Use \
                  the same kind for both; if one database runs inside the generator's process, \
                  mention it with the result.";
    differing(
        findings,
        CaveatKind::DifferentProtocol,
        ("The servers were reached in different ways.", advice),
        what,
    )
}

/// On the generator's machine, in different groups.
fn different_scheduling(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let group = |idx: usize| trial_of(joined, idx)?.server.machine.get(SCHEDULING_GROUP);
    let what = |idx: usize, baseline: usize| {
        let (ours, theirs) = (group(idx)?, group(baseline)?);
        let levels = &findings.variants[idx].levels;
        let is_meant = levels.iter().any(|(factor, _)| factor.ends_with("cpu_weight"));
        (ours != theirs && !is_meant).then(|| (ours.clone(), theirs.clone()))
    };
    let advice = "Where server and generator compete for CPUs, that alone can change throughput by half: start all \
                  servers in the same way (all by Dyno, or all as services), switch groups of sessions off \
                  (`sysctl kernel.sched_autogroup_enabled=0`), or give server and generator CPUs of their own \
                  (`server_cpus`).";
    differing(
        findings,
        CaveatKind::DifferentScheduling,
        ("The kernel schedules the servers in different groups.", advice),
        what,
    )
}

fn different_tls(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let tls = |idx: usize| Some(trial_of(joined, idx)?.server.tls);
    let word = |is_on: bool| if is_on { "TLS" } else { "no TLS" }.to_owned();
    let what = |idx: usize, baseline: usize| {
        let (ours, theirs) = (tls(idx)?, tls(baseline)?);
        (ours != theirs).then(|| (word(ours), word(theirs)))
    };
    let advice = "Encryption costs CPU on both sides: use it for both or for neither, or read the \
                  effect as its price.";
    differing(
        findings,
        CaveatKind::DifferentTls,
        ("Connections are encrypted on one side only.", advice),
        what,
    )
}

/// Steps of the workload are meant to change the size.
fn changed_size(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    if joined.steps.iter().any(|step| step.own.is_some()) {
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
    let ended = joined.trials.iter().filter_map(|t| Some((t.variant, change(t.finished()?)?)));
    let changed: Vec<(usize, (f64, f64))> =
        ended.filter(|(_, (a, b))| (b / a - 1.0).abs() > SIZE_CHANGED).collect();
    let most = |(_, (a, b)): &(usize, (f64, f64))| (b / a).ln().abs();
    let (variant, (before, after)) = changed.iter().max_by(|a, b| most(a).total_cmp(&most(b)))?;
    let has_logs = trial_of(joined, *variant).is_none_or(|trial| trial.data.log_bytes.is_none());
    Some(Caveat {
        kind: CaveatKind::DataChangedSize,
        message: format!(
            "The data set changed size during the measurement: on disk, {} went from {} to {}, logs \
             {}.",
            findings.variants[*variant].name,
            bytes(*before),
            bytes(*after),
            if has_logs { "included" } else { "excluded" },
        ),
        advice: format!(
            "{}A faster variant changes its data more, so the variants did not run on the same data. \
             Measure for less time, or start with more rows. If {}the workload or a job is meant to \
             change the data, this is expected.",
            if findings.steps.len() > 1 {
                "Later measurements ran on a different amount of data. "
            } else {
                ""
            },
            if has_logs { "only the logs grew, or " } else { "" },
        ),
        variants: sorted(changed.iter().map(|(variant, _)| *variant)),
        steps: Vec::new(),
    })
}

/// InnoDB's: one read, where only bytes are known.
const PAGE_BYTES: f64 = 16_384.0;

/// Fewer say nothing about caches: an ALTER that reads five pages reads hardly anything.
const TRANSACTIONS_LEAST: u64 = 100;

/// Pages read for the server; the data disk's with a filesystem in user space, if they are more.
/// `None` if unknown (the machine's reads may be anybody's), or with few transactions.
fn reads(joined: &Joined<'_>, findings: &Findings, variant: usize, step: usize) -> Option<f64> {
    let cell = findings.cells.iter().find(|cell| (cell.variant, cell.step) == (variant, step))?;
    if cell.outcomes.get("committed").is_none_or(|committed| *committed < TRANSACTIONS_LEAST) {
        return None;
    }
    let is_it = |facts: &&crate::attribution::AttributionFacts| {
        (facts.variant, facts.step) == (variant, step)
    };
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
    let is_in_user_space = super::user_space::variants(joined).contains(&variant);
    let of_disk = is_in_user_space.then(|| per_transaction("reads.data")).flatten();
    match (of_server, of_disk) {
        (Some(of_server), Some(of_disk)) => Some(of_server.max(of_disk)),
        (of_server, of_disk) => of_server.or(of_disk),
    }
}

/// The side with its data in memory, if only one, the other, and its disk reads per transaction.
fn cached_unlike(
    joined: &Joined<'_>,
    findings: &Findings,
    (a, b): (usize, usize),
    step: usize,
) -> Option<(usize, usize, f64)> {
    let (ours, theirs) = (reads(joined, findings, a, step)?, reads(joined, findings, b, step)?);
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

/// They have one cause.
fn one_of_caches(first: Option<Caveat>, second: Option<Caveat>) -> Option<Caveat> {
    let (first, second) = match (first, second) {
        (Some(first), Some(second)) => (first, second),
        (first, second) => return first.or(second),
    };
    let both = |a: Vec<usize>, b: Vec<usize>| sorted(a.into_iter().chain(b));
    Some(Caveat {
        message: format!("{} {}", first.message, second.message),
        advice: first.advice,
        variants: both(first.variants, second.variants),
        steps: both(first.steps, second.steps),
        ..second
    })
}

fn cache_not_alike(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let (mut parts, mut variants, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    for (idx, baseline) in pairs(findings) {
        for step in 0..findings.steps.len() {
            if let Some((inside, outside, most)) =
                cached_unlike(joined, findings, (idx, baseline), step)
            {
                parts.push(format!(
                    "{} did {most:.2} disk reads per transaction, {} almost none",
                    place_name(findings, outside, step),
                    findings.variants[inside].name,
                ));
                variants.extend([idx, baseline]);
                steps.push(step);
            }
        }
    }
    (!parts.is_empty()).then(|| Caveat {
        kind: CaveatKind::UnexpectedCaching,
        message: format!(
            "Only one of two variants that are compared had its data cached: {}.",
            parts.join("; ")
        ),
        advice: "Unless the study is about caching, give both enough memory to hold the data, or \
                 neither, and warm both up until disk reads are steady."
            .to_owned(),
        variants: sorted(variants.into_iter()),
        steps: sorted(steps.into_iter()),
    })
}

/// Data that fit into the engine's cache but are read, and InnoDB's that do not fit but are not.
fn unexpected_caching(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let (mut parts, mut variants, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    let (mut has_reads, mut has_none) = (false, false);
    for cell in &findings.cells {
        let facts = &findings.variants[cell.variant];
        let data = trial_of(joined, cell.variant).map(|trial| &trial.data);
        // Without logs, which are not cached. (The size of a server by URL may lack them already.)
        let size = data.and_then(|data| {
            let bytes = data.bytes?;
            Some(bytes.checked_sub(data.log_bytes.unwrap_or(0)).unwrap_or(bytes))
        });
        let (Some(cache), Some(size), Some(reads)) =
            (facts.memory_bytes, size, reads(joined, findings, cell.variant, cell.step))
        else {
            continue;
        };
        let size = size as f64;
        let place = place_name(findings, cell.variant, cell.step);
        let in_words = format!("{} of data, {} of cache", bytes(size), bytes(cache));
        let is_innodb = facts.settings.contains_key("innodb_buffer_pool_size");
        if size <= 0.9 * cache && reads >= READS_OUTSIDE {
            has_reads = true;
            parts.push(format!(
                "{place} fits in cache ({in_words}) but did {reads:.2} disk reads per transaction"
            ));
        } else if is_innodb && size > MUCH_LARGER * cache && reads <= READS_INSIDE {
            has_none = true;
            let part = share(cache / size);
            parts.push(format!("{place} caches {part} ({in_words}) but did almost no disk reads"));
        } else {
            continue;
        }
        variants.push(cell.variant);
        steps.push(cell.step);
    }
    let more = parts.len().saturating_sub(3);
    parts.truncate(3);
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    (!parts.is_empty()).then(|| Caveat {
        kind: CaveatKind::UnexpectedCaching,
        message: format!("Disk reads do not match the size of the data: {}.", parts.join("; ")),
        advice: [
            (
                has_reads,
                "If the data fit, warm up for longer, or find out what else reads from the disk.",
            ),
            (
                has_none,
                "If the data do not fit and yet are hardly read, the operating system caches them, or the \
                 workload touches only part of them (inserts at the end of a table, a skewed choice \
                 of rows). Mention it with the result, use direct I/O, or limit the memory.",
            ),
        ]
        .into_iter()
        .filter_map(|(is_so, text)| is_so.then_some(text))
        .collect::<Vec<_>>()
        .join(" "),
        variants: sorted(variants.into_iter()),
        steps: sorted(steps.into_iter()),
    })
}

#[cfg(test)]
mod tests;
