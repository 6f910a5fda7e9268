//! What limited a variant at a load level, and how much of each resource's limit it used.

use serde::{Deserialize, Serialize};

use super::resource::Resource;

/// Of one variant at one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoundFacts {
    pub variant: usize,
    pub step: usize,
    pub by: BoundBy,
    /// At their limit, in most trials; at most two, the nearest to its limit first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    /// Trials of which this is true.
    pub agreeing: u32,
    /// Trials.
    pub n: u32,
    /// `the volume's limit of 500 reads/s`, `nothing: the clients' own waiting`, `not known`.
    pub text: String,
    /// If it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Of every resource that the rule looked at.
    pub uses: Vec<ResourceUse>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundBy {
    Resources,
    /// No resource: clients under closed load that wait for their own transactions, or pause.
    Clients,
    /// No resource: all that was offered was done.
    Rate,
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourceUse {
    pub resource: Resource,
    /// Of its limit; the median over trials, as a fraction.
    pub share: Option<f64>,
    /// Trials in which it is known.
    pub n: u32,
    /// Why it is not known in the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}
