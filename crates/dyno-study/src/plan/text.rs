//! The plan as a canonical text: all that trials are run with, and nothing else.
//!
//! A run continues only with the plan that it was begun with, which a digest of this text decides. So the
//! text is made here line by line, from names that are written here or in the study, never from the names
//! of types or from what a library makes of them. It is TOML: `plan-format`, the seed and the order of
//! trials; `[conditions]` of all trials; a `[variant."NAME"]` for each variant, with its tables and their
//! fields; a `[step."NAME"]` for each step. Times are nanoseconds. Left out is what only changes what is
//! made of the trials or how many there are: title, threshold, prices, baseline, repetitions, budget. Keys
//! are in the order of this file, fields of tables and conditions in alphabetical order.
//!
//! Whoever changes a line for a plan that could be written before raises [`PLAN_FORMAT`].

use std::collections::BTreeMap;

use dyno_model::{Load, Role};
use dyno_units::{SettingValue, redact_command, redact_secrets, redact_setting};

use super::{Plan, PlannedStep};
use crate::keys::Key;
use crate::parse::kind::KINDS;
use crate::{
    Design, FieldValue, HostPool, LoadLevel, Order, ProbeSource, Sought, Study, Table, UserProbe,
    Variant,
};

pub const PLAN_FORMAT: u32 = 1;

pub fn canonical_text(plan: &Plan, study: &Study) -> String {
    let mut text = Text(format!("plan-format = {PLAN_FORMAT}\n"));
    text.line("seed", plan.seed.0);
    text.line("order", quoted(order_word(study.design.order)));
    text.heading("conditions", None);
    for (key, value) in conditions(plan, study) {
        text.line(&quoted(&key), value);
    }
    for variant in &plan.variants {
        text.heading("variant", Some(&variant.name));
        text.variant(variant);
    }
    for step in &plan.steps {
        text.heading("step", Some(&step.name));
        text.step(step);
    }
    text.0
}

pub fn order_word(order: Order) -> &'static str {
    match order {
        Order::Interleaved => "interleaved",
        Order::Sequential => "sequential",
    }
}

/// What all trials are run with, as values in TOML.
///
/// Every part of plan and design is named here or left out on purpose: what is new does not compile
/// until somebody has decided which.
fn conditions(plan: &Plan, study: &Study) -> BTreeMap<String, String> {
    let Plan {
        rest,
        run_off,
        drop_caches,
        // By themselves.
        seed: _,
        variants: _,
        steps: _,
        // They may change while a run goes on.
        title: _,
        trials: _,
        repetitions_min: _,
    } = plan;
    let Design {
        probes_off,
        statement_timeout,
        retries,
        workers,
        generators,
        server_hosts,
        trial_hosts,
        generator_cpus,
        server_cpus,
        // In the plan.
        factors: _,
        loads: _,
        baseline: _,
        repetitions: _,
        repetitions_min: _,
        order: _,
        seed: _,
        warm_up: _,
        duration: _,
        until_steady: _,
        rest: _,
        run_off: _,
        drop_caches: _,
        // They decide what is made of trials, how many are done now, and where; not what they are.
        questions: _,
        threshold: _,
        budget: _,
        void_repeats: _,
        requirements: _,
        reuse: _,
        data_folder: _,
    } = &study.design;
    let mut all = BTreeMap::new();
    let mut add = |key: &str, value: String| drop(all.insert(key.to_owned(), value));
    let numbers = |all: &[u32]| list(all.iter().map(u32::to_string));
    add("rest", rest.0.to_string());
    run_off.iter().for_each(|limit| add("run_off", limit.0.to_string()));
    if *drop_caches {
        add("drop_caches", "true".to_owned());
    }
    add("probes_off", list(probes_off.iter().map(|name| quoted(name))));
    add("statement_timeout", statement_timeout.0.to_string());
    add("retries", retries.to_string());
    workers.iter().for_each(|workers| add("workers", workers.to_string()));
    let pools = server_hosts.iter().chain(trial_hosts).map(|pool| (pool, true));
    for (pool, has_servers) in pools.chain(generators.iter().map(|pool| (pool, false))) {
        // Where the program comes from, and what becomes of a lost host change no trial; nor does for a
        // generator where servers are reached.
        let HostPool {
            name,
            reach,
            names,
            address,
            program: _,
            copy: _,
            lost: _,
            hidden_variables: _,
        } = pool;
        let reach = redact_command(&reach.words());
        let key = if has_servers { format!("host.{name}") } else { "generators".to_owned() };
        add(&key, list(names.iter().map(|name| quoted(name))));
        add(&format!("{key}.reach"), list(reach.iter().map(|word| quoted(word))));
        if let Some(address) = address.as_ref().filter(|_| has_servers) {
            add(&format!("{key}.address"), quoted(address));
        }
    }
    add("generator_cpus", numbers(generator_cpus));
    add("server_cpus", numbers(server_cpus));
    study.probes.iter().for_each(|probe| add_probe(probe, &mut add));
    all
}

fn add_probe(probe: &UserProbe, add: &mut impl FnMut(&str, String)) {
    let UserProbe { name, source, every, databases, hidden_variables: _ } = probe;
    let (kind, source) = match source {
        ProbeSource::Command(words) => {
            ("command", list(redact_command(words).iter().map(|word| quoted(word))))
        }
        ProbeSource::Sql(sql) => ("sql", quoted(&redact_secrets(sql))),
    };
    add(&format!("probe.{name}.{kind}"), source);
    add(&format!("probe.{name}.every"), every.0.to_string());
    add(&format!("probe.{name}.databases"), list(databases.iter().map(|name| quoted(name))));
}

struct Text(String);

impl Text {
    fn line(&mut self, key: &str, value: impl std::fmt::Display) {
        self.0 += &format!("{key} = {value}\n");
    }

    fn heading(&mut self, kind: &str, name: Option<&str>) {
        let name = name.map(|name| format!(".{}", quoted(name))).unwrap_or_default();
        self.0 += &format!("\n[{kind}{name}]\n");
    }

    fn variant(&mut self, variant: &Variant) {
        let Variant {
            tables,
            // Names and comparisons of what the tables hold.
            name: _,
            levels: _,
            baseline: _,
            database: _,
            other_database: _,
            workload: _,
        } = variant;
        for table in tables {
            self.line(table.kind, quoted(&table.name));
            for (field, value) in measured_fields(table) {
                self.line(&quoted(&format!("{}.{field}", table.kind)), field_text(field, value));
            }
        }
    }

    fn step(&mut self, step: &PlannedStep) {
        // Whether there is a load follows from the tables of jobs.
        let PlannedStep { name: _, load, has_load: _, warm_up, duration, until_steady } = step;
        self.line("warm_up", warm_up.0);
        self.line("duration", duration.0);
        until_steady.iter().for_each(|window| self.line("until_steady", window.0));
        match load {
            LoadLevel::Given(load) => self.load(load),
            LoadLevel::Search(search) => {
                self.line("find", quoted(&search.limit.to_string()));
                self.line("precision", search.precision);
                match search.sought {
                    Sought::Rate { arrivals, clients } => {
                        self.line("arrivals", quoted(arrivals.word()));
                        self.line("clients", clients);
                    }
                    Sought::Clients { most } => self.line("most_clients", most),
                }
            }
            LoadLevel::Own(own) => {
                self.line("asked_clients", own.request.clients);
                self.line("asked_duration", own.request.duration.0);
                self.line("connections", own.connections);
                self.line("limit", own.step.limit.0);
                self.line("settle", own.step.settle.0);
                self.roles(&own.step.roles);
            }
        }
    }

    fn load(&mut self, load: &Load) {
        let (rate, arrivals) = match load {
            Load::Closed { .. } => (None, None),
            Load::Open { rate, arrivals, .. } => (Some(rate.to_string()), Some(arrivals)),
            Load::Stepped { rate, arrivals, .. } => {
                (Some(quoted(&rate.to_string())), Some(arrivals))
            }
            Load::Roles(roles) => return self.roles(roles),
        };
        rate.iter().for_each(|rate| self.line("rate", rate));
        arrivals.iter().for_each(|arrivals| self.line("arrivals", quoted(arrivals.word())));
        self.line("clients", load.clients());
    }

    fn roles(&mut self, roles: &[Role]) {
        for Role { name, clients, pacing, quota, kinds } in roles {
            let mut parts = vec![
                format!("clients = {clients}"),
                format!("pacing = {}", quoted(pacing.word())),
                format!("kinds = {}", list(kinds.iter().map(|kind| quoted(kind)))),
            ];
            parts.extend(pacing.rate().map(|rate| format!("rate = {rate}")));
            parts.extend(quota.map(|quota| format!("quota = {quota}")));
            self.line(&format!("role.{}", quoted(name)), format!("{{ {} }}", parts.join(", ")));
        }
    }
}

/// The fields of a table that what is measured depends on, without those that have their defaults.
pub fn measured_fields(table: &Table) -> impl Iterator<Item = (&String, &FieldValue)> {
    let kind = KINDS.iter().find(|kind| kind.name == table.kind);
    let keys: &[Key] = kind.map_or(&[], |kind| kind.keys);
    table.fields.iter().filter(move |(field, value)| {
        let key = keys.iter().find(|key| key.name == *field);
        let is_default = |default: &str| field_text(field, value) == default;
        !key.is_some_and(|key| key.is_afterwards || key.default.is_some_and(is_default))
    })
}

/// A value without secrets: even a digest of a weak password could be guessed.
fn field_text(field: &str, value: &FieldValue) -> String {
    match value {
        FieldValue::Duration(duration) => duration.0.to_string(),
        FieldValue::Size(bytes) => bytes.0.to_string(),
        FieldValue::Switch(_)
        | FieldValue::Number(_)
        | FieldValue::Setting(
            SettingValue::Switch(_) | SettingValue::Integer(_) | SettingValue::Real(_),
        ) => value.to_string(),
        _ => quoted(&redact_setting(field, &value.to_string())),
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<String>>().join(", "))
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out += &format!("\\u{:04x}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use dyno_units::Seed;
    use expect_test::expect;

    use super::*;
    use crate::fixture::{FULL_STUDY, study};

    fn text_of(source: &str) -> String {
        let study = study(source);
        canonical_text(&crate::plan(&study, Seed(1)), &study)
    }

    /// A run that was begun before this text changed could not be continued: raise the format.
    #[test]
    fn the_text_of_a_plan_does_not_change() {
        let full = FULL_STUDY
            .replace("\ndatabase = [\"a\", \"b\"]", "\ndatabase = [\"a\"]")
            .replace("[200, 2000]", "[200]")
            .replace("[10, 1000]", "[1000]")
            .replace("[100, \"2k\"]", "[\"2k\"]");
        expect![[r#"
            plan-format = 1
            seed = 42
            order = "sequential"

            [conditions]
            "drop_caches" = true
            "generator_cpus" = [0]
            "probe.load.command" = ["cat", "/proc/loadavg"]
            "probe.load.databases" = []
            "probe.load.every" = 1000000000
            "probe.locks.databases" = ["a", "b"]
            "probe.locks.every" = 5000000000
            "probe.locks.sql" = "SELECT count(*) FROM locks"
            "probes_off" = []
            "rest" = 500000000
            "retries" = 5
            "run_off" = 1800000000000
            "server_cpus" = [1, 2]
            "statement_timeout" = 30000000000
            "workers" = 2

            [variant."a · innodb_io_capacity=200 · range_size=1000"]
            database = "a"
            "database.engine" = "InnoDB"
            "database.product" = "mariadb"
            "database.programs" = "/opt/mariadb/bin"
            "database.settings.innodb_buffer_pool_size" = "25%"
            "database.settings.innodb_flush_log_at_trx_commit" = 1
            "database.settings.innodb_io_capacity" = 200
            "database.settings.innodb_log_file_size" = "500MB"
            "database.version" = "10.11"
            workload = "short"
            "workload.distribution" = "zipfian"
            "workload.pareto_h" = "0.25"
            "workload.range_size" = "1000"
            "workload.skip_trx" = "on"
            "workload.table_size" = "250000"
            "workload.tables" = "4"
            "workload.workload" = "oltp_read_only"

            [step."2000/s, 8 clients"]
            warm_up = 1000000000
            duration = 10000000000
            rate = 2000
            arrivals = "constant"
            clients = 8

            [step."2000/s, 1000 clients"]
            warm_up = 1000000000
            duration = 10000000000
            rate = 2000
            arrivals = "constant"
            clients = 1000
        "#]]
        .assert_eq(&text_of(&full));
        let source = "title = 'x'\n[database.a]\nurl = 'mysql://me:secret@h/d'\n[workload.staged]\n\
            rows = 50\n[design]\nclients = 2\nprobes_off = ['debt']\n";
        expect![[r#"
            plan-format = 1
            seed = 1
            order = "interleaved"

            [conditions]
            "generator_cpus" = []
            "probes_off" = ["debt"]
            "rest" = 2000000000
            "retries" = 3
            "server_cpus" = []
            "statement_timeout" = 60000000000

            [variant."a"]
            database = "a"
            "database.url" = "mysql://me:***@h/d"
            workload = "staged"
            "workload.rows" = "50"
            "workload.workload" = "staged"

            [step."load"]
            warm_up = 0
            duration = 7200000000000
            asked_clients = 2
            asked_duration = 30000000000
            connections = 2
            limit = 7200000000000
            settle = 0
            role."inserter" = { clients = 2, pacing = "closed", kinds = [], quota = 25 }

            [step."read"]
            warm_up = 0
            duration = 30000000000
            asked_clients = 2
            asked_duration = 30000000000
            connections = 3
            limit = 30000000000
            settle = 600000000000
            role."query" = { clients = 2, pacing = "closed", kinds = [] }
            role."deleter" = { clients = 1, pacing = "constant", kinds = [], rate = 100 }
        "#]]
        .assert_eq(&text_of(source));
        let source = "title = 'x'\n[database.a]\nproduct = 'sqlite'\n[workload.tpcb]\n[design]\n\
            find_rate = 'p99 <= 20ms'\n";
        expect![[r#"
            plan-format = 1
            seed = 1
            order = "interleaved"

            [conditions]
            "generator_cpus" = []
            "probes_off" = []
            "rest" = 2000000000
            "retries" = 3
            "server_cpus" = []
            "statement_timeout" = 60000000000

            [variant."a"]
            database = "a"
            "database.product" = "sqlite"
            workload = "tpcb"
            "workload.workload" = "tpcb"

            [step."highest rate with p99 ≤ 20 ms"]
            warm_up = 5000000000
            duration = 30000000000
            find = "p99 ≤ 20 ms"
            precision = 0.05
            arrivals = "poisson"
            clients = 64
        "#]]
        .assert_eq(&text_of(source));
    }

    #[test]
    fn the_text_is_toml_with_every_variant_and_step() {
        let text = text_of(FULL_STUDY);
        let table: toml::Table = text.parse().expect("it is TOML");
        let plan = crate::plan(&study(FULL_STUDY), Seed(1));
        let named = |kind: &str| table[kind].as_table().expect("a table").len();
        assert_eq!(named("variant"), plan.variants.len());
        assert_eq!(named("step"), plan.steps.len());
        assert!(!text.contains("secret"), "{text}");
    }

    #[test]
    fn what_only_changes_what_is_made_of_trials_is_left_out() {
        let text = text_of(FULL_STUDY);
        let check = |from: &str, to: &str, is_same: bool| {
            assert!(FULL_STUDY.contains(from), "{from}");
            assert_eq!(text_of(&FULL_STUDY.replacen(from, to, 1)) == text, is_same, "{from}");
        };
        check("Which one is faster?", "Which?", true);
        check("threshold = \"2.5%\"", "threshold = \"5%\"", true);
        check("repetitions = 2", "repetitions = 7", true);
        check("0.1 USD", "0.2 USD", true);
        check("budget = \"4h\"", "budget = \"5h\"", true);
        check("reuse = false", "reuse = true", true);
        check("tables = 4", "tables = 4\ncreate_secondary = true", true);
        check("version = \"10.11\"", "version = \"10.6\"", false);
        check("table_size = \"250k\"", "table_size = \"251k\"", false);
        check("\"500MB\"", "\"512MiB\"", false);
        check("rest = \"500ms\"", "rest = \"501ms\"", false);
        check("every = \"5s\"", "every = \"6s\"", false);
        check("retries = 5", "retries = 6", false);
        check("seed = 42", "seed = 43", false);
        check("duration = \"10s\"", "duration = \"10001ms\"", false);
    }
}
