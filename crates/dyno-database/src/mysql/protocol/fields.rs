//! Reads the fields of a packet, checking every length.

/// The unread rest of a packet. Each method returns none if too few bytes are left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length-encoded number; none, too, if its first byte begins no number.
    pub(crate) fn lenenc(&mut self) -> Option<u64> {
        match self.u8()? {
            small @ 0..=0xfa => Some(u64::from(small)),
            0xfc => self.u16().map(u64::from),
            0xfd => self.array::<3>().map(|[a, b, c]| u64::from(u32::from_le_bytes([a, b, c, 0]))),
            0xfe => self.array().map(u64::from_le_bytes),
            0xfb | 0xff => None,
        }
    }

    /// A length-encoded text, without its length.
    pub(crate) fn lenenc_bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.lenenc()?;
        self.bytes(usize::try_from(len).ok()?)
    }

    /// The text up to a zero byte, which is skipped.
    pub(crate) fn until_zero(&mut self) -> Option<&'a [u8]> {
        let len = self.0.iter().position(|&byte| byte == 0)?;
        let text = self.bytes(len)?;
        self.u8()?;
        Some(text)
    }

    /// All that is left, without a last zero byte.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0.strip_suffix(&[0]).unwrap_or(self.0)
    }
}

pub(crate) fn push_lenenc(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=0xfa => out.push(value as u8),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&(value as u16).to_le_bytes());
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&(value as u32).to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_survive(value in prop_oneof![0_u64..0x200, 0xfff0_u64..0x1_0010, any::<u64>()]) {
            let mut out = Vec::new();
            push_lenenc(&mut out, value);
            let mut fields = Fields(&out);
            prop_assert_eq!(fields.lenenc(), Some(value));
            prop_assert!(fields.0.is_empty());
            out.pop();
            prop_assert_eq!(Fields(&out).lenenc(), None);
        }
    }

    #[test]
    fn too_short_is_none() {
        assert_eq!(Fields(&[]).lenenc(), None);
        assert_eq!(Fields(&[0xfb]).lenenc(), None);
        assert_eq!(Fields(&[3, 1, 2]).lenenc_bytes(), None);
        assert_eq!(Fields(&[0xfe, 255, 255, 255, 255, 255, 255, 255, 255]).lenenc_bytes(), None);
        assert_eq!(Fields(b"ab").until_zero(), None);
        assert_eq!(Fields(b"ab\0").until_zero(), Some(&b"ab"[..]));
        assert_eq!(Fields(b"ab\0").rest(), b"ab");
    }
}
