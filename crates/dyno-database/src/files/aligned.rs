//! Memory for direct I/O.

/// The alignment: a page, which is enough for all disks.
const ALIGNMENT: usize = 4096;

#[derive(Debug)]
pub(super) struct Aligned {
    // Longer than needed; never grown, so that it stays where it is.
    memory: Box<[u8]>,
    start: usize,
    len: usize,
}

impl Aligned {
    pub(super) fn new(len: usize) -> Aligned {
        let memory = vec![0; len + ALIGNMENT].into_boxed_slice();
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        Aligned { memory, start, len }
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_begins_with_a_page() {
        for len in [1, 512, 4096, 1 << 20] {
            let mut memory = Aligned::new(len);
            assert_eq!(memory.bytes().len(), len);
            let mut moved = Box::new(memory);
            assert_eq!(moved.bytes().as_ptr() as usize % 4096, 0);
        }
    }
}
