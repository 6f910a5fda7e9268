//! Bounds the names of readings. Servers, hosts and commands choose some, and may choose new ones every second, each
//! of which would become a column of all seconds.

use std::collections::{BTreeMap, BTreeSet};

const BYTES_MOST: usize = 256;

#[derive(Debug)]
pub(crate) struct Names {
    known: BTreeSet<String>,
    most: usize,
}

impl Names {
    pub(crate) fn new(most: usize) -> Names {
        Names { known: BTreeSet::new(), most }
    }

    /// Leaves out the readings whose names are too long, or one too many; whether there were any.
    pub(crate) fn keep(&mut self, readings: &mut BTreeMap<String, f64>) -> bool {
        let n_before = readings.len();
        readings.retain(|name, _| {
            if self.known.contains(name) {
                return true;
            }
            let has_room = self.known.len() < self.most && name.len() <= BYTES_MOST;
            has_room && self.known.insert(name.clone())
        });
        readings.len() < n_before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_names_and_long_ones_are_left_out() {
        let mut names = Names::new(3);
        let mut check = |given: &[&str], expected: &[&str]| {
            let mut readings = given.iter().map(|name| ((*name).to_owned(), 1.0)).collect();
            assert_eq!(names.keep(&mut readings), given.len() > expected.len());
            assert_eq!(readings.into_keys().collect::<Vec<String>>(), expected);
        };
        let (longest, long) = ("x".repeat(BYTES_MOST), "x".repeat(BYTES_MOST + 1));
        check(&["a", &long, &longest], &["a", &longest]);
        check(&["a", "b", "c"], &["a", "b"]);
        // Those that were there go on.
        check(&["b", "d"], &["b"]);
        check(&["a", &longest], &["a", &longest]);
    }
}
