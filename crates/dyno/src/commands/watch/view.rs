//! The output of `dyno watch`: a table with curves at a terminal, plain lines elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use dyno_units::reading::{Role, known};
use dyno_units::{Nanoseconds, Reading, Registry, utc_date_time};

use super::target::Target;
use crate::latest::Latest;
use crate::live::{Curve, Panel, deferred, processes, short, with_unit};
use crate::terminal;

/// Readings from which the trend of the debt is estimated.
const SLOPE_READINGS: usize = 30;

/// In characters.
const CURVE: usize = 40;
const VALUE: usize = 8;
const UNIT: usize = 12;
/// Below these lengths, curve and meaning are left out.
const CURVE_LEAST: usize = 10;
const MEANING_LEAST: usize = 30;

/// Columns that fit side by side: a shortened curve says more than the start of a sentence.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Columns {
    /// In characters.
    name: usize,
    /// In characters; 0 for none.
    curve: usize,
    has_meaning: bool,
}

impl Columns {
    fn for_names(names: &[&str], width: usize) -> Columns {
        let name = names.iter().map(|name| name.len()).max().unwrap_or(0);
        // The terminal's last column stays free, and a blank precedes each part.
        let left = width.saturating_sub(1 + name + 1 + VALUE + 1 + UNIT + 1);
        let curve = if left < CURVE_LEAST { 0 } else { left.min(CURVE) };
        Columns { name, curve, has_meaning: left >= CURVE + 1 + MEANING_LEAST }
    }
}

#[derive(Default)]
pub(super) struct View {
    name: String,
    registry: Registry,
    known: BTreeMap<String, Reading>,
    is_table: bool,
    n_cpus: u32,
    panel: Panel,
    curves: BTreeMap<String, Curve>,
    latest: Latest,
    /// Between readings.
    every: Nanoseconds,
    /// Several probes may report the same problem.
    noted: BTreeSet<String>,
    has_server: bool,
}

impl View {
    pub(super) fn new(target: &Target, every: Nanoseconds) -> View {
        View {
            name: target.name.clone(),
            every,
            has_server: target.is_server,
            registry: crate::readings::registry().clone(),
            is_table: terminal::out_is_terminal() && terminal::is_interactive(),
            n_cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            ..View::default()
        }
    }

    /// In nanoseconds of the observation's clock.
    pub(super) fn push(&mut self, at_ns: u64, values: &BTreeMap<String, f64>) {
        for (name, value) in values {
            if !self.known.contains_key(name) {
                let reading = self.registry.find(name).cloned().unwrap_or_default();
                self.known.insert(name.clone(), reading);
            }
            if self.known[name].row.is_some() {
                self.curves.entry(name.clone()).or_default().push(*value);
            }
        }
        self.latest.take(at_ns, values);
    }

    /// Shows a message that stays.
    pub(super) fn note(&mut self, text: &str) {
        if self.noted.insert(text.to_owned()) {
            self.panel.wipe();
            terminal::say(text);
        }
    }

    pub(super) fn draw(&mut self, elapsed: Nanoseconds, unix_ms: u64) {
        if self.is_table {
            let lines = self.table(elapsed, unix_ms);
            self.panel.draw(&lines);
        } else {
            terminal::out(&self.plain(elapsed));
        }
    }

    /// Leaves the table on the screen.
    pub(super) fn close(&mut self) {
        if self.is_table {
            terminal::say("");
        }
    }

    fn table(&self, elapsed: Nanoseconds, unix_ms: u64) -> Vec<String> {
        let n_readings = self.latest.current().len();
        let mut lines = vec![format!(
            "{}   {}, {elapsed}, {n_readings} readings   (Ctrl-C to quit)",
            self.name,
            utc_date_time(unix_ms)
        )];
        lines.extend(self.silence());
        lines.extend(self.cpu().map(|text| format!("CPU      {text}")));
        lines.extend(self.debt().map(|text| format!("backlog  {text}")));
        let height = terminal::height().saturating_sub(lines.len() + 1);
        let shown = self.shown(height);
        let columns = Columns::for_names(&shown, terminal::message_width());
        lines.extend(shown.into_iter().filter_map(|name| self.row(name, &columns)));
        lines
    }

    /// Readings that fit, in order; first those that were always zero go, then the last ones.
    fn shown(&self, height: usize) -> Vec<&str> {
        let mut names: Vec<&str> = self.curves.keys().map(String::as_str).collect();
        names.sort_by_key(|name| self.known[*name].row);
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

    /// Names fit a watch: without load there is no generator.
    fn cpu(&self) -> Option<String> {
        let server = if self.has_server { "server" } else { "process" };
        let names = [("server", server), ("generator", "dyno"), ("rest", "other processes")];
        processes(&self.latest.current(), &names, self.n_cpus)
    }

    fn debt(&self) -> Option<String> {
        let slope =
            self.curves.get(known::DEBT_GAUGE).and_then(|curve| curve.slope(SLOPE_READINGS));
        deferred(&self.latest.current(), slope.map(|slope| slope / self.every.as_secs_f64()))
    }

    /// A message once a server that reported values stops doing so.
    fn silence(&self) -> Option<String> {
        let counters = [Role::Transactions, Role::Statements, Role::Uptime].map(Some);
        let is_of_server =
            |name: &str| self.known.get(name).is_some_and(|one| counters.contains(&one.role));
        let silent = self.latest.silent_ns(is_of_server)?;
        Some(format!("the server has not responded for {}", Nanoseconds(silent)))
    }

    fn row(&self, name: &str, columns: &Columns) -> Option<String> {
        let curve = self.curves.get(name)?;
        let reading = self.known.get(name)?;
        let unit = reading.unit.symbol().replace("bytes", "B");
        let value = self.latest.get(name).map_or("–".to_owned(), short);
        let Columns { name: wide, curve: length, has_meaning } = *columns;
        let curve = curve.drawn(length);
        let mut row = format!("{name:<wide$} {value:>VALUE$} {unit:<UNIT$}");
        if length > 0 {
            row += &format!(" {curve:<length$}");
        }
        if has_meaning {
            row += &format!(" {}", reading.text);
        }
        Some(row.trim_end().to_owned())
    }

    fn plain(&self, elapsed: Nanoseconds) -> String {
        let mut parts: Vec<String> = vec![format!("{elapsed}")];
        parts.extend(self.silence());
        parts.extend(self.cpu());
        let mut values: Vec<(&String, &Reading)> =
            self.known.iter().filter(|(_, reading)| reading.words.is_some()).collect();
        values.sort_by_key(|(_, reading)| reading.row);
        parts.extend(values.into_iter().filter_map(|(name, reading)| {
            let value = with_unit(self.latest.get(name)?, &reading.unit);
            Some(format!("{} {value}", reading.words?))
        }));
        parts.extend(self.debt().map(|text| format!("backlog {text}")));
        parts.join(" · ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(is_table: bool) -> View {
        View {
            name: "this host".into(),
            registry: crate::readings::registry().clone(),
            known: BTreeMap::new(),
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
        view.push(0, &values);
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
        let values = [("cpu.busy_pct", 1.0), ("cpu.steal_pct", 0.0), ("cpu.running", 2.0)];
        push(&mut view, &values);
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
