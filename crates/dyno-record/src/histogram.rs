//! Histograms as text: HdrHistogram V2, deflated, base64.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// A histogram of nanoseconds in HdrHistogram's V2 + deflate encoding, as base64. Any HdrHistogram
/// library reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EncodedHistogram(pub String);

/// An empty histogram with the bounds and the precision of all of Dyno's: 100 ns … 1 h, in
/// nanoseconds, three significant digits.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(100, 3_600_000_000_000, 3).expect("the bounds are valid")
}

impl EncodedHistogram {
    /// Encodes a histogram.
    pub fn encode(_histogram: &Histogram<u64>) -> EncodedHistogram {
        unimplemented!()
    }
    /// Decodes; an empty text is an empty histogram. None when the text is not a histogram.
    pub fn decode(&self) -> Option<Histogram<u64>> {
        unimplemented!()
    }
}
