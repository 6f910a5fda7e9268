//! Bytes received and not yet consumed.

/// Initial capacity of a buffer, in bytes.
const INITIAL_ROOM: usize = 16 * 1024;

/// Grows, but never shrinks. Memory is initialised once, at allocation, so that reads go straight
/// into it. Bytes move only if a read would find too little room; a buffer emptied before the next
/// read, as after every complete reply, moves none.
pub(crate) struct ReadBuffer {
    bytes: Box<[u8]>,
    // Unread are `start..end`; start <= end <= bytes.len().
    start: usize,
    end: usize,
}

impl ReadBuffer {
    pub(crate) fn new() -> ReadBuffer {
        ReadBuffer { bytes: vec![0; INITIAL_ROOM].into_boxed_slice(), start: 0, end: 0 }
    }

    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(crate) fn consume(&mut self, n: usize) {
        assert!(n <= self.end - self.start, "consumed more than was received");
        self.start += n;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
    }

    /// At least `min` bytes after the unread ones. [`ReadBuffer::filled`] says how much was used.
    pub(crate) fn room(&mut self, min: usize) -> &mut [u8] {
        if self.bytes.len() - self.end < min {
            self.make_room(min);
        }
        &mut self.bytes[self.end..]
    }

    /// Notes that `n` bytes were written to the start of the room.
    pub(crate) fn filled(&mut self, n: usize) {
        assert!(n <= self.bytes.len() - self.end, "filled more than there was room");
        self.end += n;
    }

    #[cold]
    fn make_room(&mut self, min: usize) {
        let n_unread = self.end - self.start;
        if self.bytes.len() - n_unread >= min {
            self.bytes.copy_within(self.start..self.end, 0);
        } else {
            let mut larger = vec![0; (n_unread + min).next_power_of_two()].into_boxed_slice();
            larger[..n_unread].copy_from_slice(self.unread());
            self.bytes = larger;
        }
        self.start = 0;
        self.end = n_unread;
    }
}
