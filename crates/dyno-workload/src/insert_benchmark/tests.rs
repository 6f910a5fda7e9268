//! The steps, and what clients send to a recording connection.

mod audits;
mod clients;

use std::ops::Deref;
use std::sync::Arc;

use dyno_model::{Pacing, Role, WorkloadStep};
use dyno_units::Seed;

use super::settings::OPTIONS;
use super::{Bench, InsertBenchmark};
use crate::catalog::{PlanError, PlanInput};
use crate::fake::{self, request};
use crate::options::Options;
use crate::{Dialect, MadeWorkload, Workload};

/// A workload with what its clients share.
pub(super) struct Ready {
    pub(super) workload: MadeWorkload,
    pub(super) bench: Arc<Bench>,
}

impl Deref for Ready {
    type Target = MadeWorkload;

    fn deref(&self) -> &MadeWorkload {
        &self.workload
    }
}

fn plan(given: &[(&str, &str)], clients: usize) -> Result<InsertBenchmark, PlanError> {
    let options = Options::resolve(OPTIONS, &fake::given(given))?;
    let (name, request) = (&super::NAME.into(), request(clients));
    super::planned(&PlanInput {
        name,
        options: &options,
        target: crate::Target::Sql,
        request,
        seed: Seed(1),
    })
}

/// Ready to run with so many clients.
pub(super) fn asked(given: &[(&str, &str)], clients: usize) -> Ready {
    let plan = plan(given, clients).unwrap();
    let bench = Arc::new(plan.made());
    Ready { workload: MadeWorkload::with(Arc::new(plan), bench.clone()), bench }
}

fn steps(given: &[(&str, &str)], clients: usize) -> Vec<WorkloadStep> {
    plan(given, clients).unwrap().steps().to_vec()
}

/// `name: 3 × inserter closed until 100, …`
fn outline(step: &WorkloadStep) -> String {
    let role = |role: &Role| {
        let pacing = match role.pacing {
            Pacing::Closed => "closed".to_owned(),
            Pacing::Constant { rate } => format!("at {rate:.3}/s"),
            Pacing::Poisson { .. } => "poisson".to_owned(),
            Pacing::Bursts { per_burst } => format!("in bursts of {per_burst}"),
        };
        let quota = role.quota.map_or(String::new(), |quota| format!(" until {quota}"));
        format!("{} {} {pacing}{quota}", role.clients, role.name)
    };
    let roles: Vec<String> = step.roles.iter().map(role).collect();
    format!("{}: {}", step.name, roles.join(", "))
}

#[track_caller]
fn check_steps(given: &[(&str, &str)], clients: usize, expected: &[&str]) {
    let outlines: Vec<String> = steps(given, clients).iter().map(outline).collect();
    assert_eq!(outlines, expected);
}

#[test]
fn steps_are_the_authors() {
    check_steps(
        &[],
        3,
        &[
            "l.i0: 3 inserter closed until 1000",
            "l.x: 3 indexer closed until 1",
            "l.i1: 3 inserter closed until 800, 3 deleter closed until 801",
            "l.i2: 3 inserter closed until 2000, 3 deleter closed until 2002",
            "qr100: 3 inserter at 2.000/s until 120, 3 deleter at 2.017/s until 121, \
             3 query closed",
            "qp100: 3 inserter at 2.000/s until 120, 3 deleter at 2.017/s until 121, \
             3 query closed",
            "qr500: 3 inserter at 10.000/s until 600, 3 deleter at 10.017/s until 601, \
             3 query closed",
            "qp500: 3 inserter at 10.000/s until 600, 3 deleter at 10.017/s until 601, \
             3 query closed",
            "qr1000: 3 inserter at 20.000/s until 1200, 3 deleter at 20.033/s until 1202, \
             3 query closed",
            "qp1000: 3 inserter at 20.000/s until 1200, 3 deleter at 20.033/s until 1202, \
             3 query closed",
        ],
    );
}

#[test]
fn steps_are_those_of_the_documents() {
    let given = [
        ("schema", "2023-07"),
        ("reads", "q"),
        ("rows_i2", "0"),
        ("limiter", "iibench"),
        ("deletes", "range"),
        ("resync_get_min", "0"),
    ];
    check_steps(
        &given,
        1,
        &[
            "l.i0: 1 inserter closed until 1000",
            "l.x: 1 indexer closed until 1",
            "l.i1: 1 inserter closed until 800, 1 deleter closed until 801",
            "q100: 1 inserter in bursts of 2 until 120, 1 deleter in bursts of 2 until 121, \
             1 query closed",
            "q500: 1 inserter in bursts of 10 until 600, 1 deleter in bursts of 10 until 601, \
             1 query closed",
            "q1000: 1 inserter in bursts of 20 until 1200, 1 deleter in bursts of 20 until 1201, \
             1 query closed",
        ],
    );
}

#[test]
fn clients_may_share_a_table() {
    let given = [("tables", "one"), ("rate_2", "0"), ("rate_3", "0"), ("reads", "q")];
    check_steps(
        &given,
        4,
        &[
            "l.i0: 4 inserter closed until 250",
            "l.x: 1 indexer closed until 1",
            "l.i1: 4 inserter closed until 200, 1 deleter closed until 801",
            "l.i2: 4 inserter closed until 500, 1 deleter closed until 2002",
            "q100: 4 inserter at 2.000/s until 120, 1 deleter at 8.017/s until 481, 4 query closed",
        ],
    );
    assert_eq!(asked(&given, 4).tables(Dialect::MySql).len(), 1);
    assert_eq!(asked(&[], 4).tables(Dialect::MySql).len(), 4);
}

#[test]
fn a_commit_holds_no_more_than_a_second_brings() {
    let given = [("rate_1", "30"), ("rate_2", "0"), ("rate_3", "0"), ("deletes", "off")];
    let steps = steps(&given, 1);
    assert_eq!(outline(&steps[4]), "qr30: 1 inserter at 1.000/s until 60, 1 query closed");
}

#[test]
fn only_the_first_read_write_step_waits_for_the_debt() {
    let waits = |given: &[(&str, &str)]| -> Vec<u64> {
        steps(given, 2).iter().map(|step| step.settle.0 / 1_000_000_000).collect()
    };
    assert_eq!(waits(&[]), [0, 0, 0, 0, 60, 0, 0, 0, 0, 0]);
    assert_eq!(waits(&[("rows_i0", "100M"), ("rows_i2", "0")])[3], 260);
    assert_eq!(waits(&[("rows_i0", "1B")])[4], 1200);
    assert_eq!(waits(&[("settle_s", "5")])[4], 5);
}

#[track_caller]
fn check_refused(given: &[(&str, &str)], clients: usize, words: &[&str]) {
    let refusal = plan(given, clients).err().unwrap().to_string();
    for word in words {
        assert!(refusal.contains(word), "no {word} in: {refusal}");
    }
}

#[test]
fn too_few_rows_are_refused_with_what_would_do() {
    check_refused(
        &[("tables", "one"), ("rows_i1", "100")],
        4,
        &["`rows_i1`", "100 rows", "4 clients", "at least 200"],
    );
    check_refused(&[("rows_i0", "50")], 1, &["`rows_i0`", "at least 100"]);
    // Ten seconds at 1000 rows a second, for each inserter.
    check_refused(&[("rows_i0", "9999")], 1, &["`rows_i0`", "deletes", "at least 10000"]);
    check_refused(&[("rows_i0", "10k"), ("tables", "one")], 2, &["at least 20000"]);
    assert_eq!(steps(&[("rows_i0", "10k")], 8).len(), 10);
    // Nothing is deleted.
    assert_eq!(steps(&[("rows_i0", "100"), ("deletes", "off")], 1).len(), 10);
    check_refused(&[], 0, &["at least one client"]);
}

#[test]
fn senseless_options_are_refused() {
    check_refused(&[("rate_2", "100")], 1, &["`rate_2`", "not above"]);
    check_refused(&[("rate_1", "0")], 1, &["`rate_1`"]);
    check_refused(&[("commit_i1", "0")], 1, &["`commit_i1`"]);
    check_refused(&[("data_length_min", "30")], 1, &["`data_length_min`"]);
    check_refused(&[("data_random_pct", "101")], 1, &["`data_random_pct`"]);
    check_refused(&[("schema", "2009")], 1, &["`schema`", "2023-07"]);
}

#[test]
fn it_is_in_the_catalog() {
    let workload = fake::made(super::NAME, &[], 1).unwrap();
    assert_eq!(workload.kinds().len(), super::Kind::GetMax.index() + 1);
    assert_eq!(workload.options().len(), OPTIONS.len());
}
