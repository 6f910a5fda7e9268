//! Means with bounds, effects, permutation tests, corrections, verdicts: pure functions of numbers,
//! with random streams as arguments. METHOD.md has each by its formula.

mod correction;
mod decision;
mod describe;
mod effect;
mod permutation;
mod pooled;
pub(crate) mod power;
mod special;
mod student;

pub use correction::holm;
pub(crate) use decision::is_inside;
pub use decision::{
    Call, DECIDED_WITH, Decision, REPETITIONS_CAP, Rule, call_among, calls_at, decide, decide_at,
};
pub use describe::{
    bounds_of_geometric_mean, bounds_of_mean, geometric_mean, mean, median, robust_deviation,
    variance,
};
pub use effect::Effect;
pub use permutation::{sign_flip_p, two_sample_p};
pub use pooled::{POOLED_BLOCKS_LEAST, PooledError, pooled_error_unguarded, pooled_errors};
pub use power::{Design, probability_of_significance};
pub use special::{incomplete_beta, ln_gamma, normal_probability};
pub use student::{t_quantile, t_two_sided_p};
