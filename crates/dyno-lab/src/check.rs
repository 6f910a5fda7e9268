//! Whether servers will take their settings, before the first trial.

use std::collections::HashSet;
use std::sync::Arc;

use dyno_study::{Design, JobWork, Plan, Product, Variant};

use crate::deployment::{Source, source};
use crate::run::Lab;
use crate::trial::TrialError;

/// Variants whose servers will not start with their settings, as far as that can be told before they
/// do: name and reason, each configuration once. Servers that run already are not asked.
pub fn check_settings(lab: &Lab, plan: &Plan, design: &Design) -> Vec<(String, String)> {
    let mut seen = HashSet::new();
    let mut refused = Vec::new();
    for variant in &plan.variants {
        let database = &variant.database;
        let is_url = matches!(database.product, Product::Url(_));
        // Variants that change nothing of a database share it.
        if is_url || !seen.insert(Arc::as_ptr(database)) {
            continue;
        }
        let result = source(lab, design, variant).and_then(|(source, _)| match source {
            Source::Start(spec) => {
                lab.products.check_settings(&spec, &lab.place()).map_err(TrialError::from)
            }
            _ => Ok(()),
        });
        let result = result.and_then(|()| match &database.behind {
            Some(behind) => Ok(lab.products.router(&behind.product)?.check(&lab.place())?),
            None => Ok(()),
        });
        if let Err(TrialError::Failed { message, .. }) = result {
            refused.push((variant.name.clone(), message));
        }
    }
    refused.extend(
        plan.variants
            .iter()
            .filter_map(|variant| Some((variant.name.clone(), sql_for_nobody(lab, variant)?))),
    );
    refused
}

/// Why a variant's job cannot send its SQL: the product understands none.
fn sql_for_nobody(lab: &Lab, variant: &Variant) -> Option<String> {
    let job = variant.job()?;
    let is_sql = !matches!(job.work, JobWork::Command { .. });
    let Product::Private(name) = &variant.database.product else { return None };
    let spec = lab.products.find(name)?.spec();
    let is_refused = spec.dialect.is_none() || spec.is_simulated;
    let asks = is_sql || !job.before.is_empty() || job.check.is_some();
    (asks && is_refused).then(|| format!("the job `{}` sends SQL, and {name} has no SQL", job.name))
}
