//! Which transactions the server confirmed, by a row that each makes: finds what a promoted replica lacks. Counts give
//! only a range, as unanswered transactions may be among those found. So clients note each transaction's row before
//! sending it, and keep the unconfirmed ones, which are looked up: all others found were confirmed.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{TextRows, number_in};

/// The most rows that are looked up, so that the statement is one that every server accepts.
const LOOKED_UP_MOST: usize = 10_000;

#[derive(Clone, Debug)]
pub(crate) struct NotedRows {
    pub(crate) tables: Vec<String>,
    /// The column whose text no two transactions share.
    pub(crate) column: &'static str,
    /// Rows that these tables had before.
    pub(crate) filled: u64,
    /// Rows that a transaction makes, one of which is noted.
    pub(crate) per_transaction: u64,
}

/// What the clients of a trial have noted.
#[derive(Debug)]
pub struct Ledger {
    rows: NotedRows,
    noted: Mutex<Noted>,
}

#[derive(Debug, Default)]
struct Noted {
    n_clients: u64,
    confirmed: u64,
    /// By table, counted from 0.
    unconfirmed: BTreeSet<(usize, String)>,
}

impl Ledger {
    pub(crate) fn new(rows: NotedRows) -> Arc<Ledger> {
        Arc::new(Ledger { rows, noted: Mutex::default() })
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that no other client of the trial has.
    pub(crate) fn client(&self) -> u64 {
        let mut noted = self.noted();
        noted.n_clients += 1;
        noted.n_clients
    }

    /// Why no rows are looked up; none if they are.
    pub(crate) fn why_not(&self) -> Option<String> {
        let n = self.noted().unconfirmed.len();
        (n > LOOKED_UP_MOST).then(|| {
            format!(
                "{n} transactions were not confirmed, and Dyno looks up {LOOKED_UP_MOST} at most"
            )
        })
    }

    /// All rows, and unconfirmed ones among them, in one statement, so that both are of one moment.
    pub(crate) fn query(&self) -> Option<String> {
        if self.why_not().is_some() {
            return None;
        }
        let tables = &self.rows.tables;
        let all: Vec<String> =
            tables.iter().map(|table| format!("(SELECT COUNT(*) FROM {table})")).collect();
        let noted = self.noted();
        let mut found = "0".to_owned();
        for (idx, table) in tables.iter().enumerate() {
            let here = noted.unconfirmed.range((idx, String::new())..(idx + 1, String::new()));
            let texts: Vec<String> = here.map(|(_, text)| format!("'{text}'")).collect();
            if !texts.is_empty() {
                let (column, texts) = (self.rows.column, texts.join(", "));
                write!(found, " + (SELECT COUNT(*) FROM {table} WHERE {column} IN ({texts}))")
                    .expect("writing to a String cannot fail");
            }
        }
        Some(format!("SELECT {}, {found}", all.join(" + ")))
    }

    /// Confirmed transactions missing from the answer to [`Ledger::query`]; none if more are known than clients noted.
    pub(crate) fn lost(&self, answer: &TextRows, acknowledged: u64) -> Option<u64> {
        let confirmed = self.noted().confirmed;
        if confirmed < acknowledged {
            return None;
        }
        let NotedRows { filled, per_transaction, .. } = self.rows;
        let rows = number_in(answer, 0, 0)? - i128::from(filled);
        let found = rows.div_euclid(i128::from(per_transaction)) - number_in(answer, 0, 1)?;
        let missing = i128::from(confirmed) - found;
        u64::try_from(missing.max(0)).ok()
    }
}

/// The row of a client's transaction under way. While transactions are confirmed, nothing is allocated or shared.
pub(crate) struct Note {
    ledger: Arc<Ledger>,
    table: usize,
    text: String,
    is_open: bool,
    confirmed: u64,
}

impl Note {
    /// Of a client whose rows have texts of at most so many bytes.
    pub(crate) fn new(ledger: &Arc<Ledger>, bytes_most: usize) -> Note {
        let text = String::with_capacity(bytes_most);
        Note { ledger: Arc::clone(ledger), table: 0, text, is_open: false, confirmed: 0 }
    }

    /// A transaction with this row is about to be sent.
    pub(crate) fn sends(&mut self, table: usize, text: &str) {
        self.keep();
        self.table = table;
        self.text.clear();
        self.text.push_str(text);
        self.is_open = true;
    }

    pub(crate) fn confirmed(&mut self) {
        self.is_open = false;
        self.confirmed += 1;
    }

    /// Keeps the last row if it was not confirmed.
    fn keep(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.ledger.noted().unconfirmed.insert((self.table, self.text.clone()));
        }
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        self.keep();
        self.ledger.noted().confirmed += self.confirmed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, Sent, made, noting};
    use crate::{AuditTotals, Dialect, ErrorClass, KindTotals, StatementError};

    fn ledger(tables: &[&str], filled: u64, per_transaction: u64) -> Arc<Ledger> {
        let tables = tables.iter().map(|name| (*name).to_owned()).collect();
        Ledger::new(NotedRows { tables, column: "c", filled, per_transaction })
    }

    #[test]
    fn what_was_not_confirmed_is_looked_up() {
        let ledger = ledger(&["a", "b"], 0, 1);
        assert_eq!((ledger.client(), ledger.client()), (1, 2));
        let all = "SELECT (SELECT COUNT(*) FROM a) + (SELECT COUNT(*) FROM b), 0";
        assert_eq!(ledger.query().as_deref(), Some(all));
        let (mut one, mut two) = (Note::new(&ledger, 3), Note::new(&ledger, 3));
        one.sends(1, "1-1");
        one.sends(1, "1-2");
        two.sends(1, "2-1");
        one.confirmed();
        drop((one, two));
        let found = format!("{all} + (SELECT COUNT(*) FROM b WHERE c IN ('1-1', '2-1'))");
        assert_eq!(ledger.query(), Some(found));
    }

    #[test]
    fn what_is_missing_is_exact_whatever_was_in_doubt() {
        let check = |found: [&str; 2], expected: Option<u64>| {
            let ledger = ledger(&["t"], 100, 5);
            let mut note = Note::new(&ledger, 2);
            for n in 0..14 {
                note.sends(0, &n.to_string());
                if n < 10 {
                    note.confirmed();
                }
            }
            drop(note);
            let answer = vec![found.map(|text| Some(text.to_owned())).to_vec()];
            assert_eq!(ledger.lost(&answer, 10), expected, "{found:?}");
            assert_eq!(ledger.lost(&answer, 11), None);
        };
        // Ten were confirmed and four are in doubt: none of these is there, or all.
        check(["150", "0"], Some(0));
        check(["170", "4"], Some(0));
        // As many rows as were confirmed, three of them of transactions in doubt.
        check(["150", "3"], Some(3));
        check(["100", "0"], Some(10));
        check(["x", "0"], None);
    }

    /// What is looked up after three transactions, where the last reply of the second one was lost; and what was sent.
    fn looked_up(name: &str, options: &[(&str, &str)], n_statements: usize) -> (String, Vec<Sent>) {
        let workload = noting(name, options).unwrap();
        let mut fake = Fake::new(Dialect::PostgreSql);
        (1..2 * n_statements).for_each(|_| fake.succeed_next());
        fake.fail_next(StatementError::new(ErrorClass::Disconnected, "08006", "gone"));
        let sent = fake.run(&workload, 3).sent;
        let queries = workload.audit_queries(Dialect::PostgreSql);
        assert_eq!(workload.why_loss_is_a_range(), None);
        (queries.last().unwrap().clone(), sent)
    }

    #[test]
    fn transactions_of_tpcb_have_names() {
        let found = "(SELECT COUNT(*) FROM pgbench_history WHERE filler IN ('1-2'))";
        let expected = format!("SELECT (SELECT COUNT(*) FROM pgbench_history), 0 + {found}");
        for protocol in ["prepared", "simple", "extended"] {
            let (query, sent) = looked_up("tpcb", &[("protocol", protocol)], 7);
            assert_eq!(query, expected, "{protocol}");
            let inserts = sent.iter().filter(|one| one.sql.contains("mtime, filler)"));
            // The scripted connection shows the length of a text that is sent as a value.
            let names = inserts.enumerate().map(|(idx, one)| match protocol {
                "simple" => one.sql.contains(&format!("'1-{}'", idx + 1)),
                _ => one.values.last().map(String::as_str) == Some("text[3]"),
            });
            assert_eq!(names.collect::<Vec<_>>(), [true; 3], "{protocol}");
        }
        let plain = made("tpcb", &[], 1).unwrap();
        assert!(plain.statements(Dialect::MySql).iter().all(|one| !one.sql.contains("filler")));
        assert_eq!(plain.audit_queries(Dialect::MySql).len(), 1);
    }

    #[test]
    fn rows_with_a_text_of_their_own_are_looked_up_by_it() {
        for (name, options, column) in [
            ("oltp_insert", &[("tables", "2")][..], "c"),
            ("key-order", &[("key", "random-string"), ("tables", "2")], "id"),
            ("key-order", &[("key", "random-string"), ("rows_per_transaction", "3")], "id"),
        ] {
            let (query, sent) = looked_up(name, options, 1);
            let text = query.split('\'').nth(1).unwrap();
            assert_eq!(query.matches(&format!(" WHERE {column} IN ('")).count(), 1, "{query}");
            let second = format!("{} {}", sent[1].sql, sent[1].values.join(" "));
            let is_sent =
                second.contains(text) || second.contains(&format!("text[{}]", text.len()));
            assert!(is_sent && text.len() > 20, "{text} is not in {second}");
        }
    }

    #[test]
    fn rows_that_cannot_be_told_apart_leave_a_range() {
        let check = |name: &str, options: &[(&str, &str)], expected: &str| {
            let why = made(name, options, 1).unwrap().why_loss_is_a_range().unwrap();
            assert!(why.contains(expected), "{why}");
        };
        check("key-order", &[], "the server assigns its keys");
        check("tpcb", &[("script", "select-only")], "only reads");
        check("oltp_read_write", &[], "does not count");
        check("tpcc", &[], "no rows that tell");
    }

    #[test]
    fn an_audit_with_lookups_fails_by_what_is_missing() {
        let workload = noting("tpcb", &[]).unwrap();
        Fake::new(Dialect::PostgreSql).run(&workload, 5);
        let answer = |numbers: &[u64]| -> TextRows {
            vec![numbers.iter().map(|number| Some(number.to_string())).collect()]
        };
        let committed = KindTotals { committed: 5, lost: 3, ..KindTotals::default() };
        let totals = AuditTotals { kinds: vec![committed], ..AuditTotals::default() };
        let check = |found: u64, in_doubt: u64, expected: (bool, u64)| {
            let answers = [answer(&[0, 0, 0, 0, found]), answer(&[found, in_doubt])];
            let rows = workload.audit(&totals, &answers);
            let row = rows.into_iter().find(|row| row.stored.is_some()).unwrap();
            assert_eq!((row.pass, row.stored.unwrap().lost.unwrap()), expected, "{row:?}");
        };
        check(5, 0, (true, 0));
        check(8, 3, (true, 0));
        // As many as were confirmed, but other ones.
        check(5, 3, (false, 3));
    }

    #[test]
    fn too_many_are_not_looked_up() {
        let ledger = ledger(&["t"], 0, 1);
        let mut note = Note::new(&ledger, 5);
        (0..=LOOKED_UP_MOST).for_each(|n| note.sends(0, &n.to_string()));
        assert!(ledger.query().is_some());
        drop(note);
        assert_eq!(ledger.query(), None);
        let why = "10001 transactions were not confirmed, and Dyno looks up 10000 at most";
        assert_eq!(ledger.why_not().as_deref(), Some(why));
    }
}
