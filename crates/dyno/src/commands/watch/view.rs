//! What is shown while something is watched: a table with curves at a terminal, plain lines
//! elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use dyno_host::{ReadingLegend, find_legend};
use dyno_lab::observe::Sample;
use dyno_units::Nanoseconds;

use super::target::Target;
use crate::commands::report::date;
use crate::latest::Latest;
use crate::live::{Curve, Panel, deferred, processes, short};
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
    "pgbouncer.wait_longest_s",
    "server.cpu_s_per_s",
    "server.foreground.cpu_s_per_s",
    "server.background.cpu_s_per_s",
    "server.thread.probe.cpu_s_per_s",
    "rest.cpu_s_per_s",
    "cpu.busy_pct",
    "cpu.busiest_pct",
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
    "innodb.pool_misses_per_s",
    "innodb.redo_bytes_per_s",
    "innodb.os_fsyncs_per_s",
    "innodb.row_lock_waiting",
    "rocksdb.pending_compaction_bytes",
    "rocksdb.stalled_s_per_s",
    "rocksdb.tombstones",
    "pg.block_hit_percent",
    "pg.wal_bytes_per_s",
    "pg.lock_waits",
    "pg.dead_tuples",
    "pg.vacuum.running",
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
    "data_disk.read_await_ms",
    "data_disk.write_await_ms",
    "data_disk.flush_await_ms",
    "data_disk.saturation",
    "data.bytes",
    "filesystem.used_pct",
    "cgroup.server.throttled_s_per_s",
    "cpu.frequency_mhz_mean",
    "memory.available_bytes",
    "memory.dirty_bytes",
    "psi.cpu.some_pct",
    "psi.io.some_pct",
    "generator.cpu_s_per_s",
];

/// Readings of a plain line, with the words that stand for them.
const PLAIN: &[(&str, &str, &str)] = &[
    ("mysql.statements_per_s", "statements", "/s"),
    ("mysql.threads_running", "running", ""),
    ("pg.commits_per_s", "commits", "/s"),
    ("pg.sessions_active", "active", ""),
    ("pgbouncer.transactions_per_s", "transactions", "/s"),
    ("pgbouncer.clients_waiting", "waiting in the pooler", ""),
    ("cpu.busy_pct", "CPU", " %"),
    ("disk.reads_per_s", "reads", "/s"),
    ("disk.writes_per_s", "writes", "/s"),
    ("disk.queue", "disk queue", ""),
    ("server.rss_bytes", "RSS", "B"),
    ("responsiveness.process_ms", "small process", " ms"),
];

/// Readings over which the way of the debt is judged.
const SLOPE_READINGS: usize = 30;

/// Characters of a curve, of a value and of a unit.
const CURVE: usize = 40;
const VALUE: usize = 8;
const UNIT: usize = 12;
/// The shortest curve that is worth its place, and the shortest part of a meaning.
const CURVE_LEAST: usize = 10;
const MEANING_LEAST: usize = 30;

/// What of a row fits beside each other: a curve that is cut short says more than the beginning of a
/// sentence.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Columns {
    /// Characters of a name.
    name: usize,
    /// Characters of a curve, 0 for none.
    curve: usize,
    has_meaning: bool,
}

impl Columns {
    fn for_names(names: &[&str], width: usize) -> Columns {
        let name = names.iter().map(|name| name.len()).max().unwrap_or(0);
        // The last column of a terminal stays free, and each part has a blank before it.
        let left = width.saturating_sub(1 + name + 1 + VALUE + 1 + UNIT + 1);
        let curve = if left < CURVE_LEAST { 0 } else { left.min(CURVE) };
        Columns { name, curve, has_meaning: left >= CURVE + 1 + MEANING_LEAST }
    }
}

/// Shows what is watched.
pub(super) struct View {
    name: String,
    legend: Vec<ReadingLegend>,
    is_table: bool,
    n_cpus: u32,
    panel: Panel,
    curves: BTreeMap<String, Curve>,
    latest: Latest,
    /// Time between two readings.
    every: Nanoseconds,
    /// What was noted already: several probes may have the same trouble.
    noted: BTreeSet<String>,
    has_server: bool,
}

impl View {
    pub(super) fn new(target: &Target, legend: &[ReadingLegend], every: Nanoseconds) -> View {
        View {
            name: target.name.clone(),
            every,
            noted: BTreeSet::new(),
            has_server: target.is_server(),
            legend: legend.to_vec(),
            is_table: terminal::out_is_terminal() && terminal::is_interactive(),
            n_cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            panel: Panel::default(),
            curves: BTreeMap::new(),
            latest: Latest::default(),
        }
    }

    /// Takes what was read.
    pub(super) fn push(&mut self, sample: &Sample) {
        for (name, value) in &sample.values {
            if ROWS.contains(&name.as_str()) {
                self.curves.entry(name.clone()).or_default().push(*value);
            }
        }
        self.latest.take(sample.at.0, &sample.values);
    }

    /// Tells something that stays.
    pub(super) fn note(&mut self, text: &str) {
        if self.noted.insert(text.to_owned()) {
            self.panel.wipe();
            terminal::say(text);
        }
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
        let n_readings = self.latest.current().len();
        let mut lines = vec![format!(
            "{}   {}, {elapsed}, {n_readings} readings   (Ctrl-C ends)",
            self.name,
            date(unix_ms)
        )];
        lines.extend(self.silence());
        lines.extend(self.cpu().map(|text| format!("CPU   {text}")));
        lines.extend(self.debt().map(|text| format!("debt  {text}")));
        let height = terminal::height().saturating_sub(lines.len() + 1);
        let shown = self.shown(height);
        let columns = Columns::for_names(&shown, terminal::message_width());
        lines.extend(shown.into_iter().filter_map(|name| self.row(name, &columns)));
        lines
    }

    /// The readings that have room, in their order: what has been zero all the time goes first, and
    /// then what is last.
    fn shown(&self, height: usize) -> Vec<&'static str> {
        let mut names: Vec<&str> =
            ROWS.iter().copied().filter(|name| self.curves.contains_key(*name)).collect();
        let mut n_over = names.len().saturating_sub(height);
        let is_still = |name: &str| self.curves.get(name).is_some_and(Curve::is_zero);
        for idx in (0..names.len()).rev() {
            if n_over > 0 && is_still(names[idx]) {
                names.remove(idx);
                n_over -= 1;
            }
        }
        names.truncate(height);
        names
    }

    /// CPU time by process, each called what it is here: there is no generator without load.
    fn cpu(&self) -> Option<String> {
        let server = if self.has_server { "server" } else { "process" };
        let names = [("server", server), ("generator", "dyno"), ("rest", "rest")];
        processes(&self.latest.current(), &names, self.n_cpus)
    }

    fn debt(&self) -> Option<String> {
        let slope = self.curves.get("debt.gauge").and_then(|curve| curve.slope(SLOPE_READINGS));
        deferred(&self.latest.current(), slope.map(|slope| slope / self.every.as_secs_f64()))
    }

    /// That the server has told nothing for a while, where it had.
    fn silence(&self) -> Option<String> {
        let silent = self.latest.silent_ns(&["mysql.", "pg.", "pgbouncer."])?;
        Some(format!("the server has not answered for {}", Nanoseconds(silent)))
    }

    fn row(&self, name: &str, columns: &Columns) -> Option<String> {
        let curve = self.curves.get(name)?;
        let unit = find_legend(&self.legend, name).map_or("", |legend| legend.unit);
        let unit = if unit == "1" { String::new() } else { unit.replace("bytes", "B") };
        let value = self.latest.get(name).map_or("–".to_owned(), short);
        let Columns { name: wide, curve: length, has_meaning } = *columns;
        let curve = curve.drawn(length);
        let mut row = format!("{name:<wide$} {value:>VALUE$} {unit:<UNIT$}");
        if length > 0 {
            row += &format!(" {curve:<length$}");
        }
        if has_meaning {
            let meaning = find_legend(&self.legend, name).map_or("", |legend| legend.meaning);
            row += &format!(" {meaning}");
        }
        Some(row.trim_end().to_owned())
    }

    /// One line of the latest values.
    fn plain(&self, elapsed: Nanoseconds) -> String {
        let mut parts: Vec<String> = vec![format!("{elapsed}")];
        parts.extend(self.silence());
        parts.extend(self.cpu());
        parts.extend(PLAIN.iter().filter_map(|(name, words, unit)| {
            Some(format!("{words} {}{unit}", short(self.latest.get(name)?)))
        }));
        parts.extend(self.debt().map(|text| format!("debt {text}")));
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
            latest: Latest::default(),
            every: Nanoseconds::SECOND,
            noted: BTreeSet::new(),
            has_server: true,
        }
    }

    fn push(view: &mut View, values: &[(&str, f64)]) {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        view.push(&Sample { at: Nanoseconds::ZERO, source: 0, values });
    }

    #[test]
    fn what_is_shown_has_a_meaning() {
        let view = view(true);
        for name in ROWS.iter().copied().chain(PLAIN.iter().map(|(name, ..)| *name)) {
            assert!(find_legend(&view.legend, name).is_some(), "{name} is no reading");
        }
    }

    #[test]
    fn a_plain_line_holds_the_latest() {
        let mut view = view(false);
        push(&mut view, &[("cpu.busy_pct", 12.0), ("server.cpu_s_per_s", 0.5)]);
        push(&mut view, &[("cpu.busy_pct", 34.0), ("unheard.of", 1.0)]);
        let elapsed = Nanoseconds::from_secs(3);
        assert_eq!(view.plain(elapsed), "3 s · server 0.50 of 2 CPUs · CPU 34 %");
    }

    #[test]
    fn what_stays_zero_makes_room() {
        let mut view = view(true);
        let told = [("cpu.busy_pct", 1.0), ("cpu.steal_pct", 0.0), ("cpu.running", 2.0)];
        push(&mut view, &told);
        assert_eq!(view.shown(9), ["cpu.busy_pct", "cpu.steal_pct", "cpu.running"]);
        assert_eq!(view.shown(2), ["cpu.busy_pct", "cpu.running"]);
        assert_eq!(view.shown(1), ["cpu.busy_pct"]);
        push(&mut view, &[("cpu.steal_pct", 3.0)]);
        assert_eq!(view.shown(2), ["cpu.busy_pct", "cpu.steal_pct"]);
    }

    #[test]
    fn a_row_has_value_unit_curve_and_meaning() {
        let mut view = view(true);
        push(&mut view, &[("cpu.busy_pct", 50.0), ("un.heard", 1.0)]);
        push(&mut view, &[("cpu.busy_pct", 100.0)]);
        let columns = Columns::for_names(&["cpu.busy_pct"], 160);
        let row = view.row("cpu.busy_pct", &columns).expect("it was read");
        assert!(row.contains("100 %") && row.contains("▅█") && row.contains("did work"), "{row}");
        assert_eq!(view.row("un.heard", &columns), None);
    }

    #[test]
    fn a_row_holds_what_its_terminal_has_room_for() {
        let mut view = view(true);
        let name = "server.thread.probe.cpu_s_per_s";
        push(&mut view, &[(name, 0.5)]);
        let check = |width: usize, curve: usize, has_meaning: bool| {
            let columns = Columns::for_names(&[name], width);
            assert_eq!((columns.curve, columns.has_meaning), (curve, has_meaning), "{width}");
            let row = view.row(name, &columns).expect("it was read");
            let fits = row.chars().count() < width;
            assert!((fits || has_meaning) && row.trim_end() == row, "{width}: {row}");
        };
        check(130, 40, true);
        check(100, 40, false);
        check(80, 25, false);
        check(60, 0, false);
    }
}
