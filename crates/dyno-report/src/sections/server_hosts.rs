//! The hosts on which agents started servers: machines, and the network to them.

use dyno_analysis::hosts::ServerHostFacts;
use dyno_record::NetworkFacts;

use super::Page;
use crate::document::{Block, Cell, Section, Table};
use crate::format::Unit;

/// The section; none where servers were on the machine that ran the study.
pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let findings = page.view.findings;
    if findings.server_hosts.is_empty() {
        return None;
    }
    let lead = "Agents started the servers on these machines. The network was measured before any load: \
                opening a connection takes one round trip (the median of 20), and a server sent answers \
                of 4 MiB; the trial with the longest round trips is shown.";
    let heads = "Host | Member | Machine | #CPUs | #CPU | #Memory | #Kernel | #Dyno | #Trials | \
         #Round trip | #Bandwidth";
    let mut table = Table::headed("from the machine that ran the study", heads);
    findings.server_hosts.iter().for_each(|host| table.row(row(host).to_vec()));
    let mut tables = vec![table];
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

fn row(host: &ServerHostFacts) -> [Cell; 11] {
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
    use dyno_analysis::hosts::HostFacts;

    use super::*;
    use crate::sections::written;

    #[test]
    fn each_host_has_a_row_with_its_machine_and_network() {
        let network = NetworkFacts {
            round_trip_us: 250.0,
            round_trip_least_us: 200.0,
            bytes_per_s: Some((100 << 20) as f64),
        };
        let facts = [("kernel", "Linux 6.1"), ("cpu.model", "EPYC")];
        let host = ServerHostFacts {
            host: "sql1".to_owned(),
            members: vec!["replica-1 (replica)".to_owned()],
            machine: "node-1".to_owned(),
            dyno: "1.2".to_owned(),
            cpus: 8,
            facts: facts.map(|(name, text)| (name.to_owned(), text.to_owned())).into(),
            n: 3,
            network: Some(network.clone()),
        };
        let mut findings = Findings { variants: vec![Default::default()], ..Findings::default() };
        assert_eq!(written(&findings, section), "");
        findings.server_hosts = vec![host];
        let page = written(&findings, section);
        for part in ["sql1", "replica-1 (replica)", "node-1", "EPYC", "Linux 6.1", "250", "MB/s"] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        assert!(!page.contains("Load generator"), "{page}");
        findings.hosts = vec![HostFacts {
            host: "gen1".to_owned(),
            network: Some(network),
            ..HostFacts::default()
        }];
        assert!(written(&findings, section).contains("gen1"));
    }
}
