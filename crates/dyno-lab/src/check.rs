//! Whether servers will take their settings, before the first trial.

use std::collections::HashSet;
use std::sync::Arc;

use dyno_study::{Design, Plan, Product};

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
            Source::Attach { .. } | Source::Simulate(_) => Ok(()),
        });
        if let Err(TrialError::Failed { message, .. }) = result {
            refused.push((variant.name.clone(), message));
        }
    }
    refused
}
