//! What is shown while something is watched: a table with curves at a terminal, plain lines
//! elsewhere.

use std::collections::BTreeMap;

use dyno_host::{ReadingLegend, find_legend};
use dyno_lab::observe::Sample;
use dyno_units::Nanoseconds;

use super::target::Target;
use crate::commands::report::date;
use crate::live::{Curve, Panel, debt, processes, short};
use crate::terminal;

/// Readings of the table, the most telling first; those that are not there are left out.
const ROWS: &[&str] = &[
    "mysql.statements_per_s",
    "mysql.commits_per_s",
    "mysql.threads_running",
    "pg.commits_per_s",
    "pg.sessions_active",
    "pgbouncer.transactions_per_s",
    "pgbouncer.clients_waiting",
    "server.cpu_s_per_s",
    "server.foreground.cpu_s_per_s",
    "server.background.cpu_s_per_s",
    "rest.cpu_s_per_s",
    "cpu.busy_pct",
    "cpu.iowait_pct",
    "cpu.steal_pct",
    "cpu.running",
    "cpu.context_switches_per_s",
    "load.avg1",
    "responsiveness.process_ms",
    "debt.gauge",
    "innodb.history_list_length",
    "innodb.dirty_pages_percent",
    "innodb.checkpoint_age_percent",
    "innodb.pool_hit_percent",
    "pg.dead_tuples",
    "pg.horizon_age",
    "pg.checkpoint_distance_bytes",
    "server.rss_bytes",
    "server.voluntary_switches_per_s",
    "server.involuntary_switches_per_s",
    "server.runqueue_wait_s_per_s",
    "server.disk_read_bytes_per_s",
    "server.disk_write_bytes_per_s",
    "disk.reads_per_s",
    "disk.writes_per_s",
    "disk.flushes_per_s",
    "disk.queue",
    "disk.busy_pct",
    "memory.available_bytes",
    "memory.dirty_bytes",
    "psi.cpu.some_pct",
    "psi.io.some_pct",
    "generator.cpu_s_per_s",
];

/// Readings of a plain line, with the words that stand for them.
const PLAIN: &[(&str, &str)] = &[
    ("mysql.statements_per_s", "statements/s"),
    ("mysql.threads_running", "running"),
    ("pg.commits_per_s", "commits/s"),
    ("pg.sessions_active", "active"),
    ("pgbouncer.transactions_per_s", "transactions/s"),
    ("cpu.busy_pct", "CPU %"),
    ("disk.reads_per_s", "reads/s"),
    ("disk.writes_per_s", "writes/s"),
    ("disk.queue", "queue"),
    ("server.rss_bytes", "RSS"),
    ("responsiveness.process_ms", "process ms"),
];

/// Characters of a curve, and of a row without it and without its meaning.
const CURVE: usize = 40;
const NAME: usize = 34;

/// Shows what is watched.
pub(super) struct View {
    name: String,
    legend: Vec<ReadingLegend>,
    is_table: bool,
    n_cpus: u32,
    panel: Panel,
    curves: BTreeMap<String, Curve>,
    latest: BTreeMap<String, f64>,
}

impl View {
    pub(super) fn new(target: &Target, legend: &[ReadingLegend]) -> View {
        View {
            name: target.name.clone(),
            legend: legend.to_vec(),
            is_table: terminal::out_is_terminal() && terminal::is_interactive(),
            n_cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            panel: Panel::default(),
            curves: BTreeMap::new(),
            latest: BTreeMap::new(),
        }
    }

    /// Takes what was read.
    pub(super) fn push(&mut self, sample: &Sample) {
        for (name, value) in &sample.values {
            if self.is_table && ROWS.contains(&name.as_str()) {
                self.curves.entry(name.clone()).or_default().push(*value);
            }
            self.latest.insert(name.clone(), *value);
        }
    }

    /// Tells something that stays.
    pub(super) fn note(&mut self, text: &str) {
        self.panel.wipe();
        terminal::say(text);
    }

    /// Shows the latest.
    pub(super) fn draw(&mut self, elapsed: Nanoseconds, unix_ms: u64) {
        if self.is_table {
            let lines = self.table(elapsed, unix_ms);
            self.panel.draw(&lines);
        } else {
            terminal::out(&self.plain(elapsed));
        }
    }

    /// The table is left where it is.
    pub(super) fn close(&mut self) {
        if self.is_table {
            terminal::say("");
        }
    }

    fn table(&self, elapsed: Nanoseconds, unix_ms: u64) -> Vec<String> {
        let n_readings = self.latest.len();
        let mut lines = vec![format!(
            "{}   {}, {elapsed}, {n_readings} readings   (Ctrl-C ends)",
            self.name,
            date(unix_ms)
        )];
        lines.extend(processes(&self.latest, self.n_cpus).map(|text| format!("CPU   {text}")));
        lines.extend(debt(&self.latest).map(|text| format!("debt  {text}")));
        let height = terminal::height().saturating_sub(lines.len() + 1);
        let rows = ROWS.iter().filter_map(|name| self.row(name));
        lines.extend(rows.take(height));
        lines
    }

    fn row(&self, name: &str) -> Option<String> {
        let curve = self.curves.get(name)?;
        let unit = find_legend(&self.legend, name).map_or("", |legend| legend.unit);
        let unit = if unit == "1" { "" } else { unit };
        let value = short(curve.latest()?);
        let curve = curve.drawn(CURVE);
        let meaning = find_legend(&self.legend, name).map_or("", |legend| legend.meaning);
        Some(format!("{name:<NAME$} {value:>8} {unit:<8} {curve:<CURVE$} {meaning}"))
    }

    /// One line of the latest values.
    fn plain(&self, elapsed: Nanoseconds) -> String {
        let mut parts: Vec<String> = vec![format!("{elapsed}")];
        parts.extend(processes(&self.latest, self.n_cpus));
        parts.extend(PLAIN.iter().filter_map(|(name, words)| {
            Some(format!("{words} {}", short(*self.latest.get(*name)?)))
        }));
        parts.extend(debt(&self.latest).map(|text| format!("debt {text}")));
        parts.join(" · ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(is_table: bool) -> View {
        let legend = [dyno_host::readings_legend(), dyno_database::server_readings_legend()];
        View {
            name: "this host".into(),
            legend: legend.concat(),
            is_table,
            n_cpus: 2,
            panel: Panel::default(),
            curves: BTreeMap::new(),
            latest: BTreeMap::new(),
        }
    }

    fn push(view: &mut View, values: &[(&str, f64)]) {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        view.push(&Sample { at: Nanoseconds::ZERO, source: 0, values });
    }

    #[test]
    fn what_is_shown_has_a_meaning() {
        let view = view(true);
        for name in ROWS.iter().copied().chain(PLAIN.iter().map(|(name, _)| *name)) {
            assert!(find_legend(&view.legend, name).is_some(), "{name} is no reading");
        }
    }

    #[test]
    fn a_plain_line_holds_the_latest() {
        let mut view = view(false);
        push(&mut view, &[("cpu.busy_pct", 12.0), ("server.cpu_s_per_s", 0.5)]);
        push(&mut view, &[("cpu.busy_pct", 34.0), ("unheard.of", 1.0)]);
        let elapsed = Nanoseconds::from_secs(3);
        assert_eq!(view.plain(elapsed), "3 s · server 0.50 of 2 CPUs · CPU % 34");
    }

    #[test]
    fn a_row_has_value_unit_curve_and_meaning() {
        let mut view = view(true);
        push(&mut view, &[("cpu.busy_pct", 50.0), ("un.heard", 1.0)]);
        push(&mut view, &[("cpu.busy_pct", 100.0)]);
        let row = view.row("cpu.busy_pct").expect("it was read");
        assert!(row.contains("100 %") && row.contains("▅█") && row.contains("did work"), "{row}");
        assert_eq!(view.row("un.heard"), None);
    }
}
