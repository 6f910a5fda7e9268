//! The results of a run, in the format of pgbench 15.

use dyno_units::Nanoseconds;
use dyno_workload::pgbench::{Moments, ScriptTotals, Statistics, WeightedScript};

use super::options::{Options, PartitionMethod};
use crate::commands::beside::Interruption;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TableFacts {
    pub(super) scale: i64,
    /// How `pgbench_accounts` is partitioned, and into how many parts.
    pub(super) partitions: Option<(PartitionMethod, i64)>,
}

/// A share in percent, with three places; `NaN` of nothing.
fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => "NaN".to_owned(),
        whole => format!("{:.3}", 100.0 * part as f64 / whole as f64),
    }
}

/// The results as text; `interrupted` is when a signal has ended the run.
pub(super) fn text(
    options: &Options,
    tables: TableFacts,
    statistics: &Statistics,
    interrupted: Option<Nanoseconds>,
) -> String {
    let scripts = statistics.scripts();
    let mut total = ScriptTotals::default();
    scripts.iter().for_each(|script| total.add(script));
    let (began, ended) = statistics.span().unwrap_or_default();
    // Transactions may have been in flight for a while.
    let length = interrupted.unwrap_or(ended).max(ended).saturating_sub(began);
    let duration = length.max(Nanoseconds(1000)).as_secs_f64();
    let mut out = Vec::from_iter(interrupted.map(|_| Interruption::heading(length)));
    parameters(&mut out, options, tables);
    let Options { clients, transactions, .. } = *options;
    let mut processed = format!("number of transactions actually processed: {}", total.committed);
    if options.duration > 0 {
        out.push(match interrupted {
            Some(_) => format!("duration: {duration:.2} s"),
            None => format!("duration: {} s", options.duration),
        });
    } else {
        out.push(format!("number of transactions per client: {transactions}"));
        processed += &format!("/{}", transactions * clients);
    }
    out.push(processed);
    failures(&mut out, "", options, &total);
    if total.ended() > 0 {
        times(&mut out, options, &total, duration);
        connections(&mut out, options, &total, duration, statistics);
        let is_several = options.settings.scripts.len() > 1;
        for idx in 0..options.settings.scripts.len() {
            if is_several {
                let of_script = scripts.get(idx).copied().unwrap_or_default();
                script(&mut out, options, idx, &of_script, (&total, duration));
            }
            if options.settings.measures_commands {
                commands(&mut out, options, idx, statistics);
            }
        }
    }
    out.join("\n") + "\n"
}

fn parameters(out: &mut Vec<String>, options: &Options, tables: TableFacts) {
    let title = match &options.settings.scripts[..] {
        [script] => script.script.title.as_str(),
        _ => "multiple scripts",
    };
    out.push(format!("transaction type: {title}"));
    out.push(format!("scaling factor: {}", tables.scale));
    if let Some((method, parts)) = tables.partitions {
        out.push(format!("partition method: {}\npartitions: {parts}", method.word()));
    }
    out.push(format!("query mode: {}", options.settings.protocol.word()));
    out.push(format!("number of clients: {}", options.clients));
    out.push(format!("number of threads: {}", options.threads));
    if options.settings.max_tries > 0 {
        out.push(format!("maximum number of tries: {}", options.settings.max_tries));
    }
}

fn failures(out: &mut Vec<String>, prefix: &str, options: &Options, of: &ScriptTotals) {
    let mut count = |what: &str, n: u64| {
        let share = percent(n, of.ended());
        out.push(format!("{prefix}number of {what}: {n} ({share}%)"));
    };
    count("failed transactions", of.failed());
    if options.failures_detailed {
        count("serialization failures", of.serialization);
        count("deadlock failures", of.deadlock);
        // pgbench has these since it can go on after other errors.
        if options.settings.continues_on_error {
            count("other failures", of.other);
        }
    }
    if options.settings.max_tries != 1 {
        count("transactions retried", of.retried);
        out.push(format!("{prefix}total number of retries: {}", of.retries));
    }
}

fn times(out: &mut Vec<String>, options: &Options, total: &ScriptTotals, duration: f64) {
    let ScriptTotals { committed, skipped, late, lag, .. } = *total;
    let is_limited = options.settings.latency_limit_us > 0;
    if options.settings.rate.is_some() && is_limited {
        let share = percent(skipped, total.ended());
        out.push(format!("number of transactions skipped: {skipped} ({share}%)"));
    }
    if is_limited {
        let share = if committed == 0 { "0.000".into() } else { percent(late, committed) };
        out.push(format!(
            "number of transactions above the {:.1} ms latency limit: {late}/{committed} ({share}%)",
            options.settings.latency_limit_us as f64 / 1000.0,
        ));
    }
    if options.settings.rate.is_some() || options.progress > 0 || is_limited {
        moments(out, "latency", &total.latency);
    } else {
        let including = if total.failed() > 0 { " (including failures)" } else { "" };
        let ms = 1000.0 * duration * options.clients as f64 / total.ended() as f64;
        out.push(format!("latency average = {ms:.3} ms{including}"));
    }
    if options.settings.rate.is_some() {
        let mean = 0.001 * lag.sum as f64 / (committed.max(1)) as f64;
        let most = 0.001 * lag.max as f64;
        out.push(format!("rate limit schedule lag: avg {mean:.3} (max {most:.3}) ms"));
    }
}

fn connections(
    out: &mut Vec<String>,
    options: &Options,
    total: &ScriptTotals,
    duration: f64,
    statistics: &Statistics,
) {
    let tps = total.committed as f64 / duration;
    let initial = statistics.initial_connecting();
    if !options.settings.connects {
        let ms = initial.0 as f64 / 1e6;
        out.push(format!("initial connection time = {ms:.3} ms"));
        out.push(format!("tps = {tps:.6} (without initial connection time)"));
        return;
    }
    let (_, took) = statistics.connects();
    let n = (total.committed + total.failed()).max(1);
    let ms = (initial + took).0 as f64 / 1e6 / n as f64;
    out.push(format!("average connection time = {ms:.3} ms"));
    out.push(format!("tps = {tps:.6} (including reconnection times)"));
}

/// Mean and standard deviation of values in microseconds, in milliseconds.
pub(super) fn mean_and_deviation(values: &Moments) -> (f64, f64) {
    let n = values.count.max(1) as f64;
    let mean = values.sum as f64 / n;
    let deviation = (values.sum_of_squares / n - mean * mean).max(0.0).sqrt();
    (0.001 * mean, 0.001 * deviation)
}

fn moments(out: &mut Vec<String>, name: &str, values: &Moments) {
    if values.count > 0 {
        let (mean, deviation) = mean_and_deviation(values);
        out.push(format!("{name} average = {mean:.3} ms"));
        out.push(format!("{name} stddev = {deviation:.3} ms"));
    }
}

fn script(
    out: &mut Vec<String>,
    options: &Options,
    idx: usize,
    of: &ScriptTotals,
    (total, duration): (&ScriptTotals, f64),
) {
    let WeightedScript { script, weight, .. } = &options.settings.scripts[idx];
    let weights: u64 = options.settings.scripts.iter().map(|script| u64::from(script.weight)).sum();
    let share = |part: u64, whole: u64| 100.0 * part as f64 / whole as f64;
    out.push(format!("SQL script {}: {}", idx + 1, script.title));
    let target = share(u64::from(*weight), weights);
    out.push(format!(" - weight: {weight} (targets {target:.1}% of total)"));
    out.push(format!(
        " - {} transactions ({:.1}% of total, tps = {:.6})",
        of.committed,
        share(of.committed, total.committed.max(1)),
        of.committed as f64 / duration
    ));
    failures(out, " - ", options, of);
    if options.settings.latency_limit_us > 0 && options.settings.rate.is_some() && of.ended() > 0 {
        let skipped = percent(of.skipped, of.ended());
        out.push(format!(" - number of transactions skipped: {} ({skipped}%)", of.skipped));
    }
    moments(out, " - latency", &of.latency);
}

fn commands(out: &mut Vec<String>, options: &Options, idx: usize, statistics: &Statistics) {
    let with_retries = options.settings.max_tries != 1;
    let prefix = if options.settings.scripts.len() > 1 { " - " } else { "" };
    let more = if with_retries { ", failures and retries" } else { " and failures" };
    out.push(format!("{prefix}statement latencies in milliseconds{more}:"));
    let totals = statistics.commands(idx);
    for (nth, command) in options.settings.scripts[idx].script.commands.iter().enumerate() {
        let of = totals.get(nth).copied().unwrap_or_default();
        let ms = 0.001 * of.sum_us as f64 / of.count.max(1) as f64;
        let retries = if with_retries { format!("  {:>10}", of.retries) } else { String::new() };
        out.push(format!("   {ms:11.3}  {:>10}{retries}  {}", of.failures, command.line));
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reported {
    pub(super) at: Nanoseconds,
    pub(super) total: ScriptTotals,
}

/// A line of progress since the last one; `time` is what it begins with.
pub(super) fn progress(options: &Options, time: &str, last: &Reported, now: &Reported) -> String {
    let (before, after) = (&last.total, &now.total);
    let n = after.committed - before.committed;
    let seconds = (now.at - last.at).as_secs_f64();
    let since = |of: fn(&ScriptTotals) -> Moments| Moments {
        count: n,
        sum: of(after).sum - of(before).sum,
        sum_of_squares: of(after).sum_of_squares - of(before).sum_of_squares,
        ..Moments::default()
    };
    let (latency, deviation) = mean_and_deviation(&since(|totals| totals.latency));
    let mut text = format!(
        "progress: {time}, {:.1} tps, lat {latency:.3} ms stddev {deviation:.3}, {} failed",
        n as f64 / seconds,
        after.failed() - before.failed()
    );
    if options.settings.rate.is_some() {
        let (lag, _) = mean_and_deviation(&since(|totals| totals.lag));
        text += &format!(", lag {lag:.3} ms");
        if options.settings.latency_limit_us > 0 {
            text += &format!(", {} skipped", after.skipped - before.skipped);
        }
    }
    if options.settings.max_tries != 1 {
        text += &format!(
            ", {} retried, {} retries",
            after.retried - before.retried,
            after.retries - before.retries
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_run_is_as_long_as_it_was() {
        let words = ["-S", "-T", "60"].map(str::to_owned);
        let mut read_file = |_: &str| Ok(Vec::new());
        let options = Options::read(&words, &mut read_file).unwrap();
        let (tables, statistics) = (TableFacts::default(), Statistics::default());
        let shown = |interrupted| text(&options, tables, &statistics, interrupted);
        let (whole, cut) = (shown(None), shown(Some(Nanoseconds::from_millis(2980))));
        assert!(whole.starts_with("transaction type:") && whole.contains("duration: 60 s\n"));
        assert!(cut.starts_with("interrupted after 2.98 s\ntransaction type:"), "{cut}");
        assert!(cut.contains("duration: 2.98 s\n"), "{cut}");
    }
}
