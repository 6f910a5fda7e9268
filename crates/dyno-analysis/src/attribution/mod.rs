//! What a transaction, a statement and an inserted row cost of each resource, by process.

mod field;
pub(crate) use field::field_names;
pub(crate) mod readings;
#[cfg(test)]
mod tests;
pub(crate) mod uses;
mod work;

use dyno_record::StepSummary;
use serde::{Deserialize, Serialize};

use crate::Estimate;
use crate::cells::estimate_resource;
use crate::compare::Levels;
use crate::insert_benchmark;
use crate::join::Joined;
use crate::statistics::Rule;

use self::uses::Resource;
use self::work::Work;

/// What one variant used at one step, per transaction and per statement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AttributionFacts {
    pub variant: usize,
    pub step: usize,
    /// Resources, in the order in which people look for them.
    pub uses: Vec<Use>,
    /// The same under the names that the Insert Benchmark's author uses, with his formulas.
    pub field_names: Vec<FieldName>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Use {
    /// Which: `cpu.server`, `cpu.generator`, `cpu.rest`, `cpu.machine`, `cpu.server.NAME`,
    /// `context_switches`, `reads`, `read_bytes`, `writes`, `written_bytes`, `fsyncs`,
    /// `network_received_bytes`, `network_sent_bytes`, `statements`.
    pub name: String,
    /// In words: `CPU of the server`.
    pub title: String,
    /// Unit of one: `µs`, `B`, or empty for a count.
    pub unit: String,
    /// Where the numbers come from, and how: `server.cpu_s_per_s × measured seconds ÷ …`.
    pub formula: String,
    /// Per second of measured time (for CPU: µs per second).
    pub per_second: Option<Estimate>,
    pub per_transaction: Option<Estimate>,
    pub per_statement: Option<Estimate>,
    /// Per inserted row, where kinds of transactions tell how many there were.
    pub per_inserted_row: Option<Estimate>,
    /// Why there are no numbers; none where there are.
    pub absent: Option<String>,
}

/// A figure under the name that the field knows it by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FieldName {
    /// `cpupq`, `rkbpq`, `wkbpi` …
    pub name: String,
    pub formula: String,
    /// Our name of the same thing: the name of a [`Use`] and per what.
    pub ours: String,
    /// Its value; none where it could not be had.
    pub value: Option<Estimate>,
}

/// What each cell used; at a step that searches its load, in the latest load probe at the level found.
pub(crate) fn attribution(
    joined: &Joined<'_>,
    cpus: u32,
    levels: &Levels<'_>,
) -> Vec<AttributionFacts> {
    let mut all = Vec::new();
    for variant in 0..joined.variants.len() {
        let rule = &levels.of_cells(variant);
        for step in 0..joined.steps.len() {
            let summaries = joined.summaries(variant, step);
            if summaries.is_empty() {
                continue;
            }
            let resources = uses::resources(&summaries);
            // The Insert Benchmark's own tables have these columns, by its author's rules.
            let has_own = joined.variants[variant].workload == insert_benchmark::WORKLOAD;
            let mut attribution = AttributionFacts {
                variant,
                step,
                uses: resources.iter().map(|r| use_of(r, &summaries, (rule, cpus))).collect(),
                field_names: if has_own {
                    Vec::new()
                } else {
                    field::field_names(&summaries, cpus, rule)
                },
            };
            if joined.product_facts(variant).in_process {
                without_server(&mut attribution);
            }
            all.push(attribution);
        }
    }
    all
}

/// Of a database that runs in the load generator's process: there is no server to tell of, and what it used
/// is part of what the generator used.
fn without_server(attribution: &mut AttributionFacts) {
    for used in &mut attribution.uses {
        if used.name == "cpu.generator" {
            "CPU of the load generator and the database inside it".clone_into(&mut used.title);
        } else if used.absent.is_some() && used.name.contains("server") {
            let why = "the database runs inside the load generator's own process";
            used.absent = Some(why.to_owned());
        }
    }
}

fn use_of(resource: &Resource, summaries: &[&StepSummary], (rule, cpus): (&Rule, u32)) -> Use {
    let mut used = Use {
        name: resource.name.clone(),
        title: resource.title.clone(),
        unit: resource.unit.to_owned(),
        formula: format!("{} ÷ work per second", resource.source(summaries)),
        ..Use::default()
    };
    let rates: Vec<Result<(f64, Work), String>> = summaries
        .iter()
        .map(|summary| Ok((resource.per_second(summary)?, Work::of(summary))))
        .collect();
    let known: Vec<(f64, Work)> = rates.iter().filter_map(|r| r.as_ref().ok().copied()).collect();
    if known.is_empty() {
        used.absent = rates.into_iter().find_map(Result::err);
        return used;
    }
    let per = |divisor: &dyn Fn(&Work) -> Option<f64>| {
        let quotient = |(rate, work): &(f64, Work)| {
            divisor(work).filter(|work| *work > 0.0).map(|work| rate / work)
        };
        let values: Vec<f64> = known.iter().filter_map(quotient).collect();
        (!values.is_empty()).then(|| estimate_resource(values, resource.unit, rule.confidence))
    };
    used.per_second = per(&|_| Some(1.0));
    if let Some(estimate) = used.per_second.as_mut().filter(|_| resource.name.starts_with("cpu.")) {
        // Nothing uses more than all CPUs: µs per second. What was measured beyond that stays visible.
        let most = f64::from(cpus) * 1e6;
        let is_within = cpus > 0 && estimate.max <= most;
        estimate.high = estimate.high.map(|high| if is_within { high.min(most) } else { high });
    }
    used.per_transaction = per(&|work| Some(work.transactions));
    used.per_statement = per(&|work| Some(work.statements));
    used.per_inserted_row = per(&|work| work.inserted_rows);
    used
}
