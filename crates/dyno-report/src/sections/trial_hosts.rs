//! The hosts on which whole trials ran.

use super::Page;
use crate::document::{Cell, Section, Table};
use dyno_analysis::TrialHostFacts;

/// The section; none where trials ran on the machine that ran the study.
pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let hosts = &page.view.findings.trial_hosts;
    if hosts.is_empty() {
        return None;
    }
    let lead = "Each trial ran as a whole on one of these machines: server, load and probes. All trials of a \
                block that are on hosts of the same table ran on the same host.";
    let heads = "Host | Table | Machine | #CPUs | #CPU | #Memory | #Kernel | #Disk | #Variants | \
         #Blocks | #Trials";
    let mut table = Table::headed("hosts of trials", heads);
    hosts.iter().for_each(|host| table.row(row(page, host).to_vec()));
    Some(Section::new("machines", "Machines", "Machines", lead).with([table.into()]))
}

fn row(page: &Page<'_>, host: &TrialHostFacts) -> [Cell; 11] {
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

#[cfg(test)]
mod tests {
    use dyno_analysis::Findings;
    use dyno_record::Environment;

    use super::*;
    use crate::sections::written;

    #[test]
    fn each_machine_has_a_row() {
        let mut findings = Findings { variants: vec![Default::default()], ..Findings::default() };
        assert_eq!(written(&findings, section), "");
        let facts =
            [("kernel", "Linux 6.1"), ("filesystem", "xfs"), ("filesystem.device", "nvme0n1")];
        findings.trial_hosts = vec![TrialHostFacts {
            pool: "m5".to_owned(),
            host: "m5-1".to_owned(),
            place: Some("node c1".to_owned()),
            environment: Environment {
                machine: "ip-10".to_owned(),
                cpus: 8,
                memory_bytes: 4 << 30,
                facts: facts.map(|(name, text)| (name.to_owned(), text.to_owned())).into(),
            },
            variants: vec![0],
            blocks: vec![1, 3],
            n: 2,
        }];
        let page = written(&findings, section);
        let limits = [("cgroup.cpus", "0.5"), ("cgroup.memory_bytes", "536870912")];
        let mut limited = findings.clone();
        limited.trial_hosts[0]
            .environment
            .facts
            .extend(limits.map(|(name, text)| (name.to_owned(), text.to_owned())));
        let page_of_pod = written(&limited, section);
        for part in ["8 (limit 0.5)", "4 GiB (limit 512 MiB)"] {
            assert!(page_of_pod.contains(part), "{part} is not in {page_of_pod}");
        }
        for part in ["m5-1 (node c1)", "ip-10", "4 GiB", "Linux 6.1", "xfs on nvme0n1", "1, 3"] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
    }
}
