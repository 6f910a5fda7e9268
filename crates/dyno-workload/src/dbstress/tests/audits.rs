//! A model of the server plays the load, right or with a fault, and the audit judges it.

use dyno_units::RandomStream;

use crate::{KindTotals, Transactions};

use super::super::audit::{Audit, ClientCounts, Line};
use super::*;

/// What goes wrong on purpose.
#[derive(Clone, Copy, Debug, Default)]
struct Fault {
    /// Of 1000 statements, so many change nothing although they should.
    missed_deletes: u64,
    missed_updates: u64,
    /// Rows of HISTORY that no client inserted.
    extra_rows: i64,
    /// Objects whose history is not whole.
    not_whole: u64,
    /// Rows that are missing in every SEL2.
    short_history: u64,
    lost_objects: u64,
    /// Clients draw their neighbour's objects.
    wrong_place: bool,
    /// Clients draw the first tenth of their objects only.
    cold: bool,
    /// The first so many writes of each client are not done.
    skipped_writes: u64,
    extra_statements: u64,
    /// The server answers nothing.
    mute: bool,
    /// Writes that were given up between DELETE and INSERT, one for each client.
    given_up: bool,
}

const CLIENTS: u64 = 8;

/// Transactions of each client.
const EACH: u64 = 1000;

/// The server's side: what a load with a fault leaves behind.
struct Model {
    settings: Settings,
    fault: Fault,
    random: RandomStream,
    totals: AuditTotals,
    rows: i64,
    holes: i64,
}

impl Model {
    fn hits(&mut self, missed_of_1000: u64) -> u64 {
        u64::from(self.random.below(1000) >= missed_of_1000)
    }

    fn write(&mut self, counts: &ClientCounts) {
        counts.write_began();
        counts.write_ended(&Ok(()));
        self.totals.tally.writes += self.settings.n_statements().1;
        for _ in 0..self.settings.delete_inserts {
            let deleted = self.hits(self.fault.missed_deletes);
            counts.replied(Line::Delete, 1, deleted);
            counts.replied(Line::Insert, 1, 1);
            self.rows += 1 - deleted as i64;
        }
        for _ in 0..self.settings.updates {
            let updated = self.hits(self.fault.missed_updates);
            counts.replied(Line::Update, 1, updated);
        }
    }

    fn read(&mut self, counts: &ClientCounts) {
        let Settings { sel1, sel2, .. } = self.settings;
        self.totals.tally.reads += self.settings.n_statements().0;
        counts.replied(Line::Sel1, sel1 as u64, sel1 as u64);
        counts.replied(Line::Sel2, sel2 as u64, (20 - self.fault.short_history) * sel2 as u64);
    }

    fn play(&mut self, nth: u64, all: &Counts) {
        let Settings { sharing, objects, .. } = self.settings;
        let (place, neighbour) = ((nth, CLIENTS), ((nth + 1) % CLIENTS, CLIENTS));
        let own = Own::of(sharing, objects, place);
        let counts = all.client(place, own);
        let drawn = match self.fault {
            Fault { wrong_place: true, .. } => Own::of(sharing, objects, neighbour),
            Fault { cold: true, .. } => own.first_tenth(),
            _ => own,
        };
        let mut client = Client::new(&self.settings, place, drawn, Arc::clone(&counts));
        let mut random = Seed(7).derive("client", nth).stream();
        let mut n_writes = 0;
        for _ in 0..EACH {
            let kind = client.draw(&mut random);
            let is_write = self.settings.kinds()[kind] == "write";
            n_writes += u64::from(is_write);
            if is_write && n_writes <= self.fault.skipped_writes {
                continue;
            }
            self.totals.kinds[kind].committed += 1;
            if is_write { self.write(&counts) } else { self.read(&counts) }
        }
        if self.fault.given_up {
            self.totals.kinds[1].undone += 1;
            self.totals.tally.writes += 2;
            counts.write_began();
            counts.write_ended(&Err(StatementError::new(ErrorClass::LockTimeout, "1205", "no")));
            counts.replied(Line::Delete, 1, 1);
            self.rows -= 1;
            self.holes += 1;
        }
    }
}

/// The demands that fail after a load with this fault.
fn failed(options: &[(&str, &str)], fault: Fault) -> Vec<String> {
    let options = [&[("obj_table_size", "5000")][..], options].concat();
    let settings = settings(&options);
    let mut totals = AuditTotals::default();
    totals.kinds.resize(settings.kinds().len(), KindTotals::default());
    totals.tally.others = fault.extra_statements;
    let rows = settings.history_rows() as i64 + fault.extra_rows;
    let random = Seed(9).stream();
    let mut model = Model { settings, fault, random, totals, rows, holes: 0 };
    let counts = Counts::default();
    (0..CLIENTS).for_each(|nth| model.play(nth, &counts));
    let objects = settings.objects - fault.lost_objects;
    let not_whole = fault.not_whole as i64 + model.holes;
    let answer = [10, 100, 1000, objects as i64, model.rows, not_whole];
    let answer = vec![answer.iter().map(|number| Some(number.to_string())).collect()];
    let answers = if fault.mute { Vec::new() } else { vec![answer] };
    let audit =
        Audit { settings: &settings, counts: &counts, totals: &model.totals, answers: &answers };
    audit.judge().into_iter().filter(|row| !row.pass).map(|row| row.name).collect()
}

#[track_caller]
fn check(options: &[(&str, &str)], fault: Fault, expected: &[&str]) {
    let failed = failed(options, fault);
    assert_eq!(failed.len(), expected.len(), "{options:?} {fault:?}: {failed:#?}");
    for (failed, expected) in failed.iter().zip(expected) {
        assert!(failed.contains(expected), "{failed} is not `{expected}`");
    }
}

#[test]
fn an_audit_passes_what_is_right() {
    for sharing in ["slice", "mod2000", "mod2t", "random"] {
        let sharing = ("ref", sharing);
        check(&[sharing], Fault::default(), &[]);
        check(&[sharing, ("rw_ratio", "7"), ("trx", "on")], Fault::default(), &[]);
        check(&[sharing, ("rw_ratio", "0")], Fault::default(), &[]);
        check(&[sharing, ("sel1", "0"), ("sel2", "0")], Fault::default(), &[]);
        check(&[sharing, ("delete_inserts", "3"), ("updates", "0")], Fault::default(), &[]);
    }
}

#[test]
fn a_delete_that_misses_rows_is_found() {
    let fault = Fault { missed_deletes: 20, ..Fault::default() };
    check(&[], fault, &["rows of DELETE", "drift of HISTORY"]);
    check(&[("ref", "mod2t")], fault, &["rows of DELETE", "drift of HISTORY"]);
    // Where clients may collide, not every miss is a fault, but so many are.
    check(&[("ref", "random")], fault, &["rows of DELETE", "drift of HISTORY"]);
    let one = Fault { missed_deletes: 1, ..Fault::default() };
    check(&[], one, &["rows of DELETE", "drift of HISTORY"]);
    check(&[("ref", "random")], one, &[]);
}

#[test]
fn an_update_that_misses_rows_is_found() {
    check(&[], Fault { missed_updates: 20, ..Fault::default() }, &["rows of UPDATE"]);
}

#[test]
fn rows_that_no_client_inserted_are_found() {
    let whole = ["rows in HISTORY", "drift of HISTORY"];
    check(&[], Fault { extra_rows: 1, ..Fault::default() }, &whole);
    check(&[("rw_ratio", "0")], Fault { extra_rows: -1, ..Fault::default() }, &whole);
    check(&[], Fault { not_whole: 2, ..Fault::default() }, &["objects without exactly 20"]);
    check(&[], Fault { lost_objects: 1, ..Fault::default() }, &["rows in ZONE"]);
    let mute = Fault { mute: true, ..Fault::default() };
    let unanswered = ["rows in ZONE", "rows in HISTORY", "drift", "objects without"];
    check(&[], mute, &unanswered);
}

#[test]
fn where_nothing_can_collide_nothing_may_differ() {
    let more = Fault { extra_rows: 1, ..Fault::default() };
    let whole = ["rows in HISTORY", "drift of HISTORY"];
    for option in [("rw_ratio", "0"), ("hpk", "on")] {
        let shared = [("ref", "random"), option];
        check(&shared, Fault::default(), &[]);
        check(&shared, more, &whole);
        let one = Fault { not_whole: 1, ..Fault::default() };
        check(&shared, one, &["objects without exactly 20"]);
    }
    let short = Fault { short_history: 1, ..Fault::default() };
    check(&[("ref", "random"), ("rw_ratio", "0")], short, &["rows of SEL2"]);
}

#[test]
fn a_wrong_skew_is_found() {
    let cold = Fault { cold: true, ..Fault::default() };
    check(&[("ref", "random")], cold, &["objects drawn: distance"]);
    check(&[("ref", "mod2t")], cold, &["objects drawn: distance"]);
    check(&[("ref", "slice")], cold, &["objects drawn: distance"]);
    let wrong = Fault { wrong_place: true, ..Fault::default() };
    for sharing in ["slice", "mod2000", "mod2t"] {
        check(&[("ref", sharing)], wrong, &["objects of another client drawn"]);
    }
}

#[test]
fn a_wrong_mix_is_found() {
    let skipped = Fault { skipped_writes: 20, ..Fault::default() };
    check(&[], skipped, &["writes, one for every 1 reads"]);
    check(&[("rw_ratio", "5")], skipped, &["writes, one for every 5 reads"]);
    check(&[], Fault { extra_statements: 1, ..Fault::default() }, &["statements sent"]);
    let short = Fault { short_history: 1, ..Fault::default() };
    check(&[], short, &["rows of SEL2"]);
    check(&[("ref", "random")], short, &["rows of SEL2"]);
}

#[test]
fn writes_that_were_given_up_half_way_are_drift_and_no_fault() {
    let given_up = Fault { given_up: true, ..Fault::default() };
    check(&[], given_up, &[]);
    check(&[("ref", "random")], given_up, &[]);
    // One more than they explain.
    let more = Fault { extra_rows: -1, ..given_up };
    check(&[], more, &["rows in HISTORY", "drift of HISTORY"]);
}

#[test]
fn what_is_of_unknown_outcome_has_bounds() {
    let settings = settings(&[]);
    let judge = |lost, dropped, rows: i64| {
        let counts = Counts::default();
        let own = Own::of(settings.sharing, settings.objects, (0, 1));
        let client = counts.client((0, 1), own);
        for nth in 0..lost + dropped {
            client.write_began();
            if nth < lost {
                let error = StatementError::new(ErrorClass::Disconnected, "2013", "gone");
                client.write_ended(&Err(error));
            }
        }
        let kinds = vec![KindTotals::default(); 2];
        let totals = AuditTotals { kinds, in_flight: dropped, ..AuditTotals::default() };
        let answer = [10, 100, 1000, 10_000, 200_000 + rows, 0].map(|n: i64| Some(n.to_string()));
        let answers = vec![vec![answer.to_vec()]];
        Audit { settings: &settings, counts: &counts, totals: &totals, answers: &answers }
            .judge()
            .iter()
            .all(|row| row.pass)
    };
    assert!(judge(0, 0, 0) && !judge(0, 0, -1) && !judge(0, 0, 1));
    assert!(judge(1, 1, -2) && !judge(1, 1, -3) && judge(0, 2, -2) && !judge(0, 1, 1));
}
