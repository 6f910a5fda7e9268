//! Cost: work for money, work per CPU second, and which variants nobody would choose.

use dyno_record::Price;
use serde::{Deserialize, Serialize};

use crate::Estimate;

/// What the work of one variant at one step cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CostFacts {
    /// Index of the variant.
    pub variant: usize,
    /// Index of the step.
    pub step: usize,
    /// What an hour costs, where the study says so.
    pub price_per_hour: Option<Price>,
    /// Transactions for one unit of the currency: throughput × 3600 ÷ price per hour.
    pub work_per_money: Option<Estimate>,
    /// Money for a million transactions.
    pub money_per_million: Option<Estimate>,
    /// Transactions for one CPU second of the server.
    pub work_per_cpu_s: Option<Estimate>,
    /// Whether it is on the frontier of price and performance: no other variant with a price in the
    /// same currency is at least as fast at this step for no more money, and better in one of both.
    /// None without a price, or where it is the only one with a price.
    pub on_frontier: Option<bool>,
    /// Who dominates it, and how surely, where it is not on the frontier.
    pub dominated: Option<Dominated>,
}

/// A variant that is cheaper and not slower, or faster and not dearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dominated {
    /// Index of the variant that dominates.
    pub by: usize,
    /// Whether the bounds of both throughputs lie apart; else only the observed means tell.
    pub surely: bool,
}
