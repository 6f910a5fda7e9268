//! Reads the `[fault.NAME]` tables.

use dyno_units::Nanoseconds;

use super::host;
use super::relation::{self, Relation, each, missing};
use super::table::{Draft, Kind, RawTable, Wrong, wrong};
use super::value::{at_key, at_value};
use crate::keys::{INHERITED, Key, Shape, key};
use crate::nearest::did_you_mean;
use crate::{Database, FaultChoice, FaultKind, HostPool, Product, Table, Variant};

pub(crate) const KIND: Kind = Kind {
    help: "Faults of servers that Dyno starts, at given times of each measurement: [fault.NAME].",
    lead: "One table for each fault: at a given time of each load level, a server that Dyno has started \
           is killed, stopped, restarted or isolated from its cluster, and the report shows the \
           effect on the load. The network between clients and a server cannot be cut, because \
           they connect through a socket. Each variant has \
           one fault; without such a table nothing happens. See docs/faults.md.",
    example: "{ crash = { do = \"kill\", at = \"30s\", start_after = \"5s\" } }",
    names: ["\"crash\"", "\"pause\""],
    ..Kind::new("fault", KEYS, read)
};

/// The kinds of clusters whose nodes can be cut off from each other.
const ISOLATING: [&str; 1] = ["galera"];

/// The fewest nodes of a cluster that goes on without one of them.
const NODES_LEAST: u32 = 3;

const OWN_TABLE: &str = "give each fault a table and vary `fault`";

const KEYS: &[Key] = &[
    key("do", Shape::Words(&["kill", "stop", "restart", "isolate", "nothing"]))
        .help(
            "Kill: the server's processes are killed (SIGKILL). Stop: they are suspended (SIGSTOP) \
             for a while, as when a machine hangs: connections stay open, and nothing is answered. \
             Restart: the server is shut down cleanly and started again. Isolate: a node of a \
             cluster loses the other nodes for a while. Nothing: for variants without a fault.",
        )
        .fixed(OWN_TABLE),
    key("at", Shape::Duration)
        .help("When it happens, from the beginning of the measured time of each load level.")
        .example("\"30s\""),
    key("every", Shape::PositiveDuration)
        .help(
            "Time from one occurrence to the next; without this key, the fault happens once at \
             each load level.",
        )
        .example("\"60s\""),
    key("for", Shape::PositiveDuration)
        .help("For `stop` and `isolate`: how long the server is suspended or isolated.")
        .example("\"5s\""),
    key("start_after", Shape::Duration)
        .help(
            "For `kill`: how long afterwards the server is started again. Without this key, it \
             stays down until the end of the measured time, and is then started for the audit.",
        )
        .example("\"5s\""),
    key("then", Shape::Words(&["promote"]))
        .help(
            "For `kill` of the primary: the replica that has received most is promoted, and \
             clients connect to it. The report shows how many confirmed transactions it lacks.",
        )
        .example("\"promote\""),
    key("member", Shape::Text)
        .help(
            "The member that it affects: primary, the server that is measured; replica-1, \
             replica-2 …; node-1, node-2 …; pooler or proxy, in front of it; of independent \
             servers on hosts, the name of the host.",
        )
        .example("\"replica-1\""),
    key("like", Shape::Text)
        .help("Another fault, whose keys this one inherits and may override.")
        .example("\"crash\"")
        .fixed(INHERITED),
];

const RELATIONS: &[Relation] =
    &[
        missing("{table} does not say what happens", "no `do`")
            .without(&["do"])
            .help("add do = \"kill\", \"stop\", \"restart\" or \"isolate\""),
        missing("{table} does not say when it happens", "no `at`")
            .with(&["do"])
            .without(&["do=nothing", "at"])
            .help("add at = \"30s\""),
        missing("{table} does not say how long the server is suspended", "no `for`")
            .with(&["do=stop"])
            .without(&["for"])
            .help("add for = \"5s\"; to leave a server down instead, use do = \"kill\""),
        missing("{table} does not say how long the node is isolated", "no `for`")
            .with(&["do=isolate"])
            .without(&["for"])
            .help("add for = \"5s\""),
        each(&["for"], NO_EFFECT, "only with do = \"stop\" or \"isolate\"")
            .with(&["do"])
            .without(&["do=stop", "do=isolate", "do=nothing"]),
        each(&["start_after", "then"], NO_EFFECT, "only with do = \"kill\"")
            .with(&["do"])
            .without(&["do=kill", "do=nothing"]),
        each(
            &["start_after", "every"],
            "`{key}` and `then` exclude each other",
            "a primary that was replaced stays down until the end of the measured time",
        )
        .with(&["then"]),
    ];

const NO_EFFECT: &str = "`{key}` has no effect here";

fn read(raw: &RawTable<'_>) -> Option<Table> {
    let table = raw.read();
    let before = raw.parser.count();
    relation::check(raw, RELATIONS, None);
    if let (Some("network" | "partition"), Some(entry)) = (raw.text("do"), raw.entry("do")) {
        at_value(entry, "the network of a server cannot be cut")
            .with_label("clients reach private servers through Unix sockets and loopback")
            .with_help(
                "kill the server, or stop it for a while; a node of a cluster can be isolated",
            )
            .add_to(raw.parser);
    }
    let fault = table.as_ref().and_then(FaultChoice::of);
    let overlaps =
        |fault: &FaultChoice| fault.every.is_some_and(|every| every <= fault.kind.length());
    if let (true, Some(entry)) = (fault.is_some_and(|fault| overlaps(&fault)), raw.entry("every")) {
        at_value(entry, "`every` must be longer than the fault lasts")
            .with_label("the next fault would begin before this one has ended")
            .add_to(raw.parser);
    }
    table.filter(|_| raw.parser.count() == before)
}

/// Checks the faults of the variants against their members and the time that is measured.
pub(super) fn check(draft: &Draft<'_>) {
    let found = draft.variants().filter_map(|variant| {
        let fault = variant.fault()?;
        let wrong = wrong_member(draft, &fault, &variant.database)
            .or_else(|| wrong_time(&fault, draft.duration))
            .or_else(|| wrong_promotion(&fault, &variant.database))?;
        Some((fault.name, wrong))
    });
    draft.report(&KIND, found);
    let promotes = |fault: FaultChoice| fault.promotes.then_some(fault.name);
    let promoting = draft.variants().filter_map(Variant::fault).find_map(promotes);
    if let (Some(generators), Some(name)) = (draft.section.entry("generators"), promoting) {
        at_key(&generators, format!("the fault `{name}` cannot promote a replica"))
            .with_label("clients on other hosts are not told the address of the new primary")
            .with_help("leave `generators` out")
            .add_to(generators.parser);
    }
}

fn wrong_member(draft: &Draft<'_>, fault: &FaultChoice, database: &Database) -> Option<Wrong> {
    let (name, of, vocabulary) = (&fault.name, &database.name, draft.section.parser.vocabulary);
    let cannot = format!("the fault `{name}` cannot happen to the database `{of}`");
    let Product::Private(product) = &database.product else {
        return wrong(
            "",
            cannot,
            "it is given by `url`, and Dyno does not kill, stop or restart a server that it has \
             not started",
            "let Dyno start the server, with product = \"…\" in place of `url`",
        );
    };
    if vocabulary.is_embedded(product) {
        let label = format!("{product} runs inside Dyno's own process");
        return wrong("", cannot, label, "faults need a server process");
    }
    let behind = database.behind.as_ref();
    let router = behind.and_then(|behind| Some(vocabulary.router(&behind.product)?.member.clone()));
    let member = fault.member.as_deref().unwrap_or("primary");
    if let Some(cluster) = &database.cluster
        && cluster.nodes < NODES_LEAST
        && router.as_deref() != Some(member)
    {
        let nodes = cluster.nodes;
        return wrong(
            "",
            format!("the fault `{name}` needs a cluster of {NODES_LEAST} nodes or more"),
            format!("`{of}` has {nodes}: the remaining node would have no majority"),
            format!("give it nodes = {NODES_LEAST}"),
        );
    }
    let is_node = member == "primary" || member.starts_with("node-");
    let can_cut = database.cluster.as_ref().is_some_and(|one| ISOLATING.contains(&&*one.kind));
    if matches!(fault.kind, FaultKind::Isolate { .. }) && !(can_cut && is_node) {
        let kinds = ISOLATING.join(", ");
        return wrong(
            "",
            format!("the fault `{name}` cannot isolate {member} of the database `{of}`"),
            format!("only the network between the nodes of a cluster ({kinds}) can be cut"),
            "give the database such a cluster, or kill or stop the server",
        );
    }
    let mut known = servers_of(database);
    known.extend((database.shards > 0).then(|| "router".to_owned()));
    known.extend(router);
    let pool = database.on.as_ref().and_then(|on| host::pool(draft.hosts, on));
    known.extend(independent(database, pool.as_ref()));
    if known.iter().any(|one| one == member) {
        return None;
    }
    wrong(
        "member",
        format!("the database `{of}` has no member `{member}`"),
        format!("of the fault `{name}`"),
        did_you_mean(member, known.iter().map(String::as_str)),
    )
}

/// The names of the servers of a deployment, without what stands in front of them.
pub(super) fn servers_of(database: &Database) -> Vec<String> {
    let mut known = vec!["primary".to_owned()];
    known.extend((1..=database.replicas).map(|number| format!("replica-{number}")));
    let nodes = database.cluster.as_ref().map_or(0, |cluster| cluster.nodes);
    known.extend((1..=nodes).map(|number| format!("node-{number}")));
    known.extend((1..=database.shards).map(|number| format!("shard-{number}")));
    known
}

/// The names of independent servers, which are those of their hosts; none if the servers are members of one deployment.
pub(super) fn independent(database: &Database, pool: Option<&HostPool>) -> Vec<String> {
    let Some(pool) = pool.filter(|_| !database.is_one_deployment()) else { return Vec::new() };
    pool.names.iter().take(database.servers_on(pool)).cloned().collect()
}

fn wrong_promotion(fault: &FaultChoice, database: &Database) -> Option<Wrong> {
    let (name, of) = (&fault.name, &database.name);
    let message = format!("the fault `{name}` cannot promote a replica of the database `{of}`");
    let wrong = |key, label: &str, help: &str| wrong(key, message.clone(), label, help);
    let member = fault.member.as_deref().unwrap_or("primary");
    match () {
        () if !fault.promotes => None,
        () if database.replicas == 0 => wrong(
            "then",
            "it has no replicas",
            "give the database replicas = 1, or leave `then` out",
        ),
        () if member != "primary" => wrong(
            "member",
            "only the primary is replaced",
            "leave `member` out, or leave `then` out",
        ),
        () if database.behind.is_some() => wrong(
            "then",
            "clients connect to what is in front of it, which passes all on to the first primary",
            "leave `behind` out",
        ),
        () if database.reads_elsewhere() => {
            wrong("then", "its clients connect to replicas (`reads_on`)", "leave `reads_on` out")
        }
        () => None,
    }
}

fn wrong_time(fault: &FaultChoice, duration: Nanoseconds) -> Option<Wrong> {
    let end = Nanoseconds(fault.at.0.saturating_add(fault.kind.length().0));
    (fault.at >= duration || end > duration).then(|| {
        let what = match fault.kind {
            _ if fault.at >= duration => "begins",
            FaultKind::Stop { .. } | FaultKind::Isolate { .. } => "ends",
            _ => "starts the server",
        };
        (
            "at",
            format!("the fault `{}` {what} after the end of the measured time", fault.name),
            format!("`duration` is {duration}"),
            "move it to an earlier time, or raise `duration`".to_owned(),
        )
    })
}
