//! Reads what a client sent, checking every length. Not the reader of Dyno's connections: a shared
//! one would hide its bugs from tests against null servers.

/// The unread rest of a message. Each method returns none if too few bytes are left.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    pub(super) fn u32_le(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    pub(super) fn u32_be(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    pub(super) fn u16_be(&mut self) -> Option<u16> {
        self.bytes(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    /// The text up to a zero byte, which is skipped.
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let len = self.0.iter().position(|&byte| byte == 0)?;
        let text = self.bytes(len)?;
        self.u8()?;
        Some(text)
    }
}
