//! The most load under a limit of response times, among the levels that a study measured.

use serde::{Deserialize, Serialize};

use crate::{Estimate, Metric};

/// The most load of one variant that kept a limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnderLimit {
    /// Index of the variant.
    pub variant: usize,
    /// What is limited: [`Metric::ResponseP95`] or [`Metric::ResponseP99`].
    pub metric: Metric,
    /// To how many µs.
    pub bound_us: f64,
    /// Whether the loads are closed (clients) or open (offered rates).
    pub closed: bool,
    /// The step with the most load that kept it, no lighter one having broken it; none where the
    /// lightest broke it.
    pub step: Option<usize>,
    /// Its load: clients, or offered rate.
    pub load: Option<f64>,
    /// Whether the upper bound of its response time keeps the limit, too.
    pub surely: bool,
    /// Throughput there.
    pub throughput: Option<Estimate>,
    /// The next load, which broke it; none where all kept it.
    pub next_broken: Option<f64>,
}
