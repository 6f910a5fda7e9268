//! The view of a wait without load: what is put off, how it falls, and when it will be paid.

use dyno_record::EventKind;
use dyno_units::Nanoseconds;

use super::Curve;
use super::load::{part, short};

/// Characters of the curve.
const CURVE: usize = 40;

/// Readings over which the way of the debt is judged.
pub(super) const SLOPE_S: usize = 30;

/// A wait for the engine to pay what it put off.
#[derive(Default)]
pub(crate) struct WaitView {
    wait: String,
    limit_s: f64,
    passed_s: f64,
    gauge: Curve,
    unpaid: Vec<(String, f64)>,
    is_new: bool,
    ended: Option<String>,
}

impl WaitView {
    /// Takes an event; whether it told of a wait.
    pub(crate) fn hear(&mut self, event: &EventKind) -> bool {
        match event {
            EventKind::WaitBegan { wait, limit_s } => {
                *self = WaitView { wait: wait.clone(), limit_s: *limit_s, ..WaitView::default() };
                self.is_new = true;
            }
            EventKind::DebtRead { passed_s, gauge, unpaid, .. } => {
                self.is_new = false;
                self.passed_s = *passed_s;
                self.unpaid.clone_from(unpaid);
                gauge.iter().for_each(|gauge| self.gauge.push(*gauge));
            }
            EventKind::WaitEnded { wait, took_s, paid, notes } => {
                let took = seconds(*took_s);
                let state = match paid {
                    Some(true) => format!("{wait}: caught up after {took}"),
                    Some(false) => format!("{wait}: did not catch up within {took}"),
                    None => format!("{wait}: ended after {took}"),
                };
                let notes = notes.iter().map(|note| format!("; {note}"));
                *self = WaitView::default();
                self.ended = Some([state].into_iter().chain(notes).collect());
            }
            _ => return false,
        }
        true
    }

    /// What to tell of a wait that has just ended.
    pub(crate) fn ended(&mut self) -> Option<String> {
        self.ended.take()
    }

    /// Whether it has begun, and nothing was read yet.
    pub(crate) fn has_begun(&self) -> bool {
        self.is_new
    }

    /// How far it has come, in a line; none where there is no wait.
    pub(crate) fn told(&self) -> Option<String> {
        if self.wait.is_empty() {
            return None;
        }
        let mut told = format!("{}, at most {}", self.wait, seconds(self.limit_s));
        if self.passed_s > 0.0 {
            told += &format!(", {} so far", seconds(self.passed_s.floor()));
        }
        if let Some(gauge) = self.gauge.latest() {
            told +=
                &format!(": backlog {} ({})", short(gauge), way(gauge, self.gauge.slope(SLOPE_S)));
        }
        Some(told)
    }

    /// Curve and parts.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.gauge.latest().is_some() {
            lines.push(format!("  backlog     {}", self.gauge.drawn(CURVE)));
        }
        if !self.unpaid.is_empty() {
            let parts = self.unpaid.iter().filter_map(|(name, value)| part(name, *value));
            let parts: Vec<String> = parts.collect();
            lines.push(format!("  behind      {}", parts.join(", ")));
        }
        lines
    }
}

/// Whether a debt is paid, and else how fast it falls or grows, and when it will be paid if it goes
/// on so. Its gauge is above 1 where it is not paid.
pub(super) fn way(gauge: f64, slope_per_s: Option<f64>) -> String {
    if gauge <= 1.0 {
        return "caught up".to_owned();
    }
    // Less than a hundredth in ten seconds is no way.
    let slope = slope_per_s.filter(|slope| slope.abs() * 1_000.0 >= gauge);
    match slope {
        Some(slope) if slope < 0.0 => {
            let left = (gauge - 1.0) / -slope;
            format!("falling by {}/s, about {} left", short(-slope), seconds(left.ceil()))
        }
        Some(slope) => format!("growing by {}/s", short(slope)),
        None if slope_per_s.is_some() => "behind, level".to_owned(),
        None => "behind".to_owned(),
    }
}

fn seconds(seconds: f64) -> String {
    Nanoseconds::from_secs_f64((seconds * 10.0).round() / 10.0).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(view: &mut WaitView, passed_s: f64, gauge: f64) {
        let unpaid = vec![("debt.dirty_pages_percent".to_owned(), gauge)];
        let wait = "run-off".to_owned();
        let gauge = Some(gauge);
        let event = EventKind::DebtRead { wait, passed_s, limit_s: 60.0, gauge, unpaid };
        assert!(view.hear(&event));
    }

    #[test]
    fn a_wait_is_told_with_the_time_left() {
        let mut view = WaitView::default();
        assert!(!view.hear(&EventKind::Rested { seconds: 1.0 }));
        assert_eq!(view.told(), None);
        let wait = "run-off".to_owned();
        assert!(view.hear(&EventKind::WaitBegan { wait: wait.clone(), limit_s: 60.0 }));
        assert!(view.has_begun());
        assert_eq!(view.told().as_deref(), Some("run-off, at most 1 min"));
        for (second, gauge) in [(1.0, 9.0), (2.0, 8.0), (3.0, 7.0)] {
            read(&mut view, second, gauge);
        }
        assert!(!view.has_begun());
        let expected =
            "run-off, at most 1 min, 3 s so far: backlog 7 (falling by 1/s, about 6 s left)";
        assert_eq!(view.told().as_deref(), Some(expected));
        assert_eq!(view.lines()[1], "  behind      dirty pages 7 %");
        read(&mut view, 4.0, 0.5);
        assert!(view.told().is_some_and(|told| told.ends_with("backlog 0.500 (caught up)")));
        let ended = EventKind::WaitEnded { wait, took_s: 3.0, paid: Some(true), notes: Vec::new() };
        assert!(view.hear(&ended));
        assert_eq!(view.ended().as_deref(), Some("run-off: caught up after 3 s"));
        assert_eq!((view.ended(), view.told()), (None, None));
    }

    #[test]
    fn the_way_of_a_debt_is_told() {
        let check = |gauge, slope, expected: &str| assert_eq!(way(gauge, slope), expected);
        check(0.4, Some(1.0), "caught up");
        check(4.0, None, "behind");
        check(4.0, Some(0.001), "behind, level");
        check(4.0, Some(0.5), "growing by 0.500/s");
        check(4.0, Some(-0.5), "falling by 0.500/s, about 6 s left");
    }

    #[test]
    fn debt_that_grows_has_no_time_left() {
        let mut view = WaitView::default();
        let wait = "settling before step load".to_owned();
        view.hear(&EventKind::WaitBegan { wait: wait.clone(), limit_s: 60.0 });
        for (second, gauge) in [(1.0, 2.0), (2.0, 4.0)] {
            read(&mut view, second, gauge);
        }
        assert!(view.told().is_some_and(|told| told.ends_with("backlog 4 (growing by 2/s)")));
        let notes = vec!["ANALYZE t".to_owned(), "left: x".to_owned()];
        view.hear(&EventKind::WaitEnded { wait, took_s: 60.0, paid: Some(false), notes });
        let expected = "settling before step load: did not catch up within 1 min; ANALYZE t; left: \
                        x";
        assert_eq!(view.ended().as_deref(), Some(expected));
    }
}
