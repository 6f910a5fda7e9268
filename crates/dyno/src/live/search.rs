//! The view of a search: the bracket so far, and the probes still needed.

use dyno_study::Search;
use dyno_units::Nanoseconds;

/// Times that each end of the bracket must be seen.
const AGREEING: u32 = 2;

pub(crate) struct SearchView {
    /// Required width of the bracket, as a fraction.
    precision: f64,
    probe: Nanoseconds,
    /// The usual number of probes, and those made.
    expected: u32,
    n_seen: u32,
    /// Each end of the bracket, and how often it was seen.
    held: Option<(f64, u32)>,
    broken: Option<(f64, u32)>,
}

impl SearchView {
    pub(crate) fn new(search: &Search, probe: Nanoseconds) -> SearchView {
        SearchView {
            precision: search.precision,
            probe,
            expected: search.probes_expected(),
            n_seen: 0,
            held: None,
            broken: None,
        }
    }

    /// A result that contradicts an end of the bracket removes that end.
    pub(crate) fn push(&mut self, level: f64, has_held: bool) {
        self.n_seen += 1;
        let same = |end: Option<(f64, u32)>| {
            let before = end.filter(|(known, _)| known.total_cmp(&level).is_eq());
            Some((level, before.map_or(1, |(_, n)| n + 1)))
        };
        if has_held {
            self.held = same(self.held);
            self.broken = self.broken.filter(|(broken, _)| *broken > level);
        } else {
            self.broken = same(self.broken);
            self.held = self.held.filter(|(held, _)| *held < level);
        }
    }

    /// Assumes that no probe contradicts another. The usual number until the limit was kept and
    /// broken once; none if that is used up.
    fn probes_left(&self) -> Option<u32> {
        let (Some((held, n_held)), Some((broken, n_broken))) = (self.held, self.broken) else {
            return self.expected.checked_sub(self.n_seen).filter(|left| *left > AGREEING);
        };
        let steps = (broken / held).ln() / (1.0 + self.precision).ln();
        let halvings = if steps > 1.0 { steps.log2().ceil() as u32 } else { 0 };
        // The final ends are new, seen once each.
        let seen = if halvings > 0 { (1, 1) } else { (n_held, n_broken) };
        let confirmations = |n: u32| AGREEING.saturating_sub(n);
        Some(halvings + confirmations(seen.0) + confirmations(seen.1))
    }

    pub(crate) fn left(&self) -> String {
        match self.probes_left() {
            None if self.held.is_none() && self.broken.is_some() => {
                "lowering the load until the limit is met".to_owned()
            }
            None => "raising the load until the limit is exceeded".to_owned(),
            Some(0) => "about to end".to_owned(),
            Some(n) => {
                let s = if n == 1 { "" } else { "s" };
                let left =
                    Nanoseconds::from_secs((self.probe.0 * u64::from(n)).div_ceil(1_000_000_000));
                format!("about {n} more probe{s}, {left} left")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probes_that_are_left_are_estimated() {
        let check = |probes: &[(f64, bool)], expected: &str| {
            let mut view = SearchView {
                precision: 0.05,
                probe: Nanoseconds::from_secs(10),
                expected: 5,
                n_seen: 0,
                held: None,
                broken: None,
            };
            probes.iter().for_each(|(level, held)| view.push(*level, *held));
            assert_eq!(view.left(), expected, "{probes:?}");
        };
        check(&[], "about 5 more probes, 50 s left");
        check(&[(100.0, true), (200.0, true)], "about 3 more probes, 30 s left");
        let rising = [(1.0, true), (2.0, true), (4.0, true)];
        check(&rising, "raising the load until the limit is exceeded");
        // A factor of 2 is 14.2 steps of 5 %: four halvings, and two confirmations.
        check(&[(100.0, true), (200.0, false)], "about 6 more probes, 1 min left");
        check(&[(100.0, true), (104.0, false)], "about 2 more probes, 20 s left");
        check(&[(100.0, true), (104.0, false), (100.0, true)], "about 1 more probe, 10 s left");
        let both = [(100.0, true), (104.0, false), (100.0, true), (104.0, false)];
        check(&both, "about to end");
        // A contradiction opens the bracket again.
        check(
            &[(100.0, true), (104.0, false), (100.0, false)],
            "lowering the load until the limit is met",
        );
    }
}
