//! A small fixed piece of work before and after each trial shows whether the host changed speed.

use dyno_record::Canary;
use dyno_study::{Product, Variant};

use crate::deployment::is_observed;
use crate::lab::Lab;

/// Time before the trial; none if it is simulated, has no load, or is not recorded.
pub(crate) struct HostCanary {
    before_s: Option<f64>,
}

impl HostCanary {
    pub(crate) fn begin(lab: &Lab, variant: &Variant) -> HostCanary {
        // What is only observed is not disturbed by work of Dyno's.
        let is_observed = is_observed(variant);
        let is_simulated = match &variant.database.product {
            Product::Private(name) => {
                lab.products.spec(name).is_some_and(|product| product.is_simulated)
            }
            Product::Url(_) => false,
        };
        let is_checked = lab.checks_host && !is_simulated && !is_observed;
        HostCanary { before_s: is_checked.then(|| work(lab)) }
    }

    pub(crate) fn end(self, lab: &Lab) -> Option<Canary> {
        self.before_s.map(|before_s| Canary { before_s, after_s: work(lab) })
    }
}

fn work(lab: &Lab) -> f64 {
    dyno_load::canary(lab.clock.as_ref()).as_secs_f64()
}
