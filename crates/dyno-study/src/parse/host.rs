//! Reads the `[host.NAME]` tables, and `generators`, which names one of them.

use std::collections::BTreeSet;
use std::ops::Range;

use super::parser::Parser;
use super::reach::{self, HOSTS_MAX};
use super::table::{Draft, Kind, KnownNames, NamedTables, RawTable, known_name};
use super::value::{Section, at_value};
use crate::keys::{Key, Shape, key};
use crate::{Diagnostic, HostPool, LoadLevel, Lost, Product, Table};

/// Hosts. They are the same in all variants.
pub(crate) const KIND: Kind = Kind {
    help: "Machines on which Dyno's agents generate load, start servers or run trials: [host.NAME].",
    lead: "One table for each group of machines on which Dyno's agents generate load, start the \
           servers of a database with `on`, or run its trials with `trials_on` (docs/hosts.md). Everything else is on the machine that runs \
           the study.",
    example: "{ sql = { reach = \"ssh {name} dyno agent\", names = [\"sql1\", \"sql2\"] } }",
    names: ["\"sql\"", "\"load\""],
    is_chosen: false,
    ..Kind::new("host", KEYS, read_one)
};

const KEYS: &[Key] = &[
    key("reach", Shape::Text)
        .default("\"local\"")
        .help(
            "The command that starts an agent on a host, run without a shell, with the host's name \
             in place of {name}. Local: the agents are processes of the machine that runs the \
             study.",
        )
        .example("\"ssh {name} dyno agent\""),
    key("names", Shape::Texts)
        .help(
            "The names of the hosts, each of which runs one agent; if not given, one host with the \
             table's name.",
        )
        .example("[\"sql1\", \"sql2\", \"sql3\"]"),
    key("slurm", Shape::Settings)
        .help(
            "Requests the hosts from Slurm with `salloc`, in place of `reach`: how many nodes \
             (nodes), for how long (time; 1h if not given), how long to wait in the queue (wait; \
             10min), and options of salloc: partition, account, qos, constraint, reservation, \
             nodelist, exclude. The nodes are given back when the run ends.",
        )
        .example("{ partition = \"bench\", nodes = 3, time = \"2h\" }"),
    key("kubernetes", Shape::Settings)
        .help(
            "Starts the hosts as pods with `kubectl`, in place of `reach`: the image, which \
             contains Dyno (image), how many pods (replicas), for how long at most (time; 1h if \
             not given), how long to wait for them (wait; 10min), namespace, context, cpu and \
             memory of each, labels of the nodes (node_selector), labels of pods that must not be \
             on the same node (avoid), and the id of a user as whom they run without any rights, \
             as the profile `restricted` demands (user; the image's own user if not given). The \
             pods are deleted when the run ends.",
        )
        .example("{ image = \"registry.example/dyno:1\", replicas = 3, avoid = \"app=database\" }"),
    key("program", Shape::Text)
        .default("\"dyno\"")
        .help("Dyno's program on hosts of `slurm` and `kubernetes`.")
        .example("\"/opt/dyno/bin/dyno\""),
    key("copy", Shape::Switch).default("false").help(
        "Copies the program that runs the study to the hosts that do not have it yet, into \
             ~/.cache/dyno/agents, and starts agents from there.",
    ),
    key("lost", Shape::Words(&["stop", "continue"]))
        .default("\"stop\"")
        .help(
            "What to do if a host that was used by an earlier trial can no longer be reached. \
             Stop: after a minute of trying, the run ends, to be continued with the same command. \
             Continue: the other trials use the hosts that are left.",
        )
        .example("\"continue\""),
    key("address", Shape::Text)
        .help(
            "The address at which servers on a host are reached (a name or an IPv4 address), with \
             the host's name in place of {name}; if not given, the host's name, or 127.0.0.1 for \
             local agents.",
        )
        .example("\"{name}.internal\""),
];

fn read_one(raw: &RawTable<'_>) -> Option<Table> {
    let table = raw.read();
    let before = raw.parser.count();
    reach::check(raw, table.as_ref());
    if let Some(map) = ["slurm", "kubernetes"].iter().find_map(|map| raw.empty_map(map)) {
        let message = format!("`{}` requests nothing", map.key);
        at_value(map, message).with_label("it is empty").add_to(raw.parser);
    }
    check_count(raw, table.as_ref());
    let names = table.as_ref().map(names).unwrap_or_default();
    if let (Some(entry), Some((message, why))) = (raw.entry("names"), wrong_names(&names)) {
        at_value(entry, message).with_label(why).add_to(raw.parser);
    }
    table.filter(|_| raw.parser.count() == before)
}

/// What is wrong with the names of hosts: a message, and what to do.
fn wrong_names(names: &[String]) -> Option<(String, &'static str)> {
    let is_odd = |c: char| c.is_control() || c.is_whitespace();
    let odd =
        names.iter().find(|name| name.is_empty() || name.starts_with('-') || name.contains(is_odd));
    if let Some(odd) = odd {
        let message = format!("`{odd}` cannot be the name of a host");
        return Some((message, "a name does not begin with `-`, and contains no spaces"));
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = names.iter().find(|name| !seen.insert(*name)) {
        return Some((format!("host `{twice}` is listed twice"), "one agent runs on each host"));
    }
    if names.is_empty() || names.len() > HOSTS_MAX {
        let message = format!("`names` must list 1 to {HOSTS_MAX} names");
        return Some((message, "the hosts of this table"));
    }
    None
}

/// Refuses another number of names than of hosts that are requested.
fn check_count(raw: &RawTable<'_>, table: Option<&Table>) {
    let Some((entry, table)) = raw.entry("names").zip(table) else { return };
    let n = names(table).len();
    let Some(count) =
        reach::requested(table).filter(|count| reach::has_count(table) && *count != n)
    else {
        return;
    };
    let are = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let message = format!("`names` holds {} for {}", are(n, "name"), are(count, "host"));
    let wrong = at_value(entry, message);
    raw.parser.add(wrong.with_label("each host has one name"));
}

fn names(table: &Table) -> Vec<String> {
    match (table.fields.get("names"), reach::requested(table)) {
        (Some(_), _) => table.texts("names").to_vec(),
        (_, Some(n)) => (1..=n).map(|nth| format!("{}-{nth}", table.name)).collect(),
        _ => vec![table.name.clone()],
    }
}

impl HostPool {
    fn of(table: &Table) -> Option<HostPool> {
        Some(HostPool {
            name: table.name.clone(),
            reach: reach::read(table)?,
            names: names(table),
            program: table.text("program").unwrap_or("dyno").to_owned(),
            copy: table.is_on("copy"),
            lost: match table.text("lost") {
                Some("continue") => Lost::Continue,
                _ => Lost::Stop,
            },
            address: table.owned("address"),
            hidden_variables: Vec::new(),
        })
    }
}

/// The hosts of the table of this name; none if there is no such table, or it has been reported as wrong.
pub(super) fn pool(hosts: &NamedTables<'_>, name: &str) -> Option<HostPool> {
    let table = hosts.tables.iter().find(|table| table.name == name)?;
    HostPool::of(table.table.as_ref()?)
}

/// Reads `generators`: the hosts that it names, and where it stands.
pub(super) fn read(
    section: &Section<'_>,
    hosts: &NamedTables<'_>,
) -> Option<(Option<HostPool>, Range<usize>)> {
    let known = KnownNames::new(hosts.names());
    let given = section.read("generators", |entry| known_name(entry, "host", &known))?;
    let found = given.value.as_deref().and_then(|name| pool(hosts, name));
    Some((found, given.key_span))
}

/// Refuses what generators on other hosts, or several of them, cannot do.
pub(super) fn check(
    draft: &Draft<'_>,
    (pool, span): (&HostPool, &Range<usize>),
    (server_hosts, is_until_steady): (&[HostPool], bool),
) {
    let (parser, loads) = (draft.section.parser, draft.loads);
    let refuse = |message: String, why: &str| {
        let diagnostic = Diagnostic::new(span.clone(), message);
        parser.add(diagnostic.with_label("the load is generated on other hosts").with_help(why));
    };
    let here = draft.variants().filter(|variant| variant.database.on.is_none());
    let products = here.map(|variant| &variant.database.product);
    let private: BTreeSet<&str> = products
        .filter_map(|product| match product {
            Product::Private(name) => Some(name.as_str()),
            Product::Url(_) => None,
        })
        .collect();
    for name in private {
        if parser.vocabulary.product(name).is_some_and(|word| word.is_embedded && !word.has_socket)
        {
            refuse(
                format!("{name} runs inside Dyno's own process, and agents cannot connect to it"),
                "choose a server, or leave out `generators`",
            );
        } else if !pool.is_local() {
            refuse(
                format!("a private server ({name}) cannot be reached from other hosts"),
                "it listens on a Unix socket of the machine that runs the study: start it on hosts \
                 (`on`), give the database a `url`, or the host reach = \"local\"",
            );
        }
    }
    if is_until_steady {
        refuse(
            "`until_steady` cannot be combined with `generators` yet".to_owned(),
            "all generators would have to become steady at the same time: use a fixed `duration`",
        );
    }
    let n = pool.names.len();
    let servers = draft.variants().map(|variant| {
        let database = &variant.database;
        let on = server_hosts.iter().find(|hosts| Some(&hosts.name) == database.on.as_ref());
        database.loaded_servers(on)
    });
    let servers = servers.max();
    if let Some(servers) = servers.filter(|servers| *servers > n) {
        refuse(
            format!("{n} generators cannot load {servers} servers"),
            "each generator loads one server: name as many hosts, or lower `sql_servers` or `servers`",
        );
    }
    let few =
        loads.into_iter().flatten().map(LoadLevel::clients_least).find(|clients| *clients < n);
    if let Some(clients) = few {
        refuse(
            format!("{n} generators cannot share a load of {}", in_words(clients)),
            "each generator needs a client at every load: name fewer hosts, or more clients (a search \
             for clients begins with one)",
        );
    }
}

fn in_words(clients: usize) -> String {
    if clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") }
}

/// Refuses steps that a workload defines itself.
pub(super) fn check_own(parser: &Parser<'_>, span: Option<Range<usize>>, loads: &[LoadLevel]) {
    let message = "a workload that defines its own steps cannot be combined with `generators` yet";
    if loads.iter().any(|load| matches!(load, LoadLevel::Own(_))) {
        Diagnostic::new(span.unwrap_or(0..0), message)
            .with_label("the load is generated on other hosts")
            .with_help("its roles share state and end together: leave `generators` out")
            .add_to(parser);
    }
}

#[cfg(test)]
mod tests {
    use dyno_units::Seed;

    use crate::fixture::{study, vocabulary};
    use crate::plan::canonical_text;

    /// A study whose load is generated on hosts that have these lines.
    fn with_hosts(host: &str, design: &str) -> String {
        format!(
            "title = 'x'\n[database.a]\nproduct = 'mariadb'\n[workload.oltp_read_only]\n\
             [host.sql]\n{host}\n[design]\nclients = 4\ngenerators = 'sql'\n{design}\n"
        )
    }

    #[test]
    fn hosts_are_read_with_their_command() {
        let pool = |host: &str| study(&with_hosts(host, "")).design.generators.expect("there are");
        let local = pool("names = ['a', 'b']");
        assert!(local.is_local() && local.names == ["a", "b"], "{local:?}");
        assert_eq!(pool("reach = 'local'").names, ["sql"]);
        assert_eq!(pool("names = 'one'").names, ["one"]);
        let text = with_hosts("reach = 'ssh {name} \"my dyno\" agent'", "");
        let text = text.replace("product = 'mariadb'", "url = 'mysql://me@db/x'");
        let remote = study(&text).design.generators.expect("there are");
        assert_eq!(remote.reach.words(), ["ssh", "{name}", "my dyno", "agent"]);
        assert_eq!(remote.reach_in_words(), "ssh {name} my dyno agent");
    }

    #[test]
    fn servers_over_the_same_data_are_read() {
        let with = |lines: &str| {
            let text = with_hosts("names = ['a', 'b']", "");
            text.replace("product = 'mariadb'", &format!("url = 'mysql://me:pw1@db1/x'\n{lines}"))
        };
        let more = "more_urls = ['mysql://me:pw2@db2/x', 'mysql://me:pw3@db3/x']\nsql_servers = 2";
        let read = study(&with(more));
        let database = &read.variants[0].database;
        assert_eq!(database.further_servers().collect::<Vec<_>>(), ["mysql://me:pw2@db2/x"]);
        assert_eq!(database.urls().count(), 3);
        for text in [format!("{database:?}"), canonical_text(&crate::plan(&read, Seed(1)), &read)] {
            assert!(text.contains("db2") && !text.contains("pw"), "{text}");
        }
        let check = |lines: &str, expected: &str| {
            let problems = crate::parse(&with(lines), &vocabulary()).expect_err("it is refused");
            let messages: Vec<String> = problems
                .iter()
                .map(|one| format!("{} {}", one.message, one.help.as_deref().unwrap_or_default()))
                .collect();
            assert!(messages.join("\n").contains(expected), "{lines}: {messages:?}");
        };
        check("sql_servers = 2", "`a` has only 1 server name the others in `more_urls`");
        check("more_urls = []", "is not a list of URLs");
        check("more_urls = 'mysql://me@db2/x'", "is not a list of URLs");
        check("more_urls = ['db2']", "this is not a URL");
        check("more_urls = ['postgresql://me@db2/x']", "speak another protocol");
        check("more_urls = ['mysql://me:pw1@db1/x']", "a server is listed twice");
        let three = more.replace("sql_servers = 2", "");
        check(&three, "2 generators cannot load 3 servers");
        let private = with(&three).replace("url = 'mysql://me:pw1@db1/x'", "product = 'mariadb'");
        let problems = crate::parse(&private, &vocabulary()).expect_err("it is refused");
        assert!(problems[0].message.contains("`more_urls` works only with `url`"), "{problems:?}");
    }

    #[test]
    fn a_study_without_generators_has_the_plan_that_it_had() {
        let plan = |text: &str| {
            let study = study(text);
            canonical_text(&crate::plan(&study, Seed(1)), &study)
        };
        let with = plan(&with_hosts("names = ['a', 'b']", ""));
        assert!(with.contains("\"generators\" = [\"a\", \"b\"]\n\"generators.reach\" = []\n"));
        let without = with_hosts("", "").replace("generators = 'sql'", "");
        assert!(!plan(&without).contains("generators\""));
    }

    #[test]
    fn what_does_not_go_with_generators_is_refused() {
        let check = |text: &str, expected: &str| {
            let found = crate::parse(text, &vocabulary()).expect_err("it has an error");
            let messages: Vec<&str> = found.iter().map(|one| one.message.as_str()).collect();
            assert!(messages.iter().any(|one| one.contains(expected)), "{messages:?}");
        };
        let names = "names = ['a', 'b']";
        check(&with_hosts("reach = 'ssh {name}'", ""), "cannot be reached from other hosts");
        check(&with_hosts("reach = 'ssh \"{name}'", ""), "`reach` is not a command");
        check(&with_hosts("names = []", ""), "`names`");
        check(&with_hosts("names = ['a', 'a']", ""), "listed twice");
        check(&with_hosts("names = ['a b']", ""), "cannot be the name of a host");
        check(&with_hosts("user = 'me'", ""), "unknown key `user`");
        check(&with_hosts(names, "find_clients = 'p99 <= 5ms'"), "cannot share a load of 1 client");
        check(&with_hosts(names, "vary = { 'host.reach' = ['a'] }"), "cannot be varied");
        let few = with_hosts(names, "").replace("clients = 4", "clients = 1");
        check(&few, "2 generators cannot share a load of 1 client");
        let steady = with_hosts(names, "duration = '5s'\nuntil_steady = '60s'");
        check(&steady, "`until_steady` cannot be combined with `generators` yet");
        let embedded = with_hosts(names, "").replace("'mariadb'", "'sqlite'");
        check(&embedded, "agents cannot connect to it");
        let own = with_hosts(names, "").replace("oltp_read_only", "staged");
        check(&own, "a workload that defines its own steps");
    }
}
