//! autobench.conf, with which RonDB's scripts (`bench_run.sh` of dbt2-0.37.50) run sysbench.
//!
//! Meanings and defaults follow those scripts: sysbench runs once for each number of threads,
//! `NUM_TEST_RUNS` times, without a warm-up; instance i of `SYSBENCH_INSTANCES` loads server i (modulo
//! their number) in the catalog `SYSBENCH_DB` with `_i` appended.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;

use dyno_units::{clean_text, redact_secrets};
use toml::Value;

use super::reasons;
use super::shell::{self, Line};
use crate::http::encode;
use crate::written::Written;

/// Options of range scans and point selects: name in a study, name in the file, the scripts' default.
const MIX: [(&str, &str, u64); 6] = [
    ("point_selects", "SB_POINT_SELECTS", 10),
    ("range_size", "SB_RANGE_SIZE", 100),
    ("simple_ranges", "SB_SIMPLE_RANGES", 1),
    ("sum_ranges", "SB_SUM_RANGES", 1),
    ("order_ranges", "SB_ORDER_RANGES", 1),
    ("distinct_ranges", "SB_DISTINCT_RANGES", 1),
];

const NO_RANGES: [(&str, u64); 4] =
    [("simple_ranges", 0), ("sum_ranges", 0), ("order_ranges", 0), ("distinct_ranges", 0)];

/// Limit of instances, servers and thread counts.
const MANY: u64 = 1000;

struct Conf {
    lines: Vec<Line>,
    /// Names with a counterpart in the study.
    translated: BTreeSet<&'static str>,
    /// Reasons for lines left out, where there is more to say than [`reasons::of`].
    left: Vec<(&'static str, String)>,
    remarks: Vec<String>,
}

struct Servers {
    /// Host and port.
    loaded: Vec<(String, u64)>,
    /// Servers of one database with the same data.
    are_one: bool,
    /// On each server or, for one database, on all together.
    instances: u64,
}

#[derive(Debug)]
pub(super) struct Converted {
    /// Ends with comments on what could not be translated.
    pub(super) study: String,
    /// Lines with a counterpart in the study.
    pub(super) n_translated: usize,
    /// Lines with a comment instead.
    pub(super) n_left: usize,
}

/// Fails if the file is wrong or not about sysbench.
pub(super) fn convert(text: &str) -> Result<Converted, String> {
    let lines = shell::lines(text)?;
    let mut conf =
        Conf { lines, translated: BTreeSet::new(), left: Vec::new(), remarks: Vec::new() };
    if conf.lines.iter().all(|line| line.name.is_empty()) {
        return Err("no line sets a value: is it an autobench.conf?".to_owned());
    }
    if let Some(benchmark) = conf.text("BENCHMARK_TO_RUN").filter(|name| name != "sysbench") {
        return Err(format!(
            "it runs {}; only runs of sysbench can be converted",
            clean_text(&benchmark)
        ));
    }
    let servers = conf.servers()?;
    let title = conf.text("TEST_DESCRIPTION").unwrap_or_else(|| {
        "What throughput do the SQL servers reach at each number of threads?".to_owned()
    });
    let mut study = Written::new(&title);
    conf.write_databases(&mut study, &servers);
    conf.write_workload(&mut study)?;
    conf.write_generators(&mut study, &servers)?;
    conf.write_design(&mut study, &servers)?;
    Ok(conf.finish(study.text()))
}

impl Conf {
    /// The last assignment counts.
    fn line(&self, name: &str) -> Option<(usize, &str)> {
        let mut lines = self.lines.iter().rev();
        let line = lines.find(|line| line.name == name)?;
        let value = line.value.as_deref().ok()?.trim();
        (!value.is_empty()).then_some((line.number, value))
    }

    /// Takes a value that the study will express.
    fn text(&mut self, name: &'static str) -> Option<String> {
        let value = self.line(name)?.1.to_owned();
        self.translated.insert(name);
        Some(value)
    }

    fn count(&mut self, name: &'static str, default: u64) -> Result<u64, String> {
        let Some((number, value)) = self.line(name) else { return Ok(default) };
        let count = value.parse().map_err(|_| {
            format!("line {number}: {name}: expected a whole number, found `{}`", clean_text(value))
        })?;
        self.translated.insert(name);
        Ok(count)
    }

    /// Unset is no.
    fn is_yes(&mut self, name: &'static str) -> bool {
        self.text(name).is_some_and(|value| value.eq_ignore_ascii_case("yes"))
    }

    /// Split at semicolons.
    fn list(&mut self, name: &'static str, default: &str) -> Vec<String> {
        let text = self.text(name).unwrap_or_else(|| default.to_owned());
        let items = text.split([';', ' ']).filter(|item| !item.is_empty());
        items.map(str::to_owned).collect()
    }

    fn leave(&mut self, name: &'static str, why: impl Into<String>) {
        self.translated.remove(name);
        self.left.push((name, why.into()));
    }

    fn servers(&mut self) -> Result<Servers, String> {
        let hosts = self.list("SERVER_HOST", "127.0.0.1");
        let ports = self.list("SERVER_PORT", "3306");
        let n_servers = match (hosts.len(), ports.len()) {
            (0, _) | (_, 0) => return Err("SERVER_HOST or SERVER_PORT is empty".to_owned()),
            (hosts, ports) if hosts == ports || ports == 1 => hosts,
            (1, ports) => ports,
            (hosts, ports) => {
                return Err(format!(
                    "SERVER_HOST names {hosts} servers, and SERVER_PORT {ports} ports"
                ));
            }
        };
        let instances = self.count("SYSBENCH_INSTANCES", 1)?;
        if !(1..=MANY).contains(&instances) {
            return Err(format!("SYSBENCH_INSTANCES: expected 1 to {MANY}"));
        }
        let n_loaded = n_servers.min(instances as usize);
        let mut loaded = Vec::new();
        for idx in 0..n_loaded {
            let port = port_of("SERVER_PORT", &ports[idx.min(ports.len() - 1)])?;
            loaded.push((hosts[idx.min(hosts.len() - 1)].clone(), u64::from(port)));
        }
        if n_servers > n_loaded {
            self.remarks.push(format!(
                "Of {n_servers} servers, SYSBENCH_INSTANCES={instances} loads the first {n_loaded}; the others are \
                 left out."
            ));
        }
        let engine = self.line("ENGINE").map(|(_, engine)| engine.to_lowercase());
        let is_shared = engine.is_some_and(|name| name == "ndb" || name == "ndbcluster");
        if n_loaded > 1 && is_shared {
            self.remarks.push(format!(
                "The {instances} instances of sysbench, each of which has a database of its own in the scripts, are one \
                 load on one database here, with as many clients as they have threads in total; it is \
                 divided among the {n_loaded} servers, which have the same data."
            ));
            return Ok(Servers { loaded, are_one: true, instances });
        }
        if n_loaded > 1 {
            self.remarks.push(
                "The scripts load all servers at the same time and add up the results. Here each server is a \
                 database that is measured alone, one after the other."
                    .to_owned(),
            );
        }
        let per_server = instances.div_ceil(n_loaded as u64);
        if per_server > 1 {
            self.remarks.push(format!(
                "Up to {per_server} instances of sysbench load the same server, each in its own \
                 database. Here they are one load in one database, with as many clients as the \
                 instances have threads in total."
            ));
        }
        Ok(Servers { loaded, are_one: false, instances: per_server })
    }

    fn write_databases(&mut self, study: &mut Written, servers: &Servers) {
        let user = self.text("MYSQL_USER").unwrap_or_else(|| "mysql".to_owned());
        let password = self.text("MYSQL_PASSWORD").map_or("", |_| ":${MYSQL_PASSWORD}");
        if !password.is_empty() {
            self.remarks.push(
                "The password is not in this file: set the environment variable MYSQL_PASSWORD."
                    .to_owned(),
            );
        }
        let catalog = self.text("SYSBENCH_DB").unwrap_or_else(|| "sbtest".to_owned());
        let url = |(host, port): &(String, u64), idx: usize| {
            let is_ipv6 = host.parse::<Ipv6Addr>().is_ok();
            let host = if is_ipv6 { format!("[{host}]") } else { encode(host) };
            let (user, catalog) = (encode(&user), encode(&catalog));
            format!("mysql://{user}{password}@{host}:{port}/{catalog}_{idx}")
        };
        if servers.are_one {
            let mut urls = servers.loaded.iter().map(|server| url(server, 0));
            study.table(&["database", "cluster"]);
            study.fixed("url", urls.next().unwrap_or_default());
            study.fixed("more_urls", urls.collect::<Vec<String>>());
        } else {
            for (idx, server) in servers.loaded.iter().enumerate() {
                study.table(&["database", &format!("server{}", idx + 1)]);
                study.fixed("url", url(server, idx));
            }
        }
        if let Some((_, engine)) = self.line("ENGINE") {
            let setting = if engine.eq_ignore_ascii_case("ndb") { "ndbcluster" } else { engine };
            let why = format!(
                "tables get the server's default_storage_engine; if that is not {}, set it there",
                clean_text(setting)
            );
            self.leave("ENGINE", why);
        }
    }

    fn write_workload(&mut self, study: &mut Written) -> Result<(), String> {
        let test = self.text("SYSBENCH_TEST").unwrap_or_else(|| "oltp_rw".to_owned());
        let (workload, fixed): (&str, &[(&str, u64)]) = match test.as_str() {
            "oltp_rw" => ("oltp_read_write", &[]),
            "oltp_ro" | "oltp_ro_ps" => ("oltp_read_only", &[]),
            "oltp_rw_write_intensive" => ("oltp_read_write", &[("index_updates", 10)]),
            "oltp_rw_less_read" => ("oltp_read_write", &[("point_selects", 1), ("range_size", 5)]),
            "oltp_complex_write" => ("oltp_write_only", &[]),
            "oltp_nontrx" => (self.nontrx()?, &[]),
            other => {
                return Err(format!("SYSBENCH_TEST: there is no test `{}`", clean_text(other)));
            }
        };
        study.table(&["workload", "autobench"]);
        study.fixed("workload", workload);
        study.fixed("tables", whole(self.count("SB_NUM_TABLES", 1)?));
        study.fixed("table_size", whole(self.count("SYSBENCH_ROWS", 1_000_000)?));
        study.fixed("auto_inc", self.is_yes("SB_USE_AUTO_INC"));
        if self.is_yes("SB_USE_SECONDARY_INDEX") {
            study.fixed("secondary", true);
        }
        if let Some(kind) = self.text("SB_DIST_TYPE") {
            match ["uniform", "gaussian", "special", "pareto"].contains(&kind.as_str()) {
                true => study.fixed("distribution", kind),
                false => self.leave("SB_DIST_TYPE", "Dyno has no such distribution"),
            }
        }
        match test.as_str() {
            "oltp_rw" | "oltp_ro" => self.write_mix(study)?,
            _ => self.leave_mix(),
        }
        for (name, value) in fixed {
            study.fixed(name, whole(*value));
        }
        if test == "oltp_ro_ps" {
            study.fixed("point_selects", 1);
            NO_RANGES.iter().for_each(|(name, value)| study.fixed(name, whole(*value)));
        }
        if self.skips_transactions(&test) {
            study.fixed("skip_trx", true);
        }
        if self.is_yes("SB_USE_MYSQL_HANDLER") {
            self.leave("SB_USE_MYSQL_HANDLER", "point selects are SELECTs, not HANDLER");
        }
        Ok(())
    }

    /// `oltp_nontrx` runs statements of a single kind.
    fn nontrx(&mut self) -> Result<&'static str, String> {
        let mode = self.text("SB_NONTRX_MODE").unwrap_or_else(|| "insert".to_owned());
        Ok(match mode.as_str() {
            "select" => "oltp_point_select",
            "update_key" => "oltp_update_index",
            "update_nokey" => "oltp_update_non_index",
            "insert" => "oltp_insert",
            "delete" => "oltp_delete",
            other => {
                return Err(format!("SB_NONTRX_MODE: there is no mode `{}`", clean_text(other)));
            }
        })
    }

    fn write_mix(&mut self, study: &mut Written) -> Result<(), String> {
        for (option, name, default) in MIX {
            study.fixed(option, whole(self.count(name, default)?));
        }
        // 0 means one key in a point select, by `=`.
        let keys = self.count("SB_USE_IN_STATEMENT", 0)?.max(1);
        if keys > 1 {
            study.fixed("point_select_keys", whole(keys));
        }
        if self.is_yes("SB_USE_FILTER") {
            study.fixed("row_filter", true);
        }
        Ok(())
    }

    fn leave_mix(&mut self) {
        let names = MIX.map(|(_, name, _)| name);
        for name in names.into_iter().chain(["SB_USE_IN_STATEMENT", "SB_USE_FILTER"]) {
            self.leave(name, "it has an effect only with SYSBENCH_TEST=oltp_rw or oltp_ro");
        }
    }

    fn skips_transactions(&mut self, test: &str) -> bool {
        if test != "oltp_ro" {
            self.leave("SB_USE_TRX", "it has an effect only with SYSBENCH_TEST=oltp_ro");
            self.leave("TRX_ENGINE", "it follows from ENGINE");
            return test == "oltp_ro_ps";
        }
        self.leave("TRX_ENGINE", "it follows from ENGINE");
        match self.text("SB_USE_TRX") {
            Some(value) => !value.eq_ignore_ascii_case("yes"),
            None => {
                let engine = self.line("ENGINE").map(|(_, engine)| engine.to_lowercase());
                engine.is_some_and(|name| ["myisam", "heap", "memory"].contains(&name.as_str()))
            }
        }
    }

    fn write_generators(&mut self, study: &mut Written, servers: &Servers) -> Result<(), String> {
        let mut names = self.list("BENCHMARK_SERVERS", "");
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        if names.is_empty() {
            return Ok(());
        }
        if let Some(odd) = names.iter().find(|name| !is_word(name)) {
            return Err(format!(
                "BENCHMARK_SERVERS: expected names of hosts, found `{}`",
                clean_text(odd)
            ));
        }
        if servers.are_one && names.len() < servers.loaded.len() {
            self.leave(
                "BENCHMARK_SERVERS",
                format!(
                    "a load generator of Dyno loads one server, so {} are needed",
                    servers.loaded.len()
                ),
            );
            return Ok(());
        }
        // Each instance of sysbench needs its own host.
        let n_all = names.len();
        names.truncate(servers.instances as usize);
        let (mut port, mut user) = (String::new(), String::new());
        if let Some(text) = self.text("SSH_PORT") {
            port = format!(" -p {}", port_of("SSH_PORT", &text)?);
        }
        if let Some(name) = self.text("SSH_USER") {
            if !is_word(&name) {
                return Err(format!("SSH_USER: expected a user, found `{}`", clean_text(&name)));
            }
            user = format!(" -l {name}");
        }
        self.remarks.push(match n_all - names.len() {
            0 => "The load generators produce one load together, in equal shares; each needs this \
                  version of Dyno."
                .to_owned(),
            n if servers.are_one => format!(
                "As many hosts generate load as there were sysbench instances: the other {n} of \
                 BENCHMARK_SERVERS are left out. The hosts need this version of Dyno."
            ),
            n => format!(
                "Each server is loaded by as many hosts as there were sysbench instances for it: \
                 the other {n} of BENCHMARK_SERVERS are left out. The hosts need this version of \
                 Dyno."
            ),
        });
        study.table(&["host", "generators"]);
        study.fixed("reach", format!("ssh -o BatchMode=yes{port}{user} {{name}} dyno agent"));
        study.fixed("names", names);
        Ok(())
    }

    fn write_design(&mut self, study: &mut Written, servers: &Servers) -> Result<(), String> {
        let mut clients = Vec::new();
        for item in self.list("THREAD_COUNTS_TO_RUN", "1") {
            let threads = item.parse::<u64>().ok().filter(|threads| *threads > 0);
            let threads = threads.ok_or_else(|| {
                format!(
                    "THREAD_COUNTS_TO_RUN: expected whole numbers from 1, found `{}`",
                    clean_text(&item)
                )
            })?;
            let all = whole(threads.saturating_mul(servers.instances));
            if clients.contains(&all) {
                self.remarks.push(format!("{threads} threads are given twice, but measured once."));
            } else {
                clients.push(all);
            }
        }
        if clients.is_empty() {
            return Err("THREAD_COUNTS_TO_RUN lists no number".to_owned());
        }
        study.table(&["design"]);
        study.fixed("repetitions", whole(self.count("NUM_TEST_RUNS", 1)?));
        if self.line("SB_MAX_REQUESTS").is_some() && self.count("SB_MAX_REQUESTS", 0)? > 0 {
            self.leave("SB_MAX_REQUESTS", "a measurement ends by time: after MAX_TIME");
        }
        study.fixed("warm_up", "0s");
        study.fixed("duration", format!("{}s", self.count("MAX_TIME", 60)?));
        study.fixed("rest", format!("{}s", self.count("BETWEEN_RUNS", 1)?));
        if self.translated.contains("BENCHMARK_SERVERS") {
            study.fixed("generators", "generators");
        } else if let Some(cpus) = self.line("BENCHMARK_CPUS").and_then(|(_, text)| cpus(text)) {
            self.translated.insert("BENCHMARK_CPUS");
            study.fixed("generator_cpus", cpus);
        }
        let rate = self.count("SB_TX_RATE", 0)?;
        if rate > 0 {
            self.write_rate(study, rate.saturating_mul(servers.instances), &clients);
        } else if let [one] = &clients[..] {
            study.fixed("clients", one.clone());
        }
        let are_apart = servers.loaded.len() > 1 && !servers.are_one;
        let varies = (are_apart, rate == 0 && clients.len() > 1);
        if varies.0 || varies.1 {
            study.table(&["design", "vary"]);
        }
        if varies.0 {
            let names: Vec<String> =
                (1..=servers.loaded.len()).map(|nth| format!("server{nth}")).collect();
            study.fixed("database", names);
        }
        if varies.1 {
            study.fixed("clients", Value::Array(clients));
        }
        Ok(())
    }

    /// With a rate, clients only limit what is in flight: the largest number is enough.
    fn write_rate(&mut self, study: &mut Written, rate: u64, clients: &[Value]) {
        study.fixed("rate", whole(rate));
        let most = clients.iter().filter_map(Value::as_integer).max().unwrap_or(1);
        study.fixed("clients", most);
        if clients.len() > 1 {
            self.remarks.push(format!(
                "With SB_TX_RATE the rate is the load, and the number of threads only a limit: it is measured once, \
                 with at most {most} transactions in flight."
            ));
        }
    }

    fn finish(self, study: &str) -> Converted {
        let mut out = "# Converted from an autobench.conf of RonDB's scripts.\n".to_owned();
        out.extend(self.remarks.iter().map(|remark| format!("# {remark}\n")));
        out += &format!("\n{study}");
        let mut comments = Vec::new();
        for line in &self.lines {
            if let Some(why) = self.why_left(line) {
                let name = if line.name.is_empty() { "this line" } else { &line.name };
                let has_secret = line.name.contains("PASS") || line.name.contains("SECRET");
                let value = match &line.value {
                    Ok(value) if !has_secret && !line.name.is_empty() => format!("=\"{value}\""),
                    _ => String::new(),
                };
                let shown = clean_text(&redact_secrets(&format!("{name}{value}")));
                comments.push(format!("# line {}, {shown}: {why}\n", line.number));
            }
        }
        let (n_left, n_all) = (comments.len(), self.lines.len());
        if n_left > 0 {
            out += &format!("\n# Not translated:\n{}", comments.concat());
        }
        Converted { study: out, n_translated: n_all - n_left, n_left }
    }

    fn why_left(&self, line: &Line) -> Option<String> {
        let value = match &line.value {
            Err(why) => return Some((*why).to_owned()),
            Ok(value) => value,
        };
        let last = self.lines.iter().rev().find(|other| other.name == line.name)?;
        if last.number != line.number {
            return Some(format!("line {} sets it again", last.number));
        }
        if value.trim().is_empty() {
            return Some("it is empty, which has the same effect as leaving it out".to_owned());
        }
        if self.translated.contains(line.name.as_str()) {
            return None;
        }
        let more = self.left.iter().find(|(name, _)| *name == line.name);
        Some(more.map_or_else(|| reasons::of(&line.name).to_owned(), |(_, why)| why.clone()))
    }
}

/// The study's parser refuses larger numbers.
fn whole(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn port_of(name: &str, text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("{name}: expected a port, found `{}`", clean_text(text)))
}

/// Whether a text is one word of a command, and no option.
fn is_word(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
    !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain)
}

/// A list as in `taskset -c` and `numactl`: `0-3,8`.
fn cpus(text: &str) -> Option<Vec<i64>> {
    let mut all = Vec::new();
    for part in text.split([',', ';']) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        all.extend((first..=last).map(i64::from).filter(|cpu| *cpu < 4096));
    }
    let mut seen = BTreeSet::new();
    all.retain(|cpu| seen.insert(*cpu));
    (!all.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests;
