//! The view of a wait without load: the backlog, its trend, and the time until it is done.

use dyno_record::EventKind;

use super::Curve;
use super::load::{SLOPE_S, part, seconds, short, trend};

/// In characters.
const CURVE: usize = 40;

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
    /// Returns whether the event was about a wait.
    pub(crate) fn on_event(&mut self, event: &EventKind) -> bool {
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

    /// Taken once.
    pub(crate) fn ended(&mut self) -> Option<String> {
        self.ended.take()
    }

    /// No reading has come yet.
    pub(crate) fn has_begun(&self) -> bool {
        self.is_new
    }

    /// None without a wait.
    pub(crate) fn text(&self) -> Option<String> {
        if self.wait.is_empty() {
            return None;
        }
        let mut text = format!("{}, at most {}", self.wait, seconds(self.limit_s));
        if self.passed_s > 0.0 {
            text += &format!(", {} so far", seconds(self.passed_s.floor()));
        }
        if let Some(gauge) = self.gauge.latest() {
            text += &format!(
                ": backlog {}× the caught-up level ({})",
                short(gauge),
                trend(gauge, self.gauge.slope(SLOPE_S))
            );
        }
        Some(text)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(view: &mut WaitView, passed_s: f64, gauge: f64) {
        let unpaid = vec![("debt.dirty_pages_percent".to_owned(), gauge)];
        let wait = "run-off".to_owned();
        let gauge = Some(gauge);
        let event = EventKind::DebtRead { wait, passed_s, limit_s: 60.0, gauge, unpaid };
        assert!(view.on_event(&event));
    }

    #[test]
    fn a_wait_is_reported_with_the_time_left() {
        let mut view = WaitView::default();
        assert!(!view.on_event(&EventKind::Rested { seconds: 1.0 }));
        assert_eq!(view.text(), None);
        let wait = "run-off".to_owned();
        assert!(view.on_event(&EventKind::WaitBegan { wait: wait.clone(), limit_s: 60.0 }));
        assert!(view.has_begun());
        assert_eq!(view.text().as_deref(), Some("run-off, at most 1 min"));
        for (second, gauge) in [(1.0, 9.0), (2.0, 8.0), (3.0, 7.0)] {
            read(&mut view, second, gauge);
        }
        assert!(!view.has_begun());
        let expected = "run-off, at most 1 min, 3 s so far: backlog 7× the caught-up level \
                        (falling by 1/s, about 6 s left)";
        assert_eq!(view.text().as_deref(), Some(expected));
        assert_eq!(view.lines()[1], "  behind      dirty pages 7 %");
        read(&mut view, 4.0, 0.5);
        assert!(
            view.text().is_some_and(
                |text| text.ends_with("backlog 0.500× the caught-up level (caught up)")
            )
        );
        let ended = EventKind::WaitEnded { wait, took_s: 3.0, paid: Some(true), notes: Vec::new() };
        assert!(view.on_event(&ended));
        assert_eq!(view.ended().as_deref(), Some("run-off: caught up after 3 s"));
        assert_eq!((view.ended(), view.text()), (None, None));
    }

    #[test]
    fn debt_that_grows_has_no_time_left() {
        let mut view = WaitView::default();
        let wait = "settling before load".to_owned();
        view.on_event(&EventKind::WaitBegan { wait: wait.clone(), limit_s: 60.0 });
        for (second, gauge) in [(1.0, 2.0), (2.0, 4.0)] {
            read(&mut view, second, gauge);
        }
        assert!(
            view.text().is_some_and(
                |text| text.ends_with("backlog 4× the caught-up level (growing by 2/s)")
            )
        );
        let notes = vec!["ANALYZE t".to_owned(), "left: x".to_owned()];
        view.on_event(&EventKind::WaitEnded { wait, took_s: 60.0, paid: Some(false), notes });
        let expected = "settling before load: did not catch up within 1 min; ANALYZE t; left: \
                        x";
        assert_eq!(view.ended().as_deref(), Some(expected));
    }
}
