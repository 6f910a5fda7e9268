//! `manifest.json`: what the run is, written before its first trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a run set out to do and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    /// Version of Dyno that wrote it.
    pub dyno: String,
    pub title: String,
    /// A digest of what trials are run with: seed, variants, steps, design and conditions. It begins
    /// with the version of what goes into it.
    pub fingerprint: String,
    pub seed: u64,
    /// When the run began, milliseconds since 1970 UTC.
    pub created_unix_ms: u64,
    /// Smallest effect that matters, as a fraction.
    pub threshold: f64,
    /// `interleaved` or `sequential`.
    pub order: String,
    pub variants: Vec<VariantRecord>,
    pub steps: Vec<StepRecord>,
    /// All trials, in order; with sequential stopping the most there can be.
    pub trials: Vec<TrialPlan>,
    /// When variants are repeated no more before all trials are done, if the study wants that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<StoppingRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<RequirementRecord>,
    /// When blocks are void and measured again; none where they never are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voiding: Option<VoidingRecord>,
    pub environment: Environment,
    /// What the design gives to all trials alike and no step tells, by its key in the study file:
    /// `server_cpus`, `workers` … Empty in records that do not tell.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub design: BTreeMap<String, String>,
    /// What else all trials are run with, by its key in the study file, as far as it decides whether
    /// a run may be continued: `rest`, `run_off`, `probes_off`; of a probe of the study's own a digest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conditions: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<Extension>,
    /// The study file, with passwords in URLs replaced by `***`.
    pub study_source: String,
}

/// Trials that were added to the plan of a run: its study asked for more repetitions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extension {
    pub at_unix_ms: u64,
    pub trials_before: u32,
    pub trials_after: u32,
    /// Trials that had ended until then, well or not: results that could be looked at before more were
    /// asked for. None in records of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials_ended: Option<u32>,
}

impl Extension {
    /// Trials that had ended until then; where the record does not say, all that were planned.
    pub fn ended(&self) -> u32 {
        self.trials_ended.unwrap_or(self.trials_before)
    }
}

/// Whether nothing is sent under a workload of this name: what there was, was only observed.
pub fn sends_nothing(workload: &str) -> bool {
    // The second one is what `dyno watch` wrote before it was a study.
    matches!(workload, "none" | "none of Dyno's")
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantRecord {
    pub name: String,
    pub levels: Vec<LevelRecord>,
    /// Index of the variant it is compared with; none for a baseline.
    pub baseline: Option<usize>,
    /// Name of the database in the study.
    pub database: String,
    /// Product, or the URL's kind of server.
    pub product: String,
    /// Settings asked for, by name, as text, shares of memory resolved.
    pub settings: BTreeMap<String, String>,
    /// What else the study asks of its database, as it is written there: `version`, `programs`,
    /// `setting.NAME` of a setting that is a share of the memory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asked: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<Price>,
    pub workload: String,
    /// All its options, defaults included.
    pub options: BTreeMap<String, String>,
    /// What its workload says of steps of its own, by the step's name, where that is not what the
    /// first variant's says, which stands with the steps: a role's rate may be an option.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own_steps: BTreeMap<String, OwnStepRecord>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Price {
    pub amount: f64,
    /// Of what: `USD`, `EUR`.
    pub currency: String,
}

/// A demand of the study on every variant at every step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequirementRecord {
    /// What is demanded, in words: `p99 ≤ 20 ms`, `throughput ≥ 1000/s`.
    pub text: String,
    /// Of what: `throughput`, a statistic of response times (`mean`, `p50`, `p95`, `p99`, `p99.9`,
    /// `max`), or any metric by its id.
    pub measure: String,
    /// Transactions per second; times in microseconds, whatever the metric's unit; sizes in bytes; a
    /// number in the metric's own unit where `is_in_own_unit`.
    pub bound: f64,
    /// Whether the bound was written as a number, which is in the metric's own unit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_in_own_unit: bool,
    /// Whether the measure must not be less than the bound; if not it must not be more. None in records
    /// of before this was kept: then it follows from the measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_least: Option<bool>,
}

/// When a block is void because the host was disturbed, as planned: how much worse than at the
/// quietest trial of the same variant something may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VoidingRecord {
    /// Share of all CPUs that the hypervisor gave to others, as a fraction.
    pub steal: f64,
    /// Share of all CPUs that other processes used, as a fraction.
    pub others: f64,
    /// How much longer the canary took, as a fraction.
    pub canary: f64,
    /// Most blocks that are measured again.
    pub repeats_max: u32,
}

/// When a run stops repeating variants, as planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoppingRecord {
    /// Repetitions that every variant gets before the first look.
    pub repetitions_min: u32,
    /// Repetitions after which a variant gets no more, settled or not.
    pub repetitions_max: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelRecord {
    /// `database`, `workload`, `setting.NAME`, `option.NAME`.
    pub factor: String,
    pub level: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// Its name: `8 clients`, `500/s`.
    pub name: String,
    /// Clients: the most transactions in flight.
    pub clients: u64,
    /// Offered rate in transactions per second; none under closed load. Where it changes, its mean
    /// over the measured time.
    pub rate: Option<f64>,
    /// The course of an offered rate that changes, as a study says it: `500/s for 10s, 2000/s for 5s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stepped: Option<String>,
    /// `closed`, `constant` or `poisson`.
    pub arrivals: String,
    pub warm_up_s: f64,
    /// Measured time, in seconds; the longest where the step ends when it is steady.
    pub duration_s: f64,
    /// How long throughput has to be steady before the step ends, in seconds; none where it ends
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_steady_s: Option<f64>,
    /// What is searched, if the step is a search. Then `clients` is the most it may use, there is no
    /// `rate`, and the times are those of each of its load probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchRecord>,
    /// What the workload says of the step, if the workload defines it. Then `clients` is the sum over
    /// its roles, `rate` is none, `arrivals` is `own`, and `duration_s` its longest time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnStepRecord>,
}

impl StepRecord {
    /// What the workload of a variant says of the step; none where it does not define it.
    pub fn own_of<'a>(&'a self, variant: &'a VariantRecord) -> Option<&'a OwnStepRecord> {
        let first = self.own.as_ref()?;
        Some(variant.own_steps.get(&self.name).unwrap_or(first))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnStepRecord {
    pub roles: Vec<RoleRecord>,
    pub ends_by_quota: bool,
    /// Longest wait before it for the engine's debt to be paid, in seconds.
    pub settle_s: f64,
}

/// Clients of a step that do the same thing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleRecord {
    /// `inserter`, `deleter`, `query` …
    pub name: String,
    pub clients: u64,
    /// `closed`, `constant`, `poisson` or `bursts`.
    pub pacing: String,
    /// Offered transactions per second of each client; none where it is closed.
    pub rate: Option<f64>,
    /// Transactions that each client has to commit; none where it goes on until the step ends.
    pub quota: Option<u64>,
    /// Which of the workload's kinds its transactions are, by name, where the workload tells;
    /// else empty.
    #[serde(default)]
    pub kinds: Vec<String>,
}

/// A search for the highest load under a limit, as planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchRecord {
    /// `rate` or `clients`.
    pub sought: String,
    /// What of response times is limited: `mean`, `p50`, `p90`, `p95`, `p99`, `p99.9`, `max`.
    pub statistic: String,
    pub bound_us: f64,
    /// The limit as text: `p99 ≤ 20 ms`.
    pub limit: String,
    /// How near the level that holds and the one that breaks shall come, as a fraction.
    pub precision: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialPlan {
    /// Counted from 1.
    pub number: u32,
    pub variant: usize,
    /// Counted from 1.
    pub repetition: u32,
    /// Counted from 1.
    pub block: u32,
}

/// Facts that were found rather than chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    pub machine: String,
    /// CPUs that may be used.
    pub cpus: u32,
    pub memory_bytes: u64,
    /// Everything else by name: `cpu.model`, `kernel`, `clock_source`, `governor`, `filesystem` …
    pub facts: BTreeMap<String, String>,
}

/// Facts about what servers keep their data on, the most specific first.
const STORAGE: [&str; 3] = ["filesystem", "filesystem.device", "filesystem.options"];

impl Environment {
    /// CPU time per second that control groups allow; none if they set no limit.
    pub fn cpu_limit(&self) -> Option<f64> {
        self.facts.get("cgroup.cpus")?.parse().ok()
    }

    /// Memory that control groups allow, in bytes; none if they set no limit.
    pub fn memory_limit_bytes(&self) -> Option<u64> {
        self.facts.get("cgroup.memory_bytes")?.parse().ok()
    }

    /// Memory that may be used, in bytes: the machine's, or less if control groups allow less.
    pub fn usable_memory_bytes(&self) -> u64 {
        self.memory_limit_bytes().map_or(self.memory_bytes, |limit| limit.min(self.memory_bytes))
    }

    /// The first fact in which the storage of servers' data differs from that of another
    /// environment: ours and theirs. None where one of both does not tell it.
    pub fn storage_difference(&self, other: &Environment) -> Option<(String, String)> {
        let fact = |environment: &Environment, name: &str| {
            environment.facts.get(name).map(|value| telling_options(value))
        };
        let both = |name: &&str| Some((fact(self, name)?, fact(other, name)?));
        STORAGE.iter().filter_map(both).find(|(ours, theirs)| ours != theirs)
    }
}

/// Mount options without those that name folders, because an overlay has other ones in each
/// container, and without limits of size: a tmpfs that was enlarged is the same storage.
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
