//! Work that several threads may request at the same time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use dyno_units::locked;

/// One waiting thread works; the others take its result if it was begun after they asked.
#[derive(Default)]
pub(super) struct Shared<T> {
    n_begun: AtomicU64,
    last: Mutex<Option<(u64, T)>>,
}

impl<T: Clone> Shared<T> {
    /// How often the work had begun at this time.
    pub(super) fn ask(&self) -> u64 {
        self.n_begun.load(Ordering::SeqCst)
    }

    /// For a thread that [asked](Shared::ask) at that time.
    pub(super) fn get(&self, asked: u64, work: impl FnOnce() -> T) -> T {
        let mut last = locked(&self.last);
        if let Some((_, done)) = last.as_ref().filter(|(number, _)| *number > asked) {
            return done.clone();
        }
        // Nobody needs the last result any more.
        *last = None;
        let number = self.n_begun.fetch_add(1, Ordering::SeqCst) + 1;
        let done = work();
        *last = Some((number, done.clone()));
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_during_the_work_takes_what_is_begun_later() {
        let shared = Shared::default();
        let mut asked = Vec::new();
        let first = shared.get(shared.ask(), || {
            asked.extend([shared.ask(), shared.ask(), shared.ask()]);
            "first"
        });
        let later: Vec<&str> = asked
            .into_iter()
            .zip(["second", "third", "fourth"])
            .map(|(asked, work)| shared.get(asked, || work))
            .collect();
        assert_eq!((first, later), ("first", vec!["second"; 3]));
        assert_eq!(shared.get(shared.ask(), || "new"), "new");
    }
}
