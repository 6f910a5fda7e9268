//! The results of a run, in the format of pgbench 15.

use std::fmt::Write;

use dyno_units::Nanoseconds;
use dyno_workload::pgbench::{Moments, ScriptTotals, Statistics};

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
    let heading = |_| Interruption::heading(length) + "\n";
    let mut out = interrupted.map(heading).unwrap_or_default() + &parameters(options, tables);
    let Options { clients, transactions, .. } = *options;
    if options.duration > 0 {
        match interrupted {
            Some(_) => line(&mut out, format_args!("duration: {duration:.2} s")),
            None => line(&mut out, format_args!("duration: {} s", options.duration)),
        }
        line(
            &mut out,
            format_args!("number of transactions actually processed: {}", total.committed),
        );
    } else {
        line(&mut out, format_args!("number of transactions per client: {transactions}"));
        line(
            &mut out,
            format_args!(
                "number of transactions actually processed: {}/{}",
                total.committed,
                transactions * clients
            ),
        );
    }
    let ended = total.committed + total.skipped + total.failed();
    failures(&mut out, "", options, &total, ended);
    if ended == 0 {
        return out;
    }
    times(&mut out, options, &total, duration);
    connections(&mut out, options, &total, duration, statistics);
    let is_several = options.scripts.len() > 1;
    if is_several || options.per_command {
        for idx in 0..options.scripts.len() {
            if is_several {
                let of_script = scripts.get(idx).copied().unwrap_or_default();
                script(&mut out, options, idx, &of_script, (&total, duration));
            }
            if options.per_command {
                commands(&mut out, options, idx, statistics);
            }
        }
    }
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing into a String cannot fail.
    let _ = writeln!(out, "{text}");
}

fn parameters(options: &Options, tables: TableFacts) -> String {
    let mut out = String::new();
    let title = match &options.scripts[..] {
        [script] => script.script.title.as_str(),
        _ => "multiple scripts",
    };
    line(&mut out, format_args!("transaction type: {title}"));
    line(&mut out, format_args!("scaling factor: {}", tables.scale));
    if let Some((method, parts)) = tables.partitions {
        line(&mut out, format_args!("partition method: {}\npartitions: {parts}", method.word()));
    }
    line(&mut out, format_args!("query mode: {}", options.protocol.word()));
    line(&mut out, format_args!("number of clients: {}", options.clients));
    line(&mut out, format_args!("number of threads: {}", options.threads));
    if options.max_tries > 0 {
        line(&mut out, format_args!("maximum number of tries: {}", options.max_tries));
    }
    out
}

fn failures(out: &mut String, prefix: &str, options: &Options, of: &ScriptTotals, ended: u64) {
    let mut count = |what: &str, n: u64| {
        let share = percent(n, ended);
        line(out, format_args!("{prefix}number of {what}: {n} ({share}%)"));
    };
    count("failed transactions", of.failed());
    if options.failures_detailed {
        count("serialization failures", of.serialization);
        count("deadlock failures", of.deadlock);
        // pgbench has these since it can go on after other errors.
        if options.continue_on_error {
            count("other failures", of.other);
        }
    }
    if options.max_tries != 1 {
        count("transactions retried", of.retried);
        line(out, format_args!("{prefix}total number of retries: {}", of.retries));
    }
}

fn times(out: &mut String, options: &Options, total: &ScriptTotals, duration: f64) {
    let ended = total.committed + total.skipped + total.failed();
    let is_limited = options.latency_limit_us > 0;
    if options.rate.is_some() && is_limited {
        let share = percent(total.skipped, ended);
        line(out, format_args!("number of transactions skipped: {} ({share}%)", total.skipped));
    }
    if is_limited {
        let share = if total.committed == 0 {
            "0.000".into()
        } else {
            percent(total.late, total.committed)
        };
        line(
            out,
            format_args!(
                "number of transactions above the {:.1} ms latency limit: {}/{} ({share}%)",
                options.latency_limit_us as f64 / 1000.0,
                total.late,
                total.committed
            ),
        );
    }
    if options.rate.is_some() || options.progress > 0 || is_limited {
        moments(out, "latency", &total.latency);
    } else {
        let including = if total.failed() > 0 { " (including failures)" } else { "" };
        line(
            out,
            format_args!(
                "latency average = {:.3} ms{including}",
                1000.0 * duration * options.clients as f64 / ended as f64
            ),
        );
    }
    if options.rate.is_some() {
        line(
            out,
            format_args!(
                "rate limit schedule lag: avg {:.3} (max {:.3}) ms",
                0.001 * total.lag.sum as f64 / (total.committed.max(1)) as f64,
                0.001 * total.lag.max as f64
            ),
        );
    }
}

fn connections(
    out: &mut String,
    options: &Options,
    total: &ScriptTotals,
    duration: f64,
    statistics: &Statistics,
) {
    let tps = total.committed as f64 / duration;
    let initial = statistics.initial_connecting();
    if !options.connects {
        let ms = initial.0 as f64 / 1e6;
        line(out, format_args!("initial connection time = {ms:.3} ms"));
        line(out, format_args!("tps = {tps:.6} (without initial connection time)"));
        return;
    }
    let (_, took) = statistics.connects();
    let n = (total.committed + total.failed()).max(1);
    let ms = (initial + took).0 as f64 / 1e6 / n as f64;
    line(out, format_args!("average connection time = {ms:.3} ms"));
    line(out, format_args!("tps = {tps:.6} (including reconnection times)"));
}

/// Mean and standard deviation of values in microseconds, in milliseconds.
pub(super) fn mean_and_deviation(values: &Moments) -> (f64, f64) {
    let n = values.count.max(1) as f64;
    let mean = values.sum as f64 / n;
    let deviation = (values.sum_of_squares / n - mean * mean).max(0.0).sqrt();
    (0.001 * mean, 0.001 * deviation)
}

fn moments(out: &mut String, name: &str, values: &Moments) {
    if values.count > 0 {
        let (mean, deviation) = mean_and_deviation(values);
        line(out, format_args!("{name} average = {mean:.3} ms"));
        line(out, format_args!("{name} stddev = {deviation:.3} ms"));
    }
}

fn script(
    out: &mut String,
    options: &Options,
    idx: usize,
    of: &ScriptTotals,
    (total, duration): (&ScriptTotals, f64),
) {
    let script = &options.scripts[idx];
    let weights: u64 = options.scripts.iter().map(|script| u64::from(script.weight)).sum();
    let share = |part: u64, whole: u64| 100.0 * part as f64 / whole as f64;
    line(out, format_args!("SQL script {}: {}", idx + 1, script.script.title));
    line(
        out,
        format_args!(
            " - weight: {} (targets {:.1}% of total)",
            script.weight,
            share(u64::from(script.weight), weights)
        ),
    );
    line(
        out,
        format_args!(
            " - {} transactions ({:.1}% of total, tps = {:.6})",
            of.committed,
            share(of.committed, total.committed.max(1)),
            of.committed as f64 / duration
        ),
    );
    let ended = of.committed + of.skipped + of.failed();
    failures(out, " - ", options, of, ended);
    if options.latency_limit_us > 0 && options.rate.is_some() && ended > 0 {
        let skipped = percent(of.skipped, ended);
        line(out, format_args!(" - number of transactions skipped: {} ({skipped}%)", of.skipped));
    }
    moments(out, " - latency", &of.latency);
}

fn commands(out: &mut String, options: &Options, idx: usize, statistics: &Statistics) {
    let is_several = options.scripts.len() > 1;
    let with_retries = options.max_tries != 1;
    line(
        out,
        format_args!(
            "{}statement latencies in milliseconds{}:",
            if is_several { " - " } else { "" },
            if with_retries { ", failures and retries" } else { " and failures" }
        ),
    );
    let totals = statistics.commands(idx);
    for (nth, command) in options.scripts[idx].script.commands.iter().enumerate() {
        let of = totals.get(nth).copied().unwrap_or_default();
        let ms = 0.001 * of.sum_us as f64 / of.count.max(1) as f64;
        let retries = if with_retries { format!("  {:>10}", of.retries) } else { String::new() };
        line(out, format_args!("   {ms:11.3}  {:>10}{retries}  {}", of.failures, command.line));
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
    if options.rate.is_some() {
        let (lag, _) = mean_and_deviation(&since(|totals| totals.lag));
        text += &format!(", lag {lag:.3} ms");
        if options.latency_limit_us > 0 {
            text += &format!(", {} skipped", after.skipped - before.skipped);
        }
    }
    if options.max_tries != 1 {
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
    use super::super::options::Sources;
    use super::*;

    #[test]
    fn an_interrupted_run_is_as_long_as_it_was() {
        let words = ["-S", "-T", "60"].map(str::to_owned);
        let mut read_file = |_: &str| Ok(Vec::new());
        let options = Options::read(&words, &mut Sources { read_file: &mut read_file }).unwrap();
        let (tables, statistics) = (TableFacts::default(), Statistics::default());
        let shown = |interrupted| text(&options, tables, &statistics, interrupted);
        let (whole, cut) = (shown(None), shown(Some(Nanoseconds::from_millis(2980))));
        assert!(whole.starts_with("transaction type:") && whole.contains("duration: 60 s\n"));
        assert!(cut.starts_with("interrupted after 2.98 s\ntransaction type:"), "{cut}");
        assert!(cut.contains("duration: 2.98 s\n"), "{cut}");
    }
}
