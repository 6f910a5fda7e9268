//! Reads the `[fault.NAME]` tables.

use std::ops::Range;

use dyno_units::Nanoseconds;

use super::host;
use super::kind::Kind;
use super::problems::Problems;
use super::table::{NamedTables, RawTable};
use super::value::Section;
use crate::keys::{INHERITED, Key, Shape, key};
use crate::nearest::did_you_mean;
use crate::{
    Database, Diagnostic, FaultChoice, FaultKind, HostPool, Product, Table, Variant, Vocabulary,
};

pub(crate) const KIND: Kind = Kind {
    name: "fault",
    help: "Faults of servers that Dyno starts, at given times of each measurement: [fault.NAME].",
    lead: "One table for each fault: at a given time of each load level, a server that Dyno has started \
           is killed, stopped, restarted or isolated from its cluster, and the report shows the \
           effect on the load. The network between clients and a server cannot be cut, because \
           they connect through a socket. Each variant has \
           one fault; without such a table nothing happens. See docs/faults.md.",
    example: "{ crash = { do = \"kill\", at = \"30s\", start_after = \"5s\" } }",
    names: ["\"crash\"", "\"pause\""],
    baseline_note: "",
    keys: KEYS,
    has_options: false,
    alternatives: &[],
    is_chosen: true,
    needed: None,
    read,
};

/// The kinds of clusters whose nodes can be cut off from each other.
const ISOLATING: [&str; 1] = ["galera"];

/// The fewest nodes of a cluster that goes on without one of them.
const NODES_LEAST: u32 = 3;

const OWN_TABLE: &str = "give each fault a table and vary `fault`";

const KEYS: &[Key] = &[
    key(
        "do",
        Shape::Words(&["kill", "stop", "restart", "isolate", "nothing"]),
        "Kill: the server's processes are killed (SIGKILL). Stop: they are suspended (SIGSTOP) \
         for a while, as when a machine hangs: connections stay open, and nothing is answered. Restart: the server is shut down cleanly and started again. Isolate: a node of \
         a cluster loses the other nodes for a while. Nothing: for variants without a fault.",
    )
    .fixed(OWN_TABLE),
    key(
        "at",
        Shape::Duration,
        "When it happens, from the beginning of the measured time of each load level.",
    )
    .example("\"30s\""),
    key(
        "every",
        Shape::PositiveDuration,
        "Time from one occurrence to the next; without this key, the fault happens once at each \
         load level.",
    )
    .example("\"60s\""),
    key(
        "for",
        Shape::PositiveDuration,
        "For `stop` and `isolate`: how long the server is suspended or isolated.",
    )
    .example("\"5s\""),
    key(
        "start_after",
        Shape::Duration,
        "For `kill`: how long afterwards the server is started again. Without this key, it stays \
         down until the end of the measured time, and is then started for the audit.",
    )
    .example("\"5s\""),
    key(
        "then",
        Shape::Words(&["promote"]),
        "For `kill` of the primary: the replica that has received most is promoted, and clients \
         connect to it. The report shows how many confirmed transactions it lacks.",
    )
    .example("\"promote\""),
    key(
        "member",
        Shape::Text,
        "The member that it affects: primary, the server that is measured; replica-1, \
         replica-2 …; node-1, node-2 …; pooler or proxy, in front of it; of independent servers on hosts, the \
         name of the host.",
    )
    .example("\"replica-1\""),
    key("like", Shape::Text, "Another fault, whose keys this one inherits and may override.")
        .example("\"crash\"")
        .fixed(INHERITED),
];

fn read(problems: &mut Problems, raw: &RawTable<'_>, vocabulary: &Vocabulary) -> Option<Table> {
    let table = raw.read(problems, vocabulary);
    let before = problems.count();
    let title = format!("`[fault.{}]`", raw.name);
    let mut missing = |what: &str, label: &str, help: &str| {
        problems.add_missing(
            Diagnostic::new(raw.name_span.clone(), format!("{title} {what}"))
                .with_label(label)
                .with_help(help),
        );
    };
    let kind = raw.text("do");
    if raw.entry("do").is_none() {
        missing(
            "does not say what happens",
            "no `do`",
            "add do = \"kill\", \"stop\", \"restart\" or \"isolate\"",
        );
    }
    let happens = kind.is_some_and(|kind| kind != "nothing");
    if happens && raw.entry("at").is_none() {
        missing("does not say when it happens", "no `at`", "add at = \"30s\"");
    }
    if kind == Some("stop") && raw.entry("for").is_none() {
        missing(
            "does not say how long the server is suspended",
            "no `for`",
            "add for = \"5s\"; to leave a server down instead, use do = \"kill\"",
        );
    }
    if kind == Some("isolate") && raw.entry("for").is_none() {
        missing("does not say how long the node is isolated", "no `for`", "add for = \"5s\"");
    }
    if let (Some("network" | "partition"), Some(entry)) = (kind, raw.entry("do")) {
        problems.add(
            Diagnostic::new(entry.span.clone(), "the network of a server cannot be cut")
                .with_label("clients reach private servers through Unix sockets and loopback")
                .with_help(
                    "kill the server, or stop it for a while; a node of a cluster can be isolated",
                ),
        );
    }
    let only = [("for", &["stop", "isolate"][..]), ("start_after", &["kill"]), ("then", &["kill"])];
    let is_other = |of: &[&str]| happens && kind.is_none_or(|kind| !of.contains(&kind));
    for (field, of) in only.into_iter().filter(|(_, of)| is_other(of)) {
        if let Some(entry) = raw.entry(field) {
            problems.add(
                Diagnostic::new(entry.key_span.clone(), format!("`{field}` has no effect here"))
                    .with_label(format!("only with do = \"{}\"", of.join("\" or \""))),
            );
        }
    }
    for field in ["start_after", "every"] {
        if let (Some(entry), Some(_)) = (raw.entry(field), raw.entry("then")) {
            problems.add(
                Diagnostic::new(
                    entry.key_span.clone(),
                    format!("`{field}` and `then` exclude each other"),
                )
                .with_label(
                    "a primary that was replaced stays down until the end of the measured time",
                ),
            );
        }
    }
    let fault = table.as_ref().and_then(FaultChoice::of);
    let overlaps =
        |fault: &FaultChoice| fault.every.is_some_and(|every| every <= fault.kind.length());
    if let (true, Some(entry)) = (fault.is_some_and(|fault| overlaps(&fault)), raw.entry("every")) {
        problems.add(
            Diagnostic::new(entry.span.clone(), "`every` must be longer than the fault lasts")
                .with_label("the next fault would begin before this one has ended"),
        );
    }
    table.filter(|_| problems.count() == before)
}

/// Checks the faults of the variants against their members and the time that is measured.
pub(super) fn check(
    problems: &mut Problems,
    section: &Section<'_>,
    (tables, hosts, variants): (&[NamedTables<'_>], &NamedTables<'_>, Option<&[Variant]>),
    duration: Nanoseconds,
    vocabulary: &Vocabulary,
) {
    let faults = tables.iter().find(|tables| tables.kind == &KIND);
    // Where the table, or a key of it, is; a value that is varied stands in the design.
    let span = |name: &str, key: Option<&str>| -> Range<usize> {
        let named = faults.and_then(|faults| faults.tables.iter().find(|table| table.name == name));
        let raw = named.and_then(|named| named.raw.as_ref());
        let entry = key.and_then(|key| raw?.entry(key)).map(|entry| entry.span.clone());
        entry.or_else(|| raw.map(|raw| raw.name_span.clone())).unwrap_or(section.span.clone())
    };
    let mut told: Vec<(String, String)> = Vec::new();
    for variant in variants.into_iter().flatten() {
        let Some(fault) = variant.fault() else { continue };
        let wrong = wrong_member(&fault, (&variant.database, hosts), vocabulary)
            .or_else(|| wrong_time(&fault, duration))
            .or_else(|| wrong_promotion(&fault, &variant.database));
        let Some((key, message, label, help)) = wrong else { continue };
        // Variants that share a fault share its mistakes.
        if !told.contains(&(fault.name.clone(), message.clone())) {
            problems.add(
                Diagnostic::new(span(&fault.name, key), &*message)
                    .with_label(label)
                    .with_help(help),
            );
            told.push((fault.name.clone(), message));
        }
    }
    let promotes = |fault: FaultChoice| fault.promotes.then_some(fault.name);
    let promoting = variants.into_iter().flatten().filter_map(Variant::fault).find_map(promotes);
    if let (Some(generators), Some(name)) = (section.entry("generators"), promoting) {
        problems.add(
            Diagnostic::new(
                generators.key_span,
                format!("the fault `{name}` cannot promote a replica"),
            )
            .with_label("clients on other hosts are not told the address of the new primary")
            .with_help("leave `generators` out"),
        );
    }
    let mut searches =
        ["find_rate", "find_clients"].into_iter().filter_map(|key| section.entry(key));
    let mut faults = variants.into_iter().flatten().filter_map(Variant::fault);
    if let (Some(search), Some(fault)) = (searches.next(), faults.next()) {
        problems.add(
            Diagnostic::new(
                search.key_span,
                format!("the fault `{}` cannot happen during a search for a load", fault.name),
            )
            .with_label("a search tries many loads")
            .with_help("set the load with `clients` or `rate`"),
        );
    }
}

/// The key that is wrong, a message, a label and a help.
type Wrong = (Option<&'static str>, String, String, String);

fn wrong_member(
    fault: &FaultChoice,
    (database, hosts): (&Database, &NamedTables<'_>),
    vocabulary: &Vocabulary,
) -> Option<Wrong> {
    let name = &fault.name;
    let product = match &database.product {
        Product::Url(_) => {
            return Some((
                None,
                format!("the fault `{name}` cannot happen to the database `{}`", database.name),
                "it is given by `url`, and Dyno does not kill, stop or restart a server that it \
                 has not started"
                    .to_owned(),
                "let Dyno start the server, with product = \"…\" in place of `url`".to_owned(),
            ));
        }
        Product::Private(product) => product,
    };
    let is_embedded =
        vocabulary.products.iter().any(|word| word.name == *product && word.is_embedded);
    if is_embedded {
        return Some((
            None,
            format!("the fault `{name}` cannot happen to the database `{}`", database.name),
            format!("{product} runs inside Dyno's own process"),
            "faults need a server process".to_owned(),
        ));
    }
    let router = router_of(database, vocabulary);
    let member = fault.member.as_deref().unwrap_or("primary");
    if let Some(cluster) = &database.cluster
        && cluster.nodes < NODES_LEAST
        && router.as_deref() != Some(member)
    {
        return Some((
            None,
            format!("the fault `{name}` needs a cluster of {NODES_LEAST} nodes or more"),
            format!(
                "`{}` has {}: the remaining node would have no majority",
                database.name, cluster.nodes
            ),
            format!("give it nodes = {NODES_LEAST}"),
        ));
    }
    let is_node = member == "primary" || member.starts_with("node-");
    let can_cut = database.cluster.as_ref().is_some_and(|one| ISOLATING.contains(&&*one.kind));
    if matches!(fault.kind, FaultKind::Isolate { .. }) && !(can_cut && is_node) {
        return Some((
            None,
            format!(
                "the fault `{name}` cannot isolate {member} of the database `{}`",
                database.name
            ),
            format!(
                "only the network between the nodes of a cluster ({}) can be cut",
                ISOLATING.join(", ")
            ),
            "give the database such a cluster, or kill or stop the server".to_owned(),
        ));
    }
    let mut known = servers_of(database);
    known.extend((database.shards > 0).then(|| "router".to_owned()));
    known.extend(router);
    let pool = database.on.as_ref().and_then(|on| host::pool(hosts, on));
    known.extend(independent(database, pool.as_ref()));
    (!known.iter().any(|one| one == member)).then(|| {
        (
            Some("member"),
            format!("the database `{}` has no member `{member}`", database.name),
            format!("of the fault `{name}`"),
            did_you_mean(member, known.iter().map(String::as_str)),
        )
    })
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
    let wrong = |key, label: &str, help: &str| {
        Some((Some(key), message.clone(), label.to_owned(), help.to_owned()))
    };
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

fn router_of(database: &Database, vocabulary: &Vocabulary) -> Option<String> {
    let behind = database.behind.as_ref()?;
    let word = vocabulary.routers.iter().find(|word| word.name == behind.product)?;
    Some(word.member.clone())
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
            Some("at"),
            format!("the fault `{}` {what} after the end of the measured time", fault.name),
            format!("`duration` is {duration}"),
            "move it to an earlier time, or raise `duration`".to_owned(),
        )
    })
}
