//! Values of a transaction that equal an earlier one, or differ from it by a constant.

use std::collections::{HashMap, VecDeque};

/// Observations among which relations are looked for; afterwards those that were found are counted.
const SOUGHT: u64 = 64;
/// Latest observations that are kept meanwhile.
const LATEST: usize = 8;
/// Most values of a transaction that are compared.
const PLACES_MOST: usize = 1024;
/// How many values before one it is compared with, besides those that are equal.
const WINDOW: usize = 48;
const RELATIONS_MOST: usize = 6;
/// Fewer observations may show the same difference by chance.
const DIFFERENCES_LEAST: u64 = 8;
/// In so many of a hundred observations a relation holds that stands in the study.
const PERCENT_LEAST: u64 = 95;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Compared {
    Number(i64),
    /// Anything else, by its hash.
    Other(u64),
    /// A list, which is compared with nothing.
    List,
}

impl Compared {
    /// How much more this is than another one; none if they cannot be compared or are too far apart.
    fn above(self, other: Compared) -> Option<i64> {
        match (self, other) {
            (Compared::Number(one), Compared::Number(other)) => one.checked_sub(other),
            (Compared::Other(one), Compared::Other(other)) => (one == other).then_some(0),
            _ => None,
        }
    }
}

/// That a value is so much more than an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Relation {
    /// The place of the earlier one.
    pub(super) to: usize,
    /// How much more; 0 if they are equal.
    pub(super) above: i64,
    /// In how many observations it held.
    pub(super) held: u64,
    /// How many observations there were before the first one in which it was looked at.
    since: u64,
}

/// What is known of the values at the places of a statement or a transaction.
#[derive(Clone, Debug, Default)]
pub(super) struct Relations {
    /// How many observations there were.
    pub(super) n: u64,
    /// The latest ones, as long as relations are looked for.
    latest: VecDeque<Vec<Compared>>,
    of: Vec<Vec<Relation>>,
}

impl Relations {
    /// Adds an observation: a value for each place, always as many.
    pub(super) fn observe(&mut self, now: &[Compared]) {
        let now = &now[..now.len().min(PLACES_MOST)];
        self.of.resize_with(now.len(), Vec::new);
        self.n += 1;
        for (place, relations) in self.of.iter_mut().enumerate() {
            for one in relations.iter_mut() {
                one.held += u64::from(now[place].above(now[one.to]) == Some(one.above));
            }
            // One that fails more often than not makes room for others.
            relations.retain(|one| one.held * 2 >= self.n - one.since);
        }
        if self.n <= SOUGHT {
            if self.latest.len() == LATEST {
                self.latest.pop_front();
            }
            self.latest.push_back(now.to_vec());
            self.seek(now);
        } else {
            self.latest = VecDeque::new();
        }
    }

    /// Adds relations that hold now: of equal values, and of differences that are as they were before.
    fn seek(&mut self, now: &[Compared]) {
        let mut first: HashMap<Compared, usize> = HashMap::new();
        // The observation before this one, which is the latest.
        let nth = self.latest.len().checked_sub(2);
        for (place, value) in now.iter().enumerate().filter(|(_, value)| **value != Compared::List)
        {
            let equal = *first.entry(*value).or_insert(place);
            self.add(place, (equal, 0));
            for to in place.saturating_sub(WINDOW)..place {
                let Some(above) = value.above(now[to]) else { continue };
                let before = nth.and_then(|nth| self.latest.get(nth));
                if before.is_some_and(|before| before[place].above(before[to]) == Some(above)) {
                    self.add(place, (to, above));
                }
            }
        }
    }

    fn add(&mut self, place: usize, (to, above): (usize, i64)) {
        let relations = &mut self.of[place];
        let is_same = |one: &Relation| one.to == to && one.above == above;
        if to == place || relations.len() >= RELATIONS_MOST || relations.iter().any(is_same) {
            return;
        }
        let holds = |one: &&Vec<Compared>| one[place].above(one[to]) == Some(above);
        let held = self.latest.iter().filter(holds).count() as u64;
        relations.push(Relation { to, above, held, since: self.n - self.latest.len() as u64 });
    }

    /// The accepted relation to an earlier place that holds always, or nearly always and not just
    /// because a value is nearly constant; `most_frequent` is the share of the most frequent value.
    pub(super) fn of(
        &self,
        place: usize,
        most_frequent: f64,
        is_accepted: impl Fn(&Relation) -> bool,
    ) -> Option<Relation> {
        let holds = |one: &&Relation| {
            let is_always = one.held == self.n;
            let is_nearly = one.held * 100 >= self.n * PERCENT_LEAST && most_frequent < 0.5;
            let is_no_chance = one.above == 0 || self.n >= DIFFERENCES_LEAST;
            (is_always || is_nearly) && is_no_chance && is_accepted(one)
        };
        let found = self.of.get(place)?.iter().filter(holds);
        // Equal ones first, then what holds most often, then the earliest.
        found.min_by_key(|one| (one.above != 0, self.n - one.held, one.to)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Compared::{List, Number, Other};

    #[track_caller]
    fn check(observations: &[Vec<Compared>], place: usize, expected: Option<(usize, i64, u64)>) {
        let mut relations = Relations::default();
        observations.iter().for_each(|one| relations.observe(one));
        let found = relations.of(place, 0.1, |_| true);
        assert_eq!(found.map(|one| (one.to, one.above, one.held)), expected);
    }

    #[test]
    fn equal_values_and_constant_differences_are_found() {
        let id = |n: i64| n * 7919 % 1000;
        let rows = |n: i64, row: &dyn Fn(i64) -> Vec<Compared>| (0..n).map(row).collect::<Vec<_>>();
        let range = |n| vec![Number(id(n)), Number(id(n) + 99), Number(id(n + 3)), Number(id(n))];
        check(&rows(50, &range), 0, None);
        check(&rows(50, &range), 1, Some((0, 99, 50)));
        check(&rows(50, &range), 2, None);
        check(&rows(50, &range), 3, Some((0, 0, 50)));
        // A difference of two is one by chance.
        check(&rows(2, &range), 1, None);
        check(&rows(1, &range), 3, Some((0, 0, 1)));
        let texts = |n: i64| vec![Other(n as u64), Other(n as u64), List, List];
        check(&rows(5, &texts), 1, Some((0, 0, 5)));
        check(&rows(5, &texts), 3, None);
        // Nearly always, also if the first is an exception.
        let nearly = |n: i64| vec![Number(id(n)), Number(id(n) + 5 * i64::from(n % 30 == 0))];
        check(&rows(300, &nearly), 1, Some((0, 0, 290)));
        let often = |n: i64| vec![Number(id(n)), Number(id(n) + 5 * i64::from(n % 10 == 0))];
        check(&rows(300, &often), 1, None);
        let far = |n: i64| vec![Number(i64::MIN + n), Number(i64::MAX)];
        check(&rows(9, &far), 1, None);
    }

    #[test]
    fn values_that_are_nearly_always_the_same_are_not_nearly_equal() {
        let mut relations = Relations::default();
        for n in 0..300 {
            relations.observe(&[Number(i64::from(n % 40 == 0)), Number(i64::from(n % 50 == 0))]);
        }
        assert_eq!(relations.of(1, 0.98, |_| true), None);
        assert!(relations.of(1, 0.1, |_| true).is_some());
    }
}
