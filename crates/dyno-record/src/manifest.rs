//! `manifest.json`: what the run set out to do, written before its first trial.

use std::collections::BTreeMap;

use dyno_units::{LevelRecord, Price, Question, TrialPlan};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    /// The version that wrote the record.
    pub dyno: String,
    pub title: String,
    /// Digest of seed, variants, steps, design and conditions. Begins with its format's version.
    pub fingerprint: String,
    pub seed: u64,
    /// Milliseconds since 1970 UTC.
    pub created_unix_ms: u64,
    /// Most important first; inferred from what varies where the study does not say so. Empty in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
    /// Smallest effect that matters, as a fraction.
    pub threshold: f64,
    /// `interleaved` or `sequential`.
    pub order: String,
    pub variants: Vec<VariantRecord>,
    pub steps: Vec<StepRecord>,
    /// In order; with sequential stopping the most there can be.
    pub trials: Vec<TrialPlan>,
    /// When variants are repeated no more before all trials are done; `None` for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<StoppingRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<RequirementRecord>,
    /// When blocks are void and measured again; `None` for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voiding: Option<VoidingRecord>,
    pub environment: Environment,
    /// What the design gives to all trials, by its key: `server_cpus` … Empty in older records.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub design: BTreeMap<String, String>,
    /// What else must stay the same for a run to be continued, by its key in the study file:
    /// `rest`, `run_off`, `probes_off`; a digest for a probe of the study's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conditions: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<Extension>,
    /// Passwords in URLs are replaced by `***`.
    pub study_source: String,
}

/// Trials added to the plan when the study asked for more repetitions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extension {
    pub at_unix_ms: u64,
    pub trials_before: u32,
    pub trials_after: u32,
    /// Trials ended until then: results that could be looked at. `None` in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials_ended: Option<u32>,
}

impl Extension {
    /// All planned ones if the record does not say.
    pub fn ended(&self) -> u32 {
        self.trials_ended.unwrap_or(self.trials_before)
    }
}

/// For workloads that only observe.
pub fn sends_nothing(workload: &str) -> bool {
    // The second one was written by `dyno watch` before it was a study.
    matches!(workload, "none" | "none of Dyno's")
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VariantRecord {
    pub name: String,
    pub levels: Vec<LevelRecord>,
    /// The variant that it is compared with; `None` for a baseline.
    pub baseline: Option<usize>,
    pub database: String,
    /// The product, or the kind of server of a URL.
    pub product: String,
    /// As asked for, by name, with shares of memory resolved.
    pub settings: BTreeMap<String, String>,
    /// What else the study asks of its database, as written there: `version`, `programs`,
    /// `setting.NAME` of a share of the memory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asked: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<Price>,
    pub workload: String,
    /// Defaults included.
    pub options: BTreeMap<String, String>,
    /// The workload's own steps by name, if they differ from the first variant's, which are with
    /// the steps: a role's rate may be an option.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own_steps: BTreeMap<String, OwnStepRecord>,
}

/// A demand on every variant at every step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequirementRecord {
    /// `p99 ≤ 20 ms`, `throughput ≥ 1000/s`.
    pub text: String,
    /// `throughput`, a statistic of response times (`mean`, `p50` … `max`), or a metric's id.
    pub measure: String,
    /// Transactions per second, microseconds or bytes, whatever the metric's unit; in the metric's
    /// own unit if `is_in_own_unit`.
    pub bound: f64,
    /// Whether the bound was written as a number without a unit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_in_own_unit: bool,
    /// Whether the bound is a minimum. `None` in older records: then it follows from the measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_least: Option<bool>,
}

/// How much worse than at the variant's quietest trial a value may be, before its block is void.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VoidingRecord {
    /// Share of all CPUs that the hypervisor gave to others, as a fraction.
    pub steal: f64,
    /// Share of all CPUs that other processes used, as a fraction.
    pub others: f64,
    /// How much longer the canary took, as a fraction.
    pub canary: f64,
    /// Blocks to measure again at most.
    pub repeats_max: u32,
}

/// When a variant gets no more repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoppingRecord {
    /// Of every variant before the first look.
    pub repetitions_min: u32,
    /// Settled or not.
    pub repetitions_max: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// `8 clients`, `500/s`.
    pub name: String,
    /// The most transactions in flight.
    pub clients: u64,
    /// Transactions per second, the mean if it changes; `None` under closed load.
    pub rate: Option<f64>,
    /// A changing rate, as a study says it: `500/s for 10s, 2000/s for 5s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stepped: Option<String>,
    /// `closed`, `constant` or `poisson`.
    pub arrivals: String,
    pub warm_up_s: f64,
    /// Measured time; the longest if the step ends when it is steady.
    pub duration_s: f64,
    /// How long throughput has to be steady before the step ends; `None` if it ends otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_steady_s: Option<f64>,
    /// For a search: `clients` is the most, `rate` is `None`, and the times are a load probe's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchRecord>,
    /// For a step that the workload defines. Then `clients` is the sum over its roles, `rate` is
    /// `None`, `arrivals` is `own`, and `duration_s` the longest time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnStepRecord>,
}

impl StepRecord {
    /// What a variant's workload says of the step; `None` if it does not define the step.
    pub fn own_of<'a>(&'a self, variant: &'a VariantRecord) -> Option<&'a OwnStepRecord> {
        let first = self.own.as_ref()?;
        Some(variant.own_steps.get(&self.name).unwrap_or(first))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnStepRecord {
    pub roles: Vec<RoleRecord>,
    pub ends_by_quota: bool,
    /// Longest wait for the engine's deferred work before the step.
    pub settle_s: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleRecord {
    /// `inserter`, `deleter`, `query` …
    pub name: String,
    pub clients: u64,
    /// `closed`, `constant`, `poisson` or `bursts`.
    pub pacing: String,
    /// Transactions per second and client; `None` if closed.
    pub rate: Option<f64>,
    /// Commits of each client; `None` if it goes on until the step ends.
    pub quota: Option<u64>,
    /// Kinds of its transactions, by name; empty if the workload does not say.
    #[serde(default)]
    pub kinds: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchRecord {
    /// `rate` or `clients`.
    pub sought: String,
    /// `mean`, `p50`, `p90`, `p95`, `p99`, `p99.9`, `max`.
    pub statistic: String,
    pub bound_us: f64,
    /// `p99 ≤ 20 ms`.
    pub limit: String,
    /// Largest gap between the level that holds and the one that breaks, as a fraction.
    pub precision: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    pub machine: String,
    /// CPUs that may be used.
    pub cpus: u32,
    pub memory_bytes: u64,
    /// All else: `cpu.model`, `kernel`, `clock_source`, `governor`, `filesystem` …
    pub facts: BTreeMap<String, String>,
}

/// Facts about the storage of data, the most specific first.
const STORAGE: [&str; 3] = ["filesystem", "filesystem.device", "filesystem.options"];

impl Environment {
    /// CPU seconds per second; `None` without a limit.
    pub fn cpu_limit(&self) -> Option<f64> {
        self.facts.get("cgroup.cpus")?.parse().ok()
    }

    /// `None` without a limit.
    pub fn memory_limit_bytes(&self) -> Option<u64> {
        self.facts.get("cgroup.memory_bytes")?.parse().ok()
    }

    /// The machine's, or less if control groups allow less.
    pub fn usable_memory_bytes(&self) -> u64 {
        self.memory_limit_bytes().map_or(self.memory_bytes, |limit| limit.min(self.memory_bytes))
    }

    /// The first fact in which storage differs: ours and theirs. `None` if either does not know it.
    pub fn storage_difference(&self, other: &Environment) -> Option<(String, String)> {
        let fact = |environment: &Environment, name: &str| {
            environment.facts.get(name).map(|value| telling_options(value))
        };
        let both = |name: &&str| Some((fact(self, name)?, fact(other, name)?));
        STORAGE.iter().filter_map(both).find(|(ours, theirs)| ours != theirs)
    }
}

/// Without options that name folders, as an overlay has others in each container, and without
/// limits of size: an enlarged tmpfs is the same storage.
fn telling_options(options: &str) -> String {
    const LIMITS: [&str; 3] = ["size=", "nr_blocks=", "nr_inodes="];
    let is_known = |option: &&str| {
        !option.contains("dir=") && !LIMITS.iter().any(|limit| option.starts_with(limit))
    };
    options.split(',').filter(is_known).collect::<Vec<&str>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_memory_may_be_used_where_a_control_group_limits_it() {
        let check = |facts: &[(&str, &str)], expected: (Option<f64>, u64)| {
            let facts = facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let environment = Environment {
                memory_bytes: 8 << 30,
                facts: facts.collect(),
                ..Environment::default()
            };
            assert_eq!((environment.cpu_limit(), environment.usable_memory_bytes()), expected);
        };
        check(&[], (None, 8 << 30));
        let pod = [("cgroup.cpus", "0.2"), ("cgroup.memory_bytes", "536870912")];
        check(&pod, (Some(0.2), 512 << 20));
        check(&[("cgroup.memory_bytes", "17179869184")], (None, 8 << 30));
        check(&[("cgroup.cpus", "many"), ("cgroup.memory_bytes", "-1")], (None, 8 << 30));
    }

    #[test]
    fn storage_is_told_apart_by_its_most_telling_fact() {
        let check = |ours: [&str; 3], theirs: [&str; 3], expected: Option<(&str, &str)>| {
            let environment = |values: [&str; 3]| {
                let facts = STORAGE.iter().zip(values).filter(|(_, value)| !value.is_empty());
                let facts = facts.map(|(name, value)| ((*name).to_owned(), value.to_owned()));
                Environment { facts: facts.collect(), ..Environment::default() }
            };
            let found = environment(ours).storage_difference(&environment(theirs));
            let expected = expected.map(|(a, b)| (a.to_owned(), b.to_owned()));
            assert_eq!(found, expected, "{ours:?} {theirs:?}");
        };
        let disk = ["ext4", "/dev/vda", "rw"];
        check(disk, disk, None);
        check(disk, ["tmpfs", "tmpfs", "rw,size=1g"], Some(("ext4", "tmpfs")));
        check(disk, ["ext4", "/dev/vdb", "rw"], Some(("/dev/vda", "/dev/vdb")));
        check(disk, ["ext4", "/dev/vda", "rw,noatime"], Some(("rw", "rw,noatime")));
        check(disk, ["", "", ""], None);
        let overlay = |folder| ["overlay", "overlay", folder];
        check(overlay("rw,lowerdir=/a"), overlay("rw,lowerdir=/b"), None);
        let tmpfs = |options| ["tmpfs", "tmpfs", options];
        check(tmpfs("rw,relatime,size=1500k,nr_inodes=9"), tmpfs("rw,relatime,size=2m"), None);
        check(tmpfs("rw,relatime,size=1500k"), tmpfs("rw,noatime,size=2m"), {
            Some(("rw,relatime", "rw,noatime"))
        });
    }

    #[test]
    fn a_variant_has_its_own_steps_where_they_differ_from_the_first_ones() {
        let step = r#"{"name":"l.i0","clients":1,"rate":null,"arrivals":"own","warm_up_s":0.0,"duration_s":2.0,"own":{"roles":[],"ends_by_quota":true,"settle_s":0.0}}"#;
        let step: StepRecord = serde_json::from_str(step).expect("it is a step");
        let old = r#"{"name":"a","levels":[],"baseline":null,"database":"a","product":"sqlite","settings":{},"workload":"w","options":{}}"#;
        let mut variant: VariantRecord = serde_json::from_str(old).expect("it is a variant");
        assert_eq!(serde_json::to_string(&variant).expect("it can be written"), old);
        assert_eq!(step.own_of(&variant), step.own.as_ref());
        let other = OwnStepRecord { roles: Vec::new(), ends_by_quota: false, settle_s: 1.0 };
        variant.own_steps.insert("l.i0".to_owned(), other.clone());
        assert_eq!(step.own_of(&variant), Some(&other));
        assert_eq!(StepRecord { own: None, ..step }.own_of(&variant), None);
    }

    #[test]
    fn a_step_of_before_there_were_searches_is_read_and_written_as_it_was() {
        let text = r#"{"name":"1 client","clients":1,"rate":null,"arrivals":"closed","warm_up_s":1.0,"duration_s":2.0}"#;
        let step: StepRecord = serde_json::from_str(text).expect("it is a step");
        assert_eq!(step.search, None);
        assert_eq!(serde_json::to_string(&step).expect("it can be written"), text);
    }
}
