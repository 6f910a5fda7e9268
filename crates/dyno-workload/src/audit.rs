//! The check of the tables after the load: that the server did what it confirmed.
//!
//! A benchmark that only counts commits trusts the server; an audit compares the tables with what
//! clients saw confirmed. It is exact if every attempt's outcome is known, and has bounds
//! otherwise: an attempt in flight at the end of its step, or on a lost connection, may have
//! committed or not.

use std::fmt::Display;

use crate::{Tally, TextRows};

/// What the clients did in all steps since the tables were filled, warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditTotals {
    pub kinds: Vec<KindTotals>,
    pub tally: Tally,
    /// In flight when their step ended: of unknown outcome, in neither `kinds` nor `tally`.
    pub in_flight: u64,
}

/// Attempts of one kind, by what is known about their outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindTotals {
    pub committed: u64,
    /// By design ([`crate::Session::roll_back_as_designed`]): nothing may be left.
    pub rolled_back: u64,
    /// The server refused or rolled back: nothing of them may be left.
    pub undone: u64,
    /// The connection was lost or the time limit ran out: they may have committed or not.
    pub lost: u64,
}

impl AuditTotals {
    pub fn is_empty(&self) -> bool {
        let attempts =
            |kind: &KindTotals| kind.committed + kind.rolled_back + kind.undone + kind.lost;
        self.in_flight == 0 && self.kinds.iter().all(|kind| attempts(kind) == 0)
    }

    pub fn committed(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.committed).sum()
    }

    pub fn unknown(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.lost).sum::<u64>() + self.in_flight
    }

    /// Attempts that are in the tally and did not commit, as far as the clients know.
    pub fn unfinished(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.rolled_back + kind.undone + kind.lost).sum()
    }

    pub fn add(&mut self, other: &AuditTotals) {
        if self.kinds.len() < other.kinds.len() {
            self.kinds.resize(other.kinds.len(), KindTotals::default());
        }
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.committed += theirs.committed;
            mine.rolled_back += theirs.rolled_back;
            mine.undone += theirs.undone;
            mine.lost += theirs.lost;
        }
        self.tally.add(&other.tally);
        self.in_flight += other.in_flight;
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    pub name: String,
    pub expected: String,
    pub measured: String,
    pub pass: bool,
    /// The sample was too small to decide: nothing contradicts the demand, and nothing could have.
    pub is_undecided: bool,
    /// It is about what the clients sent and received, and not about the tables.
    pub is_of_clients: bool,
    /// How many transactions the tables have, if that is what this demand counts.
    pub stored: Option<Stored>,
}

/// What the clients know of the transactions of all steps, and how many of them the tables have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    pub acknowledged: u64,
    pub in_doubt: u64,
    pub found: u64,
    /// Confirmed but missing, where rows were looked up; else only the counts above tell.
    pub lost: Option<u64>,
}

impl AuditRow {
    pub fn judged(
        name: impl Into<String>,
        expected: impl Display,
        measured: impl Display,
        pass: bool,
    ) -> AuditRow {
        let (name, expected) = (name.into(), expected.to_string());
        let (measured, is_undecided, is_of_clients) = (measured.to_string(), false, false);
        AuditRow { name, expected, measured, pass, is_undecided, is_of_clients, stored: None }
    }

    /// Undecided if the sample is `too_small`; what even a small sample refutes stays refuted.
    #[must_use]
    pub fn undecided_if(self, too_small: bool) -> AuditRow {
        AuditRow { is_undecided: self.pass && too_small, ..self }
    }

    /// Demands `expected`. A number that the server did not give meets no demand.
    pub fn equal(name: impl Into<String>, expected: i128, measured: Option<i128>) -> AuditRow {
        AuditRow::between(name, (expected, expected), measured)
    }

    pub fn between(name: impl Into<String>, bounds: (i128, i128), measured: Option<i128>) -> Self {
        let (low, high) = bounds;
        let expected = if low == high { low.to_string() } else { format!("{low} to {high}") };
        let pass = measured.is_some_and(|measured| (low..=high).contains(&measured));
        let measured = measured.map_or("no number".to_owned(), |measured| measured.to_string());
        AuditRow::judged(name, expected, measured, pass)
    }

    /// Demands the filled rows and those that committed transactions inserted, the same number each.
    pub fn inserted(
        name: impl Into<String>,
        (filled, per_transaction): (u64, u64),
        totals: &AuditTotals,
        measured: Option<i128>,
    ) -> AuditRow {
        let (acknowledged, in_doubt) = (totals.committed(), totals.unknown());
        let rows = |transactions: u64| i128::from(transactions) * i128::from(per_transaction);
        let least = i128::from(filled) + rows(acknowledged);
        let row = AuditRow::between(name, (least, least + rows(in_doubt)), measured);
        let found = measured.map(|rows| (rows - i128::from(filled)) / i128::from(per_transaction));
        let found = found.and_then(|found| u64::try_from(found).ok());
        let stored = found.map(|found| Stored { acknowledged, in_doubt, found, lost: None });
        AuditRow { stored, ..row }
    }

    /// Demands `per_transaction` statements for each transaction: exact if all attempts committed.
    /// Another attempt may have sent any part of them, and a ROLLBACK.
    pub fn statements(per_transaction: u64, totals: &AuditTotals) -> AuditRow {
        let least = i128::from(totals.committed()) * i128::from(per_transaction);
        let most = least + i128::from(totals.unfinished()) * i128::from(per_transaction + 1);
        let name = format!("statements sent, {per_transaction} per transaction");
        AuditRow::between(name, (least, most), Some(totals.tally.statements().into())).of_clients()
    }

    /// The same demand where so many transactions are missing by their rows, of those that it counts.
    #[must_use]
    pub(crate) fn lacking(self, lost: u64) -> AuditRow {
        let Some(stored) = self.stored else { return self };
        let measured = match lost {
            0 => self.measured,
            n => format!("{}, without {n} of the transactions that were confirmed", self.measured),
        };
        let stored = Some(Stored { lost: Some(lost), ..stored });
        AuditRow { measured, pass: self.pass && lost == 0, stored, ..self }
    }

    #[must_use]
    pub fn of_clients(self) -> AuditRow {
        AuditRow { is_of_clients: true, ..self }
    }
}

/// The whole number in this row and column of an answer; `None` if there is none.
pub fn number_in(answer: &TextRows, row: usize, column: usize) -> Option<i128> {
    answer.get(row)?.get(column)?.as_deref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(committed: u64, undone: u64, lost: u64, statements: u64) -> AuditTotals {
        let tally = Tally { reads: statements, ..Tally::default() };
        let kind = KindTotals { committed, undone, lost, ..KindTotals::default() };
        AuditTotals { kinds: vec![kind], tally, in_flight: 2 }
    }

    #[track_caller]
    fn check(row: AuditRow, expected: &str, measured: &str, pass: bool) {
        assert_eq!((&*row.expected, &*row.measured, row.pass), (expected, measured, pass));
    }

    #[test]
    fn bounds_include_their_ends() {
        check(AuditRow::equal("x", 5, Some(5)), "5", "5", true);
        check(AuditRow::equal("x", 5, Some(6)), "5", "6", false);
        check(AuditRow::equal("x", 0, None), "0", "no number", false);
        check(AuditRow::between("x", (-1, 2), Some(-1)), "-1 to 2", "-1", true);
        check(AuditRow::between("x", (-1, 2), Some(2)), "-1 to 2", "2", true);
        check(AuditRow::between("x", (-1, 2), Some(3)), "-1 to 2", "3", false);
    }

    #[test]
    fn a_small_sample_can_refute_and_cannot_prove() {
        let states = [true, false].map(|pass| {
            let row = AuditRow::judged("x", 1, 1, pass).undecided_if(true);
            (row.pass, row.is_undecided)
        });
        assert_eq!(states, [(true, true), (false, false)]);
        assert!(!AuditRow::equal("x", 1, Some(1)).undecided_if(false).is_undecided);
    }

    #[test]
    fn rows_that_were_inserted_tell_how_many_transactions_there_are() {
        let check = |measured: Option<i128>, pass: bool, found: Option<u64>| {
            let row = AuditRow::inserted("x", (1000, 5), &totals(10, 3, 1, 0), measured);
            assert_eq!((&*row.expected, row.pass), ("1050 to 1065", pass), "{measured:?}");
            let stored = |found| Stored { acknowledged: 10, in_doubt: 3, found, lost: None };
            assert_eq!(row.stored, found.map(stored), "{measured:?}");
        };
        check(Some(1050), true, Some(10));
        check(Some(1065), true, Some(13));
        check(Some(1020), false, Some(4));
        check(Some(990), false, None);
        check(None, false, None);
    }

    #[test]
    fn rows_in_doubt_do_not_make_up_for_rows_that_are_missing() {
        let check = |lost: u64, expected: &str, pass: bool| {
            // As many rows as were confirmed.
            let row = AuditRow::inserted("x", (0, 1), &totals(10, 0, 3, 0), Some(10)).lacking(lost);
            assert_eq!((&*row.measured, row.pass), (expected, pass));
            assert_eq!(row.stored.and_then(|stored| stored.lost), Some(lost));
        };
        check(0, "10", true);
        check(2, "10, without 2 of the transactions that were confirmed", false);
    }

    #[test]
    fn statements_are_exact_where_everything_committed() {
        check(AuditRow::statements(7, &totals(10, 0, 0, 70)), "70", "70", true);
        check(AuditRow::statements(7, &totals(10, 0, 0, 71)), "70", "71", false);
        // An attempt that failed may have sent all seven and a ROLLBACK.
        check(AuditRow::statements(7, &totals(10, 1, 0, 78)), "70 to 78", "78", true);
        check(AuditRow::statements(7, &totals(10, 1, 1, 86)), "70 to 86", "86", true);
        check(AuditRow::statements(7, &totals(10, 1, 0, 69)), "70 to 78", "69", false);
    }

    #[test]
    fn steps_add_up() {
        let mut all = AuditTotals::default();
        all.add(&totals(10, 1, 3, 70));
        all.add(&totals(5, 0, 0, 35));
        assert_eq!((all.committed(), all.unfinished(), all.unknown()), (15, 4, 7));
        assert_eq!(all.tally.statements(), 105);
    }

    #[test]
    fn answers_that_are_no_numbers_are_none() {
        let answer = vec![vec![Some("12".to_owned()), None, Some("x".to_owned())]];
        let all = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)].map(|(r, c)| number_in(&answer, r, c));
        assert_eq!(all, [Some(12), None, None, None, None]);
    }
}
