//! Records of servers.

use std::collections::BTreeMap;

use dyno_record::{BuildFacts, CommitSafety, ProductFacts, ServerFacts};

fn recorded_build(facts: dyno_database::BuildFacts) -> BuildFacts {
    let dyno_host::Origin { source, builder, package, package_version } = facts.origin;
    BuildFacts {
        source,
        builder,
        package,
        package_version,
        programs: facts.programs.display().to_string(),
        configured: facts.configured,
    }
}

pub(crate) fn recorded(facts: dyno_database::ServerFacts) -> ServerFacts {
    let texts = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let safety = facts.durability.safety.map(|safety| match safety {
        dyno_database::CommitSafety::EveryCommit => CommitSafety::EveryCommit,
        dyno_database::CommitSafety::LastCommitsAtRisk => CommitSafety::LastCommitsAtRisk,
        dyno_database::CommitSafety::DataAtRisk => CommitSafety::DataAtRisk,
    });
    ServerFacts {
        of_product: Some(ProductFacts {
            in_process: facts.in_process,
            simulated: false,
            stores_data: facts.stores_data,
            commit_safety: safety,
            durability_settings: texts(facts.durability_settings),
            memory_bytes: facts.memory_bytes,
            memory_settings: texts(facts.memory_settings),
            build: facts.build.map(recorded_build),
        }),
        product: facts.product,
        version: facts.version,
        transport: facts.transport.to_owned(),
        tls: facts.tls,
        settings: facts.settings,
        machine: BTreeMap::new(),
        durability: facts.durability.words,
    }
}
