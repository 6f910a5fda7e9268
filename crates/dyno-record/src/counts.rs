//! Series of counts as text: LEB128, deflated, base64.

use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};

/// More than nine days of tenths of a second, with two bytes each.
const BYTES_MOST: u64 = 16 << 20;

/// Unsigned LEB128 numbers, deflated, in base64.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EncodedCounts(pub String);

impl EncodedCounts {
    pub fn encode(counts: &[u32]) -> EncodedCounts {
        let mut bytes = Vec::with_capacity(counts.len() * 2);
        for &count in counts {
            let mut rest = count;
            while rest >= 0x80 {
                bytes.push((rest & 0x7f) as u8 | 0x80);
                rest >>= 7;
            }
            bytes.push(rest as u8);
        }
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&bytes).expect("writing to memory does not fail");
        EncodedCounts(STANDARD.encode(encoder.finish().expect("writing to memory does not fail")))
    }

    /// An empty text is an empty series; `None` if it is no series.
    pub fn decode(&self) -> Option<Vec<u32>> {
        if self.0.is_empty() {
            return Some(Vec::new());
        }
        let deflated = STANDARD.decode(&self.0).ok()?;
        let mut bytes = Vec::new();
        let inflated = DeflateDecoder::new(deflated.as_slice());
        inflated.take(BYTES_MOST + 1).read_to_end(&mut bytes).ok()?;
        if bytes.len() as u64 > BYTES_MOST {
            return None;
        }
        let mut counts = Vec::new();
        let (mut value, mut shift) = (0_u64, 0);
        for byte in bytes {
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                counts.push(u32::try_from(value).ok()?);
                (value, shift) = (0, 0);
            } else {
                shift += 7;
                if shift > 28 {
                    return None;
                }
            }
        }
        (shift == 0).then_some(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_series_survives_its_encoding(counts: Vec<u32>) {
            proptest::prop_assert_eq!(EncodedCounts::encode(&counts).decode(), Some(counts));
        }

        #[test]
        fn no_text_makes_decoding_panic(text in ".{0,200}") {
            let _ = EncodedCounts(text).decode();
        }
    }
}
