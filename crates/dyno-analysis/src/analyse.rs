//! Records → findings.
use dyno_record::Run;
use crate::Findings;
/// How to analyse.
#[derive(Clone, Debug)]
pub struct Options {
    /// Confidence of bounds.
    pub confidence: f64,
    /// Threshold; the record's own where none.
    pub threshold: Option<f64>,
    /// Seed of resampling.
    pub seed: u64,
}
impl Default for Options {
    fn default() -> Options { Options { confidence: 0.95, threshold: None, seed: 1 } }
}
/// Analyses runs of one study together.
pub fn analyse(_runs: &[Run], _options: &Options) -> Findings { unimplemented!() }
