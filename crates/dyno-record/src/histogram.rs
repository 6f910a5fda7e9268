//! Histograms as text: HdrHistogram V2, deflated, base64.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};

use crate::times::Room;

/// A histogram of nanoseconds that any HdrHistogram library reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EncodedHistogram(pub String);

/// Bounds and precision of all of Dyno's histograms: 1 ns to 1 h, three significant digits.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("the bounds are valid")
}

/// HdrHistogram's number for a deflated V2 histogram with words of one byte.
const DEFLATED: u32 = 0x1c84_9314;

impl EncodedHistogram {
    /// Deflated fast: there is one for each kind and second, with little that repeats.
    pub fn encode(histogram: &Histogram<u64>) -> EncodedHistogram {
        const TO_MEMORY: &str = "writing to memory does not fail";
        let mut plain = Vec::new();
        if V2Serializer::new().serialize(histogram, &mut plain).is_err() {
            plain.clear();
            let capped = capped(histogram);
            V2Serializer::new().serialize(&capped, &mut plain).expect(TO_MEMORY);
        }
        let mut bytes = Vec::with_capacity(plain.len());
        bytes.extend_from_slice(&DEFLATED.to_be_bytes());
        // Overwritten when the length is known.
        bytes.extend_from_slice(&[0; 4]);
        let mut encoder = ZlibEncoder::new(bytes, Compression::fast());
        encoder.write_all(&plain).expect(TO_MEMORY);
        let mut bytes = encoder.finish().expect(TO_MEMORY);
        let len = (bytes.len() - 8) as u32;
        bytes[4..8].copy_from_slice(&len.to_be_bytes());
        EncodedHistogram(STANDARD.encode(bytes))
    }

    pub(crate) fn encode_unless_empty(histogram: &Histogram<u64>) -> Option<EncodedHistogram> {
        (!histogram.is_empty()).then(|| EncodedHistogram::encode(histogram))
    }

    /// An empty text is an empty histogram; `None` if it is no histogram.
    pub fn decode(&self) -> Option<Histogram<u64>> {
        if self.0.is_empty() {
            return Some(new_histogram());
        }
        // Inflated here, with a limit.
        let mut room = Room::new();
        let mut plain = room.plain(&self.0)?;
        Deserializer::new().deserialize(&mut plain).ok()
    }
}

/// With counts that the encoding can hold: texts and hosts may claim any number.
fn capped(histogram: &Histogram<u64>) -> Histogram<u64> {
    let mut capped = Histogram::new_from(histogram);
    for one in histogram.iter_recorded() {
        let count = one.count_at_value().min(i64::MAX as u64);
        capped.record_n(one.value_iterated_to(), count).expect("it was in range before");
    }
    capped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_the_encoding_does_not_have_is_capped() {
        let mut histogram = new_histogram();
        histogram.record_n(100, u64::MAX).unwrap();
        histogram.record_n(5_000, 7).unwrap();
        let decoded = EncodedHistogram::encode(&histogram).decode().unwrap();
        assert_eq!((decoded.count_at(100), decoded.count_at(5_000)), (i64::MAX as u64, 7));
    }

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
