//! Reads how the hosts of a `[host.NAME]` are reached. Each way has a key there: a command, or a table of
//! what is requested from a cluster manager.

use std::collections::BTreeMap;
use std::ops::Range;

use dyno_units::{Nanoseconds, SettingValue, parse_duration};

use super::kubernetes;
use super::table::RawTable;
use super::value::{Entry, at_value, unknown_key};
use crate::host::{LOCAL, words};
use crate::{Diagnostic, FieldValue, KubernetesRequest, Reach, SlurmRequest, Table};

/// The keys of which a table has one at most.
const WAYS: [&str; 3] = ["reach", "slurm", "kubernetes"];

pub(super) const HOSTS_MAX: usize = 1000;

/// Names that have the same values.
type Fields = &'static [(&'static str, Check)];

/// Whether a value is right, and what is expected.
type Check = (fn(&FieldValue) -> bool, &'static str);

const TEXT: Check = (
    |value| is_plain(&text_of(value)),
    "a string or number of at most 200 characters, without spaces",
);
const COUNT: Check =
    (|value| matches!(count_of(value), Some(1..=HOSTS_MAX)), "a number of hosts from 1 to 1000");
const TIME: Check =
    (|value| time_of(value).is_some(), "a duration of at least one second such as \"1h\"");
const LABELS: Check =
    (|value| labels_of(&text_of(value)).is_some(), "labels such as \"disk=ssd,zone=a\"");
const IMAGE: Check = (
    |value| kubernetes::is_image(&text_of(value)),
    "the name of an image such as \"registry.example/dyno:1\"",
);
const AMOUNT: Check = (
    |value| kubernetes::is_amount(&text_of(value)),
    "an amount as Kubernetes writes it, such as 2, \"500m\" or \"4Gi\"",
);
const NAMESPACE: Check = (
    |value| kubernetes::is_namespace(&text_of(value)),
    "the name of a namespace: lower-case letters, digits and `-`",
);
const USER: Check =
    (|value| user_of(value).is_some(), "the id of a user who is not root, such as 1000");

/// How many nodes: not an option of `salloc`, but the number of the hosts.
const NODES: &str = "nodes";
const REPLICAS: &str = "replicas";

const SLURM: Fields = &[
    (NODES, COUNT),
    ("time wait", TIME),
    ("partition account qos constraint reservation nodelist exclude", TEXT),
];

const KUBERNETES: Fields = &[
    ("image", IMAGE),
    (REPLICAS, COUNT),
    ("time wait", TIME),
    ("namespace", NAMESPACE),
    ("context", TEXT),
    ("node_selector avoid", LABELS),
    ("cpu memory", AMOUNT),
    ("user", USER),
];

/// How long nodes are requested for if the study does not say it.
const TIME_USUAL: Nanoseconds = Nanoseconds::from_secs(3600);
/// How long a request may wait if the study does not say it.
const WAIT_USUAL: Nanoseconds = Nanoseconds::from_secs(600);

pub(super) fn check(raw: &RawTable<'_>, table: Option<&Table>) {
    let given: Vec<(&str, Range<usize>)> =
        WAYS.iter().filter_map(|way| Some((*way, place(raw, way)?))).collect();
    if let [_, (other, span), ..] = given.as_slice() {
        let message = format!("`{other}` cannot be combined with `{}`", given[0].0);
        let wrong = Diagnostic::new(span.clone(), message);
        raw.parser.add(wrong.with_label("hosts are reached in one way"));
        return;
    }
    let reach = table.and_then(|table| table.text("reach"));
    if let (Some(entry), Some(text)) = (raw.entry("reach"), reach) {
        check_command(entry, text, table);
    } else if reach.is_none() && is_copied(table) && !given.iter().any(|(way, _)| *way != "reach") {
        refuse_copy(raw, "the agents of this machine need none");
    }
    for (way, fields, needed) in [("slurm", SLURM, None), ("kubernetes", KUBERNETES, Some("image"))]
    {
        check_request((raw, table), (way, fields));
        let is_missing = |name: &&str| raw.entry(&format!("{way}.{name}")).is_none();
        if let (Some(span), Some(name)) = (place(raw, way), needed.filter(is_missing)) {
            raw.parser.add_missing(
                Diagnostic::new(span, format!("`{way}` needs `{name}`"))
                    .with_label(format!("no `{name}`")),
            );
        }
    }
}

fn place(raw: &RawTable<'_>, way: &str) -> Option<Range<usize>> {
    let own = raw.entry(way).or_else(|| raw.empty_map(way)).map(|entry| entry.key_span.clone());
    own.or_else(|| raw.named(way).map(|(_, entry)| entry.key_span.clone()).min_by_key(|s| s.start))
}

fn is_copied(table: Option<&Table>) -> bool {
    table.is_some_and(|table| table.is_on("copy"))
}

fn refuse_copy(raw: &RawTable<'_>, why: &str) {
    let Some(entry) = raw.entry("copy") else { return };
    let wrong = at_value(entry, "`copy` has no use here");
    raw.parser.add(wrong.with_label(why.to_owned()));
}

fn check_command(entry: &Entry<'_>, text: &str, table: Option<&Table>) {
    let refuse = |message: &str, label: String| {
        at_value(entry, message).with_label(label).add_to(entry.parser);
    };
    match words(text) {
        Err(why) => refuse("`reach` is not a command", why),
        Ok(words) if is_copied(table) => {
            let is_agent = words.len() > 2 && words.last().is_some_and(|word| word == "agent");
            if text == LOCAL || !is_agent {
                refuse(
                    "with `copy`, `reach` must end with `dyno agent`",
                    "what is before these words starts other commands there as well".to_owned(),
                );
            }
        }
        Ok(_) => {}
    }
}

fn check_request((raw, table): (&RawTable<'_>, Option<&Table>), (way, fields): (&str, Fields)) {
    for (name, entry) in raw.named(way) {
        let is_it = |(names, _): &&(&str, Check)| names.split(' ').any(|field| field == name);
        let Some((_, (is_right, expected))) = fields.iter().find(is_it) else {
            let known = fields.iter().flat_map(|(names, _)| names.split(' '));
            raw.parser.add(unknown_key(entry, &format!("`{way}`"), known));
            continue;
        };
        let value = table.and_then(|table| table.fields.get(&format!("{way}.{name}")));
        let Some(value) = value else { continue };
        if !is_right(value) {
            let message = format!("`{name}` must be {expected}");
            at_value(entry, message).with_label("not accepted").add_to(raw.parser);
        }
    }
}

fn is_plain(text: &str) -> bool {
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    !text.is_empty() && text.len() <= 200 && !text.contains(is_odd)
}

fn text_of(value: &FieldValue) -> String {
    match value {
        FieldValue::Setting(SettingValue::Text(text)) => text.clone(),
        FieldValue::Setting(SettingValue::Integer(number)) => number.to_string(),
        FieldValue::Setting(SettingValue::Real(number)) => number.to_string(),
        FieldValue::Setting(SettingValue::Switch(is_on)) => is_on.to_string(),
        FieldValue::Setting(SettingValue::Bytes(bytes)) => bytes.0.to_string(),
        _ => String::new(),
    }
}

fn count_of(value: &FieldValue) -> Option<usize> {
    let FieldValue::Setting(SettingValue::Integer(number)) = value else { return None };
    usize::try_from(*number).ok()
}

fn time_of(value: &FieldValue) -> Option<Nanoseconds> {
    parse_duration(&text_of(value)).ok().filter(|time| *time >= Nanoseconds::SECOND)
}

fn user_of(value: &FieldValue) -> Option<u32> {
    let FieldValue::Setting(SettingValue::Integer(id)) = value else { return None };
    u32::try_from(*id).ok().filter(|id| (1..=0x7fff_ffff).contains(id))
}

fn labels_of(text: &str) -> Option<BTreeMap<String, String>> {
    let labels = text.split(',').map(|label| {
        let (name, value) = label.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        kubernetes::is_label(name, value).then(|| (name.to_owned(), value.to_owned()))
    });
    labels.collect()
}

/// How many hosts a request asks for; none if nothing is requested.
pub(super) fn requested(table: &Table) -> Option<usize> {
    let of = |way: &str, name: &str| -> Option<usize> {
        let count = table.fields.get(&format!("{way}.{name}")).and_then(count_of);
        table.named(way).next().map(|_| count.unwrap_or(1))
    };
    of("slurm", NODES).or_else(|| of("kubernetes", REPLICAS))
}

pub(super) fn has_count(table: &Table) -> bool {
    [("slurm", NODES), ("kubernetes", REPLICAS)]
        .iter()
        .any(|(way, name)| table.fields.contains_key(&format!("{way}.{name}")))
}

pub(super) fn read(table: &Table) -> Option<Reach> {
    let time = |way: &str, usual| table.fields.get(way).and_then(time_of).unwrap_or(usual);
    if table.named("slurm").next().is_some() {
        let is_option = |name: &&str| ![NODES, "time", "wait"].contains(name);
        let options = table.named("slurm").filter(|(name, _)| is_option(name));
        return Some(Reach::Slurm(SlurmRequest {
            options: options.map(|(name, value)| (name.to_owned(), text_of(value))).collect(),
            time: time("slurm.time", TIME_USUAL),
            wait: time("slurm.wait", WAIT_USUAL),
        }));
    }
    if table.named("kubernetes").next().is_some() {
        let value = |name: &str| table.fields.get(&format!("kubernetes.{name}"));
        let text = |name: &str| value(name).map(text_of);
        let labels = |name: &str| text(name).and_then(|text| labels_of(&text)).unwrap_or_default();
        return Some(Reach::Kubernetes(KubernetesRequest {
            image: text("image")?,
            namespace: text("namespace"),
            context: text("context"),
            node_selector: labels("node_selector"),
            avoid: labels("avoid"),
            cpu: text("cpu"),
            memory: text("memory"),
            user: value("user").and_then(user_of),
            time: time("kubernetes.time", TIME_USUAL),
            wait: time("kubernetes.wait", WAIT_USUAL),
        }));
    }
    match table.text("reach") {
        None | Some(LOCAL) => Some(Reach::Local),
        Some(command) => words(command).ok().map(Reach::Command),
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{study, vocabulary};
    use crate::{HostPool, Lost, Reach};

    fn text(host: &str) -> String {
        format!(
            "title = 'x'\n[database.a]\nurl = 'mysql://me@db/x'\n[workload.oltp_read_only]\n\
             [host.load]\n{host}\n[design]\nclients = 4\ngenerators = 'load'\n"
        )
    }

    fn pool(host: &str) -> HostPool {
        study(&text(host)).design.generators.expect("there are hosts")
    }

    #[test]
    fn requests_are_read() {
        let slurm = pool("slurm = { partition = 'bench', nodes = 3, time = '2h' }");
        assert_eq!(slurm.names, ["load-1", "load-2", "load-3"]);
        assert!(!slurm.is_local() && !slurm.copy && slurm.lost == Lost::Stop);
        assert_eq!(slurm.reach_in_words(), "slurm partition=bench");
        let Reach::Slurm(request) = slurm.reach else { panic!("{slurm:?}") };
        assert_eq!(
            (request.time.to_string(), request.wait.to_string()),
            ("2 h".into(), "10 min".into())
        );
        let named =
            pool("names = ['a', 'b']\nslurm = { qos = 'x' }\ncopy = true\nlost = 'continue'");
        assert!(named.names == ["a", "b"] && named.copy && named.lost == Lost::Continue);
        let pods = pool(
            "kubernetes = { image = 'reg/dyno:1', replicas = 2, cpu = 2, memory = '4Gi', \
             node_selector = 'disk=ssd', avoid = 'app=sql,tier=1', namespace = 'perf', user = 1000 }",
        );
        assert_eq!(
            pods.reach_in_words(),
            "kubernetes image=reg/dyno:1 namespace=perf cpu=2 memory=4Gi user=1000 \
             node_selector=disk=ssd avoid=app=sql,tier=1"
        );
    }

    #[test]
    fn what_is_wrong_with_a_request_is_said() {
        let check = |host: &str, expected: &str| {
            let found = crate::parse(&text(host), &vocabulary()).expect_err(host);
            let all: Vec<&str> = found.iter().map(|one| one.message.as_str()).collect();
            assert!(all.iter().any(|one| one.contains(expected)), "{host}: {all:?}");
        };
        check("slurm = { partitoin = 'x' }", "unknown key `partitoin` in `slurm`");
        check("slurm = { nodes = 0 }", "`nodes` must be a number of hosts");
        check("slurm = { nodes = 'two' }", "`nodes` must be a number of hosts");
        check("slurm = { nodes = 2, time = 'soon' }", "`time` must be a duration");
        check("slurm = { partition = 'a b' }", "`partition` must be a string");
        check("slurm = {}", "`slurm` requests nothing");
        check("reach = 'ssh {name} dyno agent'\nslurm = { nodes = 2 }", "cannot be combined");
        check("names = ['a']\nslurm = { nodes = 2 }", "`names` holds 1 name for 2 hosts");
        check("kubernetes = { replicas = 2 }", "`kubernetes` needs `image`");
        check("kubernetes = { image = 'x', avoid = 'sql' }", "`avoid` must be labels");
        let pods = |field: &str, expected: &str| {
            check(&format!("kubernetes = {{ image = 'x', {field} }}"), expected);
        };
        pods("cpu = 'lots'", "`cpu` must be an amount");
        pods("memory = '4 apples'", "`memory` must be an amount");
        pods("avoid = 'a/b/c=1'", "`avoid` must be labels");
        pods("namespace = 'Perf'", "`namespace` must be the name of a namespace");
        pods("user = 0", "`user` must be the id of a user who is not root");
        pods("user = 'me'", "`user` must be the id of a user who is not root");
        check("kubernetes = { image = 'LocalHost/Bad:1' }", "`image` must be the name of an image");
        check("copy = true", "`copy` has no use here");
        check("reach = 'ssh {name} start'\ncopy = true", "must end with `dyno agent`");
        check("lost = 'ignore'", "unknown value `ignore`");
    }
}
