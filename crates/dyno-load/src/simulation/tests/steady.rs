//! Steps that go on until their throughput is steady.

use super::*;
use crate::EndedBy;

const S: Nanoseconds = Nanoseconds::SECOND;

fn until_steady(spec: StepSpec) -> StepSpec {
    StepSpec { warm_up: S.times(2), until_steady: Some(S.times(10)), ..spec }
}

fn server() -> SimulatedServer {
    SimulatedServer::new(1, ServiceTime::Constant(MS.times(10)))
}

#[track_caller]
fn check(spec: StepSpec, server: &SimulatedServer, expected: (u64, EndedBy)) {
    let Seen { totals, intervals, .. } = simulate(&until_steady(spec), server);
    let length = totals.measure_ended - totals.measure_began;
    assert_eq!((length, totals.ended_by), (S.times(expected.0), expected.1));
    assert!(!totals.aborted);
    // Whole seconds; none is lost or reported twice.
    let measured = intervals.iter().filter(|interval| interval.phase == Phase::Measure);
    assert_eq!(measured.clone().count() as u64, expected.0);
    let committed: u64 = measured.map(|interval| interval.committed()).sum();
    assert_eq!(committed, totals.measured.committed());
}

#[test]
fn it_ends_with_the_second_after_its_window() {
    check(closed(1, 60), &server(), (11, EndedBy::Steady));
    check(open(50.0, Arrivals::Constant, 4, 60), &server(), (11, EndedBy::Steady));
}

#[test]
fn a_stall_has_to_leave_the_window() {
    // Four seconds from the second on.
    let stalled = server().with_stall(S.times(2), S.times(4));
    check(closed(1, 60), &stalled, (17, EndedBy::Steady));
}

#[test]
fn what_does_not_become_steady_ends_with_its_time() {
    // A statement takes 10 ms longer every second.
    let slower = server().with_drift(3600.0);
    check(closed(1, 40), &slower, (40, EndedBy::Unsteady));
    // No window of ten seconds has passed.
    check(closed(1, 9), &server(), (9, EndedBy::Unsteady));
}
