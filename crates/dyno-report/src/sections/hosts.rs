//! The hosts of a study: of load generators, of whole trials, of servers.

use dyno_analysis::TrialHostFacts;
use dyno_analysis::hosts::{HostFacts, ServerHostFacts};
use dyno_record::NetworkFacts;

use super::page::Page;
use crate::document::{Block, Cell, Section, Table};
use crate::format::Unit;
use crate::words::{counted, sorted};

/// What each host that generated load did, and how well its clock was known; none where the machine
/// that runs the study generated the load.
pub(crate) fn load_generators(page: &Page<'_>) -> Option<Section> {
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

/// The hosts on which whole trials ran; none where trials ran on the machine that ran the study.
pub(crate) fn trial_hosts(page: &Page<'_>) -> Option<Section> {
    let hosts = &page.view.findings.trial_hosts;
    if hosts.is_empty() {
        return None;
    }
    let lead = "Each trial ran as a whole on one of these machines: server, load and probes. All trials of a \
                block that are on hosts of the same table ran on the same host.";
    let heads = "Host | Table | Machine | #CPUs | #CPU | #Memory | #Kernel | #Disk | #Variants | \
         #Blocks | #Trials";
    let mut table = Table::headed("hosts of trials", heads);
    hosts.iter().for_each(|host| table.row(trial_host(page, host).to_vec()));
    Some(Section::new("machines", "Machines", "Machines", lead).with([table.into()]))
}

fn trial_host(page: &Page<'_>, host: &TrialHostFacts) -> [Cell; 11] {
    let environment = &host.environment;
    let fact = |name: &str| environment.facts.get(name).map_or("", String::as_str);
    let name = match &host.place {
        Some(place) => format!("{} ({place})", host.host),
        None => host.host.clone(),
    };
    let disk = [fact("filesystem"), fact("filesystem.device")];
    let disk: Vec<&str> = disk.into_iter().filter(|part| !part.is_empty()).collect();
    let variants: Vec<&str> = host.variants.iter().map(|&idx| page.view.variant(idx)).collect();
    let blocks: Vec<String> = host.blocks.iter().map(u32::to_string).collect();
    [
        Cell::from(name),
        Cell::from(host.pool.as_str()),
        Cell::from(environment.machine.as_str()),
        Cell::from(host.cpus_in_words()),
        Cell::from(fact("cpu.model")),
        Cell::from(host.memory_in_words()),
        Cell::from(fact("kernel")),
        Cell::from(disk.join(" on ")),
        Cell::from(variants.join(", ")),
        Cell::from(blocks.join(", ")),
        Cell::from(host.n.to_string()),
    ]
}

/// The hosts on which agents started servers, and the network to them; none where servers were on the
/// machine that ran the study.
pub(crate) fn server_hosts(page: &Page<'_>) -> Option<Section> {
    let findings = page.view.findings;
    if findings.server_hosts.is_empty() {
        return None;
    }
    let lead = "Agents started the servers on these machines. The network was measured before any load: \
                opening a connection takes one round trip (the median of 20), and a server sent answers \
                of 4 MiB; the trial with the longest round trips is shown.";
    let heads = "Host | Member | Machine | #CPUs | #CPU | #Memory | #Kernel | #Dyno | #Trials | \
         #Round trip | #Bandwidth";
    let table = Table::headed("from the machine that ran the study", heads);
    let mut tables = vec![table.rows(findings.server_hosts.iter().map(server_host))];
    let measured: Vec<_> =
        findings.hosts.iter().filter_map(|host| Some((host, host.network.as_ref()?))).collect();
    if !measured.is_empty() {
        let heads = "Load generator | Variant | Server | #Round trip | #Bandwidth";
        let mut table = Table::headed("from the load generators", heads);
        for (host, network) in measured {
            let [round_trip, bandwidth] = of_network(Some(network));
            table.row(vec![
                Cell::from(host.host.as_str()),
                page.view.head(host.variant),
                Cell::from(host.server.as_deref().unwrap_or("the only one")),
                round_trip,
                bandwidth,
            ]);
        }
        tables.push(table);
    }
    let section = Section::new("server-hosts", "Servers", "Hosts of servers", lead);
    Some(section.with(tables.into_iter().map(Block::Table)))
}

fn server_host(host: &ServerHostFacts) -> [Cell; 11] {
    let fact = |name: &str| Cell::from(host.facts.get(name).map_or("", String::as_str));
    let limit = host.facts.get("cgroup.cpus").map(|limit| format!(" (limit {limit})"));
    let [round_trip, bandwidth] = of_network(host.network.as_ref());
    [
        Cell::from(host.host.as_str()),
        Cell::from(host.members.join(", ")),
        Cell::from(host.machine.as_str()),
        Cell::from(format!("{}{}", host.cpus, limit.unwrap_or_default())),
        fact("cpu.model"),
        fact("memory"),
        fact("kernel"),
        Cell::from(host.dyno.as_str()),
        Cell::from(host.n.to_string()),
        round_trip,
        bandwidth,
    ]
}

fn of_network(network: Option<&NetworkFacts>) -> [Cell; 2] {
    let unknown = || "not measured".to_owned();
    let round_trip = network.map_or_else(unknown, |one| Unit::Micros.show(one.round_trip_us));
    let bytes = network.and_then(|one| one.bytes_per_s);
    let bandwidth = bytes.map_or_else(unknown, |bytes| Unit::BytesPerSecond.show(bytes));
    [Cell::from(round_trip), Cell::from(bandwidth)]
}

#[cfg(test)]
mod tests {
    use dyno_analysis::Findings;

    use super::*;
    use crate::pages_tests::add_hosts;
    use crate::sections::written;

    fn without_hosts() -> Findings {
        Findings {
            variants: vec![Default::default()],
            steps: vec![Default::default()],
            ..Findings::default()
        }
    }

    #[track_caller]
    fn check(page: &str, parts: &[&str]) {
        for part in parts {
            assert!(page.contains(part), "{part} is not in {page}");
        }
    }

    #[test]
    fn each_host_has_a_row_with_its_clock() {
        let mut findings = without_hosts();
        assert_eq!(written(&findings, load_generators), "");
        add_hosts(&mut findings);
        assert!(written(&findings, load_generators).contains("mysql://me@db2:3306/test"));
        let host = &mut findings.hosts[0];
        host.server = None;
        host.clock.as_mut().unwrap().wall_bound_ms = 1.2;
        let page = written(&findings, load_generators);
        assert!(!page.contains("Server"), "{page}");
        let clock = ["−5000.0 ms ± 1.2 ms", "+50 ppm ± 3 ppm"];
        check(&page, &["sql1", "node-1", "1,000/s", clock[0], clock[1]]);
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

    #[test]
    fn each_machine_has_a_row() {
        let mut findings = without_hosts();
        assert_eq!(written(&findings, trial_hosts), "");
        add_hosts(&mut findings);
        let mut page_with = |facts: [(&str, &str); 2]| {
            let facts = facts.map(|(name, text)| (name.to_owned(), text.to_owned()));
            findings.trial_hosts[0].environment.facts.extend(facts);
            written(&findings, trial_hosts)
        };
        let page = page_with([("filesystem", "xfs"), ("filesystem.device", "nvme0n1")]);
        check(&page, &["m5-1 (node c1)", "ip-10", "4 GiB", "Linux 6.1", "xfs on nvme0n1", "1, 3"]);
        let limits = [("cgroup.cpus", "0.5"), ("cgroup.memory_bytes", "536870912")];
        check(&page_with(limits), &["8 (limit 0.5)", "4 GiB (limit 512 MiB)"]);
    }

    #[test]
    fn each_host_of_servers_has_a_row_with_its_machine_and_network() {
        let mut findings = without_hosts();
        assert_eq!(written(&findings, server_hosts), "");
        add_hosts(&mut findings);
        let generators = std::mem::take(&mut findings.hosts);
        let page = written(&findings, server_hosts);
        let machine = ["sql1", "replica-1 (replica)", "node-1", "EPYC", "Linux 6.1"];
        check(&page, &machine);
        check(&page, &["250", "MB/s"]);
        assert!(!page.contains("Load generator"), "{page}");
        findings.hosts = generators;
        findings.hosts[0].host = "gen1".to_owned();
        assert!(written(&findings, server_hosts).contains("gen1"));
    }
}
