//! Percent-encoding of URLs (RFC 3986, section 2.1). The usual libraries leave a `%` without two
//! digits unchanged; here a password with a forgotten `%25` has to be refused.

use std::fmt;

/// `None` if a `%` is not followed by two hexadecimal digits.
pub fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
        out.push((high * 16 + low) as u8);
    }
    Some(out)
}

/// Encodes all but RFC 3986's unreserved characters and those of `keep`.
pub struct PercentEncoded<'a> {
    pub bytes: &'a [u8],
    pub keep: &'static [u8],
}

impl fmt::Display for PercentEncoded<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &byte in self.bytes {
            let is_unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            if is_unreserved || self.keep.contains(&byte) {
                write!(out, "{}", char::from(byte))?;
            } else {
                write!(out, "%{byte:02X}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_undoes_encoding() {
        let check = |text: &str, keep: &'static [u8], expected: &str| {
            let encoded = PercentEncoded { bytes: text.as_bytes(), keep }.to_string();
            assert_eq!(encoded, expected);
            assert_eq!(percent_decode(&encoded).as_deref(), Some(text.as_bytes()));
        };
        check("a-b_c.d~9", b"", "a-b_c.d~9");
        check("p@ss/wörd%", b"", "p%40ss%2Fw%C3%B6rd%25");
        check("/var/run x", b"/", "/var/run%20x");
        check("", b"", "");
    }

    #[test]
    fn a_percent_sign_needs_two_digits() {
        let check = |text: &str| assert_eq!(percent_decode(text), None, "{text}");
        check("%");
        check("50%");
        check("%4");
        check("%zz");
        check("%4%41");
    }
}
