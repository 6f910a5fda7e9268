//! The results of a run, in the format of pgbench 15.

use dyno_units::Nanoseconds;
use dyno_workload::pgbench::{Moments, ScriptTotals, Settings, Statistics, WeightedScript};

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
    let (scripts, settings) = (statistics.scripts(), &options.settings);
    let mut total = ScriptTotals::default();
    scripts.iter().for_each(|script| total.add(script));
    let (began, ended) = statistics.span().unwrap_or_default();
    // Transactions may have been in flight for a while.
    let length = interrupted.unwrap_or(ended).max(ended).saturating_sub(began);
    let duration = length.max(Nanoseconds(1000)).as_secs_f64();
    let out = Vec::from_iter(interrupted.map(|_| Interruption::heading(length)));
    let mut results = Results { options, settings, statistics, total, duration, out };
    results.parameters(tables);
    let Options { clients, transactions, .. } = *options;
    let mut processed = format!("number of transactions actually processed: {}", total.committed);
    if options.duration > 0 {
        results.out.push(match interrupted {
            Some(_) => format!("duration: {duration:.2} s"),
            None => format!("duration: {} s", options.duration),
        });
    } else {
        results.out.push(format!("number of transactions per client: {transactions}"));
        processed += &format!("/{}", transactions * clients);
    }
    results.out.push(processed);
    results.failures("", &total);
    if total.ended() > 0 {
        results.times();
        results.connections();
        for idx in 0..settings.scripts.len() {
            if settings.scripts.len() > 1 {
                results.script(idx, &scripts.get(idx).copied().unwrap_or_default());
            }
            if settings.measures_commands {
                results.commands(idx);
            }
        }
    }
    results.out.join("\n") + "\n"
}

/// The results of a run, line by line.
struct Results<'a> {
    options: &'a Options,
    settings: &'a Settings,
    statistics: &'a Statistics,
    total: ScriptTotals,
    /// In seconds.
    duration: f64,
    out: Vec<String>,
}

impl Results<'_> {
    fn parameters(&mut self, tables: TableFacts) {
        let Results { options, settings, out, .. } = self;
        out.push(format!("transaction type: {}", options.title()));
        out.push(format!("scaling factor: {}", tables.scale));
        if let Some((method, parts)) = tables.partitions {
            out.push(format!("partition method: {}\npartitions: {parts}", method.word()));
        }
        out.push(format!("query mode: {}", settings.protocol.word()));
        out.push(format!("number of clients: {}", options.clients));
        out.push(format!("number of threads: {}", options.threads));
        if settings.max_tries > 0 {
            out.push(format!("maximum number of tries: {}", settings.max_tries));
        }
    }

    fn failures(&mut self, prefix: &str, of: &ScriptTotals) {
        let mut count = |what: &str, n: u64| {
            let share = percent(n, of.ended());
            self.out.push(format!("{prefix}number of {what}: {n} ({share}%)"));
        };
        count("failed transactions", of.failed());
        if self.options.failures_detailed {
            count("serialization failures", of.serialization);
            count("deadlock failures", of.deadlock);
            // pgbench has these since it can go on after other errors.
            if self.settings.continues_on_error {
                count("other failures", of.other);
            }
        }
        if self.settings.max_tries != 1 {
            count("transactions retried", of.retried);
            self.out.push(format!("{prefix}total number of retries: {}", of.retries));
        }
    }

    /// Transactions that were skipped, if they could be.
    fn skipped(&mut self, prefix: &str, of: &ScriptTotals) {
        if self.settings.rate.is_some() && self.settings.latency_limit_us > 0 && of.ended() > 0 {
            let (skipped, share) = (of.skipped, percent(of.skipped, of.ended()));
            self.out.push(format!("{prefix}number of transactions skipped: {skipped} ({share}%)"));
        }
    }

    fn times(&mut self) {
        let (total, options) = (self.total, self.options);
        let ScriptTotals { committed, late, lag, .. } = total;
        let limit_ms = self.settings.latency_limit_us as f64 / 1000.0;
        self.skipped("", &total);
        if limit_ms > 0.0 {
            let share = if committed == 0 { "0.000".into() } else { percent(late, committed) };
            let above = format!("number of transactions above the {limit_ms:.1} ms latency limit");
            self.out.push(format!("{above}: {late}/{committed} ({share}%)"));
        }
        if self.settings.rate.is_some() || options.progress > 0 || limit_ms > 0.0 {
            self.moments("latency", &total.latency);
        } else {
            let including = if total.failed() > 0 { " (including failures)" } else { "" };
            let ms = 1000.0 * self.duration * options.clients as f64 / total.ended() as f64;
            self.out.push(format!("latency average = {ms:.3} ms{including}"));
        }
        if self.settings.rate.is_some() {
            let mean = 0.001 * lag.sum as f64 / (committed.max(1)) as f64;
            let most = 0.001 * lag.max as f64;
            self.out.push(format!("rate limit schedule lag: avg {mean:.3} (max {most:.3}) ms"));
        }
    }

    fn connections(&mut self) {
        let tps = self.total.committed as f64 / self.duration;
        let initial = self.statistics.initial_connecting();
        if !self.settings.connects {
            let ms = initial.0 as f64 / 1e6;
            self.out.push(format!("initial connection time = {ms:.3} ms"));
            self.out.push(format!("tps = {tps:.6} (without initial connection time)"));
            return;
        }
        let (_, took) = self.statistics.connects();
        let n = (self.total.committed + self.total.failed()).max(1);
        let ms = (initial + took).0 as f64 / 1e6 / n as f64;
        self.out.push(format!("average connection time = {ms:.3} ms"));
        self.out.push(format!("tps = {tps:.6} (including reconnection times)"));
    }

    fn moments(&mut self, name: &str, values: &Moments) {
        if values.count > 0 {
            let (mean, deviation) = mean_and_deviation(values);
            self.out.push(format!("{name} average = {mean:.3} ms"));
            self.out.push(format!("{name} stddev = {deviation:.3} ms"));
        }
    }

    fn script(&mut self, idx: usize, of: &ScriptTotals) {
        let scripts = &self.settings.scripts;
        let WeightedScript { script, weight, .. } = &scripts[idx];
        let weights: u64 = scripts.iter().map(|script| u64::from(script.weight)).sum();
        let share = |part: u64, whole: u64| 100.0 * part as f64 / whole as f64;
        let target = share(u64::from(*weight), weights);
        let (n, tps) = (of.committed, of.committed as f64 / self.duration);
        let of_total = share(n, self.total.committed.max(1));
        self.out.push(format!("SQL script {}: {}", idx + 1, script.title));
        self.out.push(format!(" - weight: {weight} (targets {target:.1}% of total)"));
        self.out.push(format!(" - {n} transactions ({of_total:.1}% of total, tps = {tps:.6})"));
        self.failures(" - ", of);
        self.skipped(" - ", of);
        self.moments(" - latency", &of.latency);
    }

    fn commands(&mut self, idx: usize) {
        let with_retries = self.settings.max_tries != 1;
        let prefix = if self.settings.scripts.len() > 1 { " - " } else { "" };
        let more = if with_retries { ", failures and retries" } else { " and failures" };
        self.out.push(format!("{prefix}statement latencies in milliseconds{more}:"));
        let totals = self.statistics.commands(idx);
        for (nth, command) in self.settings.scripts[idx].script.commands.iter().enumerate() {
            let of = totals.get(nth).copied().unwrap_or_default();
            let ms = 0.001 * of.sum_us as f64 / of.count.max(1) as f64;
            let retries =
                if with_retries { format!("  {:>10}", of.retries) } else { String::new() };
            self.out.push(format!("   {ms:11.3}  {:>10}{retries}  {}", of.failures, command.line));
        }
    }
}

/// Mean and standard deviation of values in microseconds, in milliseconds.
pub(super) fn mean_and_deviation(values: &Moments) -> (f64, f64) {
    let n = values.count.max(1) as f64;
    let mean = values.sum as f64 / n;
    let deviation = (values.sum_of_squares / n - mean * mean).max(0.0).sqrt();
    (0.001 * mean, 0.001 * deviation)
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
    let (tps, failed) = (n as f64 / seconds, after.failed() - before.failed());
    let lat = format!("lat {latency:.3} ms stddev {deviation:.3}");
    let mut text = format!("progress: {time}, {tps:.1} tps, {lat}, {failed} failed");
    if options.settings.rate.is_some() {
        let (lag, _) = mean_and_deviation(&since(|totals| totals.lag));
        text += &format!(", lag {lag:.3} ms");
        if options.settings.latency_limit_us > 0 {
            text += &format!(", {} skipped", after.skipped - before.skipped);
        }
    }
    if options.settings.max_tries != 1 {
        let (retried, retries) = (after.retried - before.retried, after.retries - before.retries);
        text += &format!(", {retried} retried, {retries} retries");
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
