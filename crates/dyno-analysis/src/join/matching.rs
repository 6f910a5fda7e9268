//! Whether variants of two runs are the same, and how they differ if not.

use std::collections::BTreeMap;

use dyno_record::{LevelRecord, Run, StepRecord, VariantRecord};

use super::{Matching, is_same_step};
use crate::words::seconds;

#[derive(Clone, Copy)]
pub(super) struct Matched<'a> {
    pub(super) run: &'a Run,
    pub(super) own_idx: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) factor: String,
    /// Of the namesake in the earlier run.
    pub(super) theirs: String,
    /// Of the variant itself.
    pub(super) ours: String,
}

impl Difference {
    fn new(factor: impl Into<String>, theirs: impl Into<String>, ours: impl Into<String>) -> Self {
        Difference { factor: factor.into(), theirs: theirs.into(), ours: ours.into() }
    }

    /// The earlier run's level first: `workload oltp_read_only and oltp_point_select`.
    pub(super) fn of_both(&self) -> String {
        let factor = self.factor.trim_start_matches("option.");
        format!("{factor} {} and {}", self.theirs, self.ours)
    }

    /// For a name; a bare number would say nothing.
    fn word(&self) -> String {
        match self.factor.as_str() {
            "machine" | "version" | "filesystem" | "workload" | "run" => self.ours.clone(),
            factor => format!("{} {}", factor.trim_start_matches("option."), self.ours),
        }
    }
}

impl<'a> Matched<'a> {
    pub(super) fn variant(self) -> &'a VariantRecord {
        &self.run.manifest.variants[self.own_idx]
    }

    /// Asked for alike, and measured under the same conditions.
    pub(super) fn is_same_thing(self, other: Matched<'_>) -> bool {
        let asked = |one: Matched<'_>| {
            let variant = one.variant().clone();
            (
                (variant.name, variant.levels, variant.product),
                (variant.workload, variant.settings, variant.options),
            )
        };
        self.run.manifest.environment.machine == other.run.manifest.environment.machine
            && asked(self) == asked(other)
            && self.differing_conditions(other).is_empty()
    }

    /// In name, or in options that both runs know and neither varies.
    pub(super) fn workload_differences(self, other: Matched<'_>) -> Vec<Difference> {
        let (ours, theirs) = (self.variant(), other.variant());
        if ours.workload != theirs.workload {
            return vec![Difference::new("workload", &theirs.workload, &ours.workload)];
        }
        let is_factor =
            |factor: &str| ours.levels.iter().chain(&theirs.levels).any(|l| l.factor == factor);
        let both = theirs.options.iter().filter_map(|(name, theirs)| {
            let ours = ours.options.get(name)?;
            Some(Difference::new(format!("option.{name}"), theirs, ours))
        });
        both.filter(|d| d.ours != d.theirs && !is_factor(&d.factor)).collect()
    }

    /// Machine, version, storage, design and times. What one run does not know is no difference.
    pub(super) fn differing_conditions(self, other: Matched<'_>) -> Vec<Difference> {
        let (ours, theirs) = (&self.run.manifest, &other.run.manifest);
        let mut found = Vec::new();
        let (here, there) = (&ours.environment.machine, &theirs.environment.machine);
        if here != there && !here.is_empty() {
            found.push(Difference::new("machine", there, here));
        }
        if let (Some(our), Some(their)) = (self.version(), other.version())
            && our != their
        {
            found.push(Difference::new("version", their, our));
        }
        // Another machine's storage differs anyway, and a server by URL keeps its data elsewhere.
        let is_here = here == there && !self.variant().product.contains("://");
        if let Some((our, their)) = ours.environment.storage_difference(&theirs.environment)
            && is_here
        {
            found.push(Difference::new("filesystem", their, our));
        }
        found.extend(design_unlike(&ours.design, &theirs.design));
        found.extend(times_unlike(&ours.steps, &theirs.steps));
        found
    }

    /// As a server of this variant reported them.
    fn version(self) -> Option<String> {
        let own = self.run.trials.iter().filter(|trial| trial.variant == self.own_idx);
        own.map(|trial| &trial.server)
            .find(|server| !server.version.is_empty())
            .map(|server| format!("{} {}", server.product, server.version))
    }
}

fn design_unlike(
    ours: &BTreeMap<String, String>,
    theirs: &BTreeMap<String, String>,
) -> Vec<Difference> {
    let both = ours.iter().filter_map(|(name, ours)| Some((name, theirs.get(name)?, ours)));
    both.filter(|(_, theirs, ours)| theirs != ours)
        .map(|(name, theirs, ours)| Difference::new(name, theirs, ours))
        .collect()
}

/// Of a step, in seconds.
type Time = fn(&StepRecord) -> f64;

fn is_observed(step: &StepRecord) -> bool {
    step.clients == 0 && step.own.is_some()
}

/// Of the first common step whose times differ.
fn times_unlike(ours: &[StepRecord], theirs: &[StepRecord]) -> Vec<Difference> {
    let times: [(&str, Time); 3] = [
        ("warm_up", |step| step.warm_up_s),
        // Without load, the length changes nothing.
        ("duration", |step| if is_observed(step) { 0.0 } else { step.duration_s }),
        ("until_steady", |step| step.until_steady_s.unwrap_or(0.0)),
    ];
    let pairs = || {
        ours.iter().filter_map(|step| Some((step, theirs.iter().find(|s| is_same_step(s, step))?)))
    };
    let differs = |(name, time): (&str, Time)| {
        let (our, their) = pairs().find(|(our, their)| time(our) != time(their))?;
        Some(Difference::new(name, seconds(time(their)), seconds(time(our))))
    };
    times.into_iter().filter_map(differs).collect()
}

/// Levels that distinguish a variant from an earlier run's namesake, and what its name gets.
pub(super) fn distinctive_levels(
    ours: Matched<'_>,
    theirs: Matched<'_>,
    matching: Matching,
) -> (Vec<Difference>, String) {
    let mut found = ours.workload_differences(theirs);
    found.extend(ours.differing_conditions(theirs));
    if found.is_empty() || (matching == Matching::Against && !ours.is_elsewhere(theirs)) {
        found.insert(0, Difference::new("run", run_name(theirs.run), run_name(ours.run)));
    }
    let words: Vec<String> = found.iter().map(Difference::word).collect();
    (found, words.join(", "))
}

impl Matched<'_> {
    /// Machine or version distinguish the runs as well as their folders' names.
    fn is_elsewhere(self, other: Matched<'_>) -> bool {
        let decides = |d: &Difference| ["machine", "version"].contains(&d.factor.as_str());
        self.differing_conditions(other).iter().any(decides)
    }
}

pub(super) fn level(factor: &str, level: &str) -> LevelRecord {
    LevelRecord { factor: factor.to_owned(), level: level.to_owned() }
}

/// The folder's.
pub(super) fn run_name(run: &Run) -> String {
    run.folder
        .file_name()
        .map_or_else(|| "other run".to_owned(), |name| name.to_string_lossy().into_owned())
}
