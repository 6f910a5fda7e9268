//! The hosts that generated the load: what each did, and how well its clock was known.

use dyno_analysis::hosts::HostFacts;

use super::Page;
use crate::document::{Block, Cell, Section, Table};
use crate::format::Unit;
use crate::words::{counted, sorted};

/// The section; none where the machine that runs the study generated the load.
pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let view = page.view;
    let known = |host: &&HostFacts| view.has_place(host.variant, host.step);
    let hosts: Vec<&HostFacts> = view.findings.hosts.iter().filter(known).collect();
    if hosts.is_empty() {
        return None;
    }
    let names = sorted(hosts.iter().map(|host| host.host.as_str()));
    let lead = "Each host had an equal share of the clients and of the schedule, timed by its own \
                clock, and all hosts began together. Shares, rates and CPU times are means over the \
                trials; lag, the busiest worker and the clock figures are the worst of any trial.";
    let servers = hosts.iter().any(|host| host.server.is_some());
    let heads = format!(
        "Host | Machine | Server | Variant | {} | #Share | #Intended share | #Throughput | \
         #Busiest worker | #CPU per transaction | #Lag p99 | #Round trip | #Clock offset | #Drift | \
         #Began within",
        view.step_head()
    );
    let row = |host: &&HostFacts| row(host, view.head(host.variant), view.step(host.step));
    let mut table = Table::headed("", &heads).rows(hosts.iter().map(row));
    if !servers {
        table = table.without(2);
    }
    // A few rows are read at once; many are looked up.
    let is_open = hosts.len() <= 12;
    let summary = format!(
        "{}, at each {} of each variant",
        counted(names.len(), "host", "hosts"),
        view.findings.step_noun()
    );
    let fold = Block::fold(summary, is_open, vec![table.into()]);
    Some(Section::new("hosts", "Hosts", "Load generators", lead).with([fold]))
}

fn row(host: &HostFacts, variant: Cell, step: &str) -> [Cell; 15] {
    let percent = |share: f64| Unit::Percent.show(share * 100.0);
    let clock = host.clock.as_ref();
    let of_clock = |show: &dyn Fn(&dyno_record::ClockFacts) -> String| {
        clock.map_or_else(|| "not measured".to_owned(), show)
    };
    let drift = clock.and_then(|clock| clock.drift_ppm.zip(clock.drift_bound_ppm));
    [
        Cell::from(host.host.as_str()),
        Cell::from(host.machine.as_str()),
        Cell::from(host.server.as_deref().unwrap_or_default()),
        variant,
        Cell::from(step),
        Cell::from(percent(host.share)),
        Cell::from(percent(host.share_meant)),
        Cell::from(Unit::PerSecond.show(host.throughput)),
        Cell::from(percent(host.busiest_worker)),
        Cell::from(host.cpu_us.map_or_else(String::new, |us| Unit::Micros.show(us))),
        Cell::from(Unit::Micros.show(host.lag_p99_us)),
        Cell::from(of_clock(&|clock| Unit::Micros.show(clock.round_trip_us))),
        Cell::from(of_clock(&|clock| {
            let offset = signed(clock.wall_offset_ms, 1);
            format!("{offset} ms ± {:.1} ms", clock.wall_bound_ms)
        })),
        Cell::from(drift.map_or_else(String::new, |(ppm, bound)| {
            format!("{} ppm ± {bound:.0} ppm", signed(ppm, 0))
        })),
        Cell::from(of_clock(&|clock| format!("± {}", Unit::Micros.show(clock.bound_us)))),
    ]
}

/// `+50`, `−3.5`, `0.0`: a number with a sign, unless it is rounded to zero.
fn signed(value: f64, digits: usize) -> String {
    let text = format!("{value:+.digits$}");
    match text.trim_start_matches(['+', '-']) {
        zero if zero.chars().all(|c| matches!(c, '0' | '.')) => zero.to_owned(),
        _ => text.replace('-', "−"),
    }
}

#[cfg(test)]
mod tests {
    use dyno_analysis::Findings;
    use dyno_record::ClockFacts;

    use super::*;
    use crate::sections::written;

    #[test]
    fn each_host_has_a_row_with_its_clock() {
        let clock = ClockFacts {
            wall_offset_ms: -5000.0,
            wall_bound_ms: 1.2,
            bound_us: 150.0,
            round_trip_us: 300.0,
            drift_ppm: Some(50.2),
            drift_bound_ppm: Some(3.0),
            ..ClockFacts::default()
        };
        let host = HostFacts {
            host: "sql1".to_owned(),
            machine: "node-1".to_owned(),
            n: 3,
            share: 0.333,
            share_meant: 0.333,
            throughput: 1000.0,
            cpu_us: Some(12.0),
            clock: Some(clock),
            ..HostFacts::default()
        };
        let mut findings = Findings {
            variants: vec![Default::default()],
            steps: vec![Default::default()],
            ..Findings::default()
        };
        assert_eq!(written(&findings, section), "");
        findings.hosts = vec![host];
        let page = written(&findings, section);
        assert!(!page.contains("Server"), "{page}");
        findings.hosts[0].server = Some("mysql://me@db2:3306/test".to_owned());
        assert!(written(&findings, section).contains("mysql://me@db2:3306/test"));
        for part in ["sql1", "node-1", "1,000/s", "−5000.0 ms ± 1.2 ms", "+50 ppm ± 3 ppm"] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
    }

    #[test]
    fn signs_are_signs() {
        let check = |value: f64, digits: usize, expected: &str| {
            assert_eq!(signed(value, digits), expected);
        };
        check(50.2, 0, "+50");
        check(-3.46, 1, "−3.5");
        check(-0.2, 0, "0");
        check(0.04, 1, "0.0");
    }
}
