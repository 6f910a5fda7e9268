//! Checks databases whose servers are started on hosts (`on`).

use std::collections::BTreeSet;
use std::path::Path;

use super::table::Draft;
use super::{database, host};
use crate::nearest::did_you_mean;
use crate::{Database, Diagnostic, HostPool, Reach};

/// Finds the hosts of all databases that name some, and reports what else such servers cannot do.
pub(super) fn check(draft: &Draft<'_>, has_generators: bool) -> Vec<HostPool> {
    let &Draft { section, hosts, .. } = draft;
    let mut found: Vec<HostPool> = Vec::new();
    let mut told = BTreeSet::new();
    let mut refuse = |name: &str, message: String, label: &str, help: &str| {
        if told.insert(message.clone()) {
            let span = draft.place(&database::KIND, (name, "on"));
            let span = span.unwrap_or_else(|| section.span.clone());
            Diagnostic::new(span, message).with_label(label).with_help(help).add_to(section.parser);
        }
    };
    for variant in draft.variants() {
        let others = variant.other_database.iter();
        for other in others.filter(|other| other.on.is_some()) {
            refuse(
                &other.name,
                format!("`{}` cannot be the other database of a job", other.name),
                "the other database is on the machine that runs the study",
                "leave `on` out",
            );
        }
        let database: &Database = &variant.database;
        let Some(on) = &database.on else { continue };
        let Some(pool) = host::pool(hosts, on) else {
            // One that is wrong has been reported.
            if !hosts.names().contains(&on.as_str()) {
                let help = did_you_mean(on, hosts.names());
                let message = format!("there is no host `{on}`");
                refuse(&database.name, message, "no [host.NAME] table has this name", &help);
            }
            continue;
        };
        if matches!(pool.reach, Reach::Kubernetes(_)) {
            refuse(
                &database.name,
                format!("no server can be started in the pods of `{on}`"),
                "the pods are for load generators",
                "deploy the server in the cluster and give its `url`",
            );
        }
        let (servers, n) = (database.servers_on(&pool), pool.names.len());
        if let Some((message, help)) = missing_hosts(database, n) {
            let label = "only one server can be started on each host";
            refuse(&database.name, message, label, &help);
        }
        let servers = if database.is_one_deployment() { 1 } else { servers };
        if servers > 1 && !has_generators {
            refuse(
                &database.name,
                format!("the {servers} servers of `{}` need `generators`", database.name),
                "each independent server has a load generator of its own",
                "add `generators` to [design], which may name the same hosts, or set servers = 1",
            );
        }
        if servers > 1 && section.entry("run_off").is_some() {
            refuse(
                &database.name,
                "`run_off` with several servers cannot be combined with `on`".to_owned(),
                "the deferred work of one server is paid off after the load, and there are several",
                "leave `run_off` out, or set servers = 1",
            );
        }
        for volume in variant.volumes() {
            let Some(device) = volume.device().map(Path::display) else { continue };
            refuse(
                &database.name,
                format!("the volume `{}` cannot format {device} on hosts", volume.name),
                "`--format-device` names devices of the machine that runs the study",
                "give the volume a `size` in place of `device`: it is then an image file on each host",
            );
        }
        if !found.contains(&pool) {
            found.push(pool);
        }
    }
    found
}

/// What to say, and what to do, if a database needs more than these `n` hosts.
fn missing_hosts(database: &Database, n: usize) -> Option<(String, String)> {
    let wanted = database.hosts_needed().filter(|wanted| *wanted > n)?;
    let help = match (&database.cluster, database.replicas) {
        (Some(_), _) => "lower `nodes`, or name more hosts".to_owned(),
        (None, 0) => "lower `servers`, or name more hosts".to_owned(),
        (None, replicas) => format!(
            "the primary and {replicas} replicas need {wanted} hosts: lower `replicas`, or name more hosts"
        ),
    };
    Some((format!("{wanted} servers cannot be started on {n} hosts"), help))
}

#[cfg(test)]
mod tests {
    use dyno_units::Seed;

    use crate::fixture::{study, vocabulary};
    use crate::plan::canonical_text;

    fn text(database: &str, design: &str) -> String {
        format!(
            "title = 'x'\n[database.a]\nproduct = 'mariadb'\n{database}\n[workload.oltp_read_only]\n\
             [host.sql]\nnames = ['a', 'b', 'c']\n[host.far]\nreach = 'ssh {{name}} dyno agent'\n\
             [design]\nclients = 4\n{design}\n"
        )
    }

    const GENERATED: &str = "generators = 'sql'";

    #[test]
    fn servers_on_hosts_are_read() {
        let with = |database: &str| study(&text(database, GENERATED));
        let read = with("on = 'sql'\nservers = 2");
        let pool = &read.design.server_hosts[0];
        assert_eq!((pool.name.as_str(), pool.names.len()), ("sql", 3));
        assert_eq!(read.variants[0].database.servers_on(pool), 2);
        let plan = canonical_text(&crate::plan(&read, Seed(1)), &read);
        for line in ["\"database.on\" = \"sql\"", "\"host.sql\" = [\"a\", \"b\", \"c\"]"] {
            assert!(plan.contains(line), "{plan}");
        }
        let all = with("on = 'sql'");
        assert_eq!(all.variants[0].database.servers_on(&all.design.server_hosts[0]), 3);
        let several = |database: &str, hosts: usize| {
            let read = study(&text(database, ""));
            assert_eq!(read.variants[0].database.servers_on(&read.design.server_hosts[0]), hosts);
        };
        several("on = 'sql'\nreplicas = 1", 2);
        several("on = 'sql'\nreplicas = 2\nreplication = 'synchronous'", 3);
        several("on = 'sql'\ncluster = 'galera'\nnodes = 3", 3);
        // A router shares a host if it has to.
        for (replicas, servers) in [(2, 3), (0, 1)] {
            let pooled =
                format!("on = 'sql'\nreplicas = {replicas}\nbehind = {{ product = 'pgbouncer' }}");
            let pooled = study(&text(&pooled, "").replace("'mariadb'", "'postgresql'"));
            let database = &pooled.variants[0].database;
            assert_eq!(database.servers_on(&pooled.design.server_hosts[0]), servers);
        }
        // A private server that other hosts reach.
        let far = study(&text("on = 'far'", "generators = 'far'"));
        assert_eq!(far.design.server_hosts[0].address_of("far"), "far");
        assert!(with("").design.server_hosts.is_empty());
    }

    #[test]
    fn what_servers_on_hosts_cannot_do_is_refused() {
        let check_text = |text: &str, expected: &str| {
            let found = crate::parse(text, &vocabulary()).expect_err("it has an error");
            let messages: Vec<&str> = found.iter().map(|one| one.message.as_str()).collect();
            assert!(messages.iter().any(|one| one.contains(expected)), "{expected}: {messages:?}");
        };
        let check = |database: &str, design: &str, expected: &str| {
            check_text(&text(database, design), expected)
        };
        check("servers = 2", GENERATED, "`servers` needs `on`");
        check("on = 'sqk'", GENERATED, "there is no host `sqk`");
        check("on = 'sql'\nservers = 4", GENERATED, "4 servers cannot be started on 3 hosts");
        check("on = 'sql'\nreplicas = 3", "", "4 servers cannot be started on 3 hosts");
        check("on = 'sql'\ncluster = 'galera'\nnodes = 4", "", "4 servers cannot be started on 3");
        check("on = 'sql'\nreplicas = 1\nservers = 2", "", "`servers` and `replicas` cannot be");
        check("on = 'sql'\ncluster = 'galera'\nservers = 2", "", "`servers` and `cluster` cannot");
        let behind = "behind = { product = 'pgbouncer' }";
        check(&format!("on = 'sql'\nservers = 2\n{behind}"), "", "`servers` and `behind` cannot");
        let reads = "on = 'sql'\nreplicas = 2\nreads_on = 'all'";
        check(reads, "generators = 'far'", "1 generators cannot load 3 servers");
        check("on = 'sql'", "", "the 3 servers of `a` need `generators`");
        check("on = 'sql'", "generators = 'far'", "1 generators cannot load 3 servers");
        check("on = 'sql'", "generators = 'sql'\nrun_off = '5s'", "`run_off` with several servers");
        let job = |database: &str, job: &str| {
            text(database, GENERATED)
                .replace("[design]", &format!("[job.j]\ncommand = ['true']\n{job}\n[design]"))
        };
        let others = "the job `j` must name one of the 3 servers of `a`";
        check_text(&job("on = 'sql'", ""), others);
        let unknown = "the database `a` has no server `c`";
        check_text(&job("on = 'sql'\nservers = 2", "member = 'c'"), unknown);
        let other = "other_database = 'b'\n[database.b]\nproduct = 'postgresql'";
        let here = "the job `j` cannot have an `other_database`: `a` has `on`";
        let selected = job("on = 'sql'\nreplicas = 1", other);
        check_text(&selected.replace("[design]", "[design]\ndatabase = 'a'"), here);
        for (database, member) in [
            ("on = 'sql'\nservers = 1", ""),
            ("on = 'sql'\nservers = 2", "member = 'b'"),
            ("on = 'sql'\nreplicas = 1", "member = 'replica-1'"),
        ] {
            let read = study(&job(database, member));
            assert!(read.variants[0].job().is_some(), "{database}");
        }
        for key in [
            "image = 'mariadb:11'",
            "memory = '1GiB'",
            "kernel = { \"vm.swappiness\" = 1 }",
            "shards = 2",
            "data = 'populated'",
        ] {
            let name = key.split(' ').next().unwrap_or_default();
            check(&format!("on = 'sql'\n{key}"), GENERATED, &format!("`{name}` and `on` cannot"));
        }
        let sqlite = text("on = 'sql'", GENERATED).replace("'mariadb'", "'sqlite'");
        check_text(&sqlite, "`sqlite` cannot be started on other hosts");
        check_text(
            &text("on = 'sql'", GENERATED).replace(
                "names = ['a', 'b', 'c']",
                "kubernetes = { image = 'dyno', replicas = 3 }",
            ),
            "no server can be started in the pods of `sql`",
        );
        let by_url = text("on = 'sql'", GENERATED);
        check_text(
            &by_url.replace("product = 'mariadb'", "url = 'mysql://me@db/x'"),
            "`on` cannot be combined with `url`",
        );
    }
}
