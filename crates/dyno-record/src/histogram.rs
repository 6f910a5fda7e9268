//! Histograms as text: HdrHistogram V2, deflated, base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// A histogram of nanoseconds in HdrHistogram's V2 + deflate encoding, as base64. Any HdrHistogram
/// library reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EncodedHistogram(pub String);

/// An empty histogram with the bounds and the precision of all of Dyno's: 1 ns … 1 h, in
/// nanoseconds, three significant digits.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("the bounds are valid")
}

impl EncodedHistogram {
    /// Encodes a histogram.
    pub fn encode(histogram: &Histogram<u64>) -> EncodedHistogram {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(histogram, &mut bytes)
            .expect("writing to memory does not fail");
        EncodedHistogram(STANDARD.encode(bytes))
    }

    /// Decodes; an empty text is an empty histogram. None when the text is not a histogram.
    pub fn decode(&self) -> Option<Histogram<u64>> {
        if self.0.is_empty() {
            return Some(new_histogram());
        }
        let bytes = STANDARD.decode(&self.0).ok()?;
        Deserializer::new().deserialize(&mut bytes.as_slice()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_survives_its_encoding() {
        let mut histogram = new_histogram();
        for value in [100, 5_000, 5_000, 1_000_000_000] {
            histogram.record(value).unwrap();
        }
        assert_eq!(EncodedHistogram::encode(&histogram).decode(), Some(histogram));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_decoding_panic(text in ".{0,200}") {
            let _ = EncodedHistogram(text).decode();
        }
    }
}
