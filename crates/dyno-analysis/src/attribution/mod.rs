//! Cost of a transaction, statement and inserted row in each resource, by process.

mod candidates;
mod field;
pub(crate) use field::field_names;
pub(crate) mod readings;
#[cfg(test)]
mod tests;
pub(crate) mod uses;
mod why;
pub(crate) use why::why;
pub use why::{UseEffect, WhyFacts};
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

/// One variant at one step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AttributionFacts {
    pub variant: usize,
    pub step: usize,
    /// In the order in which readers look for them.
    pub uses: Vec<Use>,
    /// With the Insert Benchmark author's names and formulas.
    pub field_names: Vec<FieldName>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Use {
    /// `cpu.server`, `cpu.generator`, `cpu.rest`, `cpu.machine`, `cpu.server.NAME`,
    /// `context_switches`, `reads`, `read_bytes`, `writes`, `written_bytes`, `fsyncs`,
    /// `network_received_bytes`, `network_sent_bytes`, `statements`.
    pub name: String,
    /// `CPU of the server`.
    pub title: String,
    /// `µs`, `B`, or empty for a count.
    pub unit: String,
    /// `server.cpu_s_per_s × measured seconds ÷ …`.
    pub formula: String,
    /// Of measured time; for CPU in µs.
    pub per_second: Option<Estimate>,
    pub per_transaction: Option<Estimate>,
    pub per_statement: Option<Estimate>,
    /// If kinds of transactions tell their number.
    pub per_inserted_row: Option<Estimate>,
    /// Why there are no numbers.
    pub absent: Option<String>,
}

/// Under the field's name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FieldName {
    /// `cpupq`, `rkbpq`, `wkbpi` …
    pub name: String,
    pub formula: String,
    /// Name of a [`Use`], and per what.
    pub ours: String,
    pub value: Option<Estimate>,
}

/// For a searched step, the latest load probe at the level found.
pub(crate) fn attribution(
    joined: &Joined<'_>,
    cpus: u32,
    levels: &Levels<'_>,
) -> Vec<AttributionFacts> {
    let of_cell = |(variant, step, summaries): (usize, usize, Vec<&StepSummary>)| {
        let rule = &levels.of_cells(variant);
        let resources = uses::resources(&summaries);
        // The Insert Benchmark's own tables have these columns.
        let has_own = joined.variants[variant].workload == insert_benchmark::WORKLOAD;
        let field_names = match has_own {
            true => Vec::new(),
            false => field::field_names(&summaries, cpus, rule),
        };
        let uses = resources.iter().map(|r| use_of(r, &summaries, (rule, cpus))).collect();
        let mut attribution = AttributionFacts { variant, step, uses, field_names };
        if joined.product_facts(variant).in_process {
            without_server(&mut attribution);
        }
        attribution
    };
    joined.measured_cells().map(of_cell).collect()
}

/// For a database in the generator's process: its use is part of the generator's.
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
        // At most all CPUs, in µs per second, unless more was measured.
        let most = f64::from(cpus) * 1e6;
        let is_within = cpus > 0 && estimate.max <= most;
        estimate.high = estimate.high.map(|high| if is_within { high.min(most) } else { high });
    }
    used.per_transaction = per(&|work| Some(work.transactions));
    used.per_statement = per(&|work| Some(work.statements));
    used.per_inserted_row = per(&|work| work.inserted_rows);
    used
}
