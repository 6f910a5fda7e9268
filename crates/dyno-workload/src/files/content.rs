//! The content of files: follows from the seed, names its place, and compresses as asked.
//!
//! Files consist of sectors of 512 bytes, whatever the operations' size. A sector begins with a stamp:
//! eight bytes from seed, file and sector number, then the number of the write. Incompressible bytes
//! follow, then zeros. So reading detects a block in a wrong place, of another run, or damaged.

pub const SECTOR: usize = 512;

const STAMP: usize = 16;

#[derive(Clone, Debug)]
pub struct Content {
    seed: u64,
    /// Words of a sector that do not compress, the stamp included.
    random_words: usize,
    base: [u64; SECTOR / 8],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sectors {
    pub all: u64,
    /// Those that nobody has written: zeros.
    pub empty: u64,
    /// Those that hold something else than what was written there.
    pub wrong: u64,
}

/// Mixes 64 bits (SplitMix64's finaliser, Steele et al. 2014).
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Content {
    /// Content with so many bytes in each sector that do not compress; never fewer than the stamp.
    pub fn new(seed: u64, random: u64) -> Content {
        let random = (random as usize).clamp(STAMP, SECTOR);
        let mut base = [0; SECTOR / 8];
        for (nth, word) in base.iter_mut().enumerate() {
            *word = mix(seed ^ mix(nth as u64 + 1));
        }
        Content { seed, random_words: random.div_ceil(8), base }
    }

    #[inline]
    fn address(&self, file: u64, sector: u64) -> u64 {
        // Never zero, so that it differs from what nobody has written.
        mix(self.seed ^ mix(sector.wrapping_add(file << 44).wrapping_add(1))) | 1
    }

    /// One whole sector, written by write number `sequence`.
    #[inline]
    fn sector(&self, address: u64, sequence: u64, out: &mut [u8; SECTOR]) {
        let key = mix(address ^ sequence);
        let (words, _) = out.as_chunks_mut::<8>();
        let (random, zeros) = words.split_at_mut(self.random_words);
        for (word, base) in random.iter_mut().zip(&self.base) {
            *word = (base ^ key).to_le_bytes();
        }
        zeros.fill([0; 8]);
        out[..8].copy_from_slice(&address.to_le_bytes());
        out[8..STAMP].copy_from_slice(&sequence.to_le_bytes());
    }

    pub fn fill(&self, file: u64, offset: u64, sequence: u64, block: &mut [u8]) {
        let skipped = (offset % SECTOR as u64) as usize;
        let mut sector = offset / SECTOR as u64;
        let mut rest = block;
        if skipped > 0 {
            let (head, tail) = rest.split_at_mut((SECTOR - skipped).min(rest.len()));
            let mut whole = [0; SECTOR];
            self.sector(self.address(file, sector), sequence, &mut whole);
            head.copy_from_slice(&whole[skipped..skipped + head.len()]);
            (rest, sector) = (tail, sector + 1);
        }
        let (sectors, tail) = rest.as_chunks_mut::<SECTOR>();
        for out in sectors {
            self.sector(self.address(file, sector), sequence, out);
            sector += 1;
        }
        if !tail.is_empty() {
            let mut whole = [0; SECTOR];
            self.sector(self.address(file, sector), sequence, &mut whole);
            tail.copy_from_slice(&whole[..tail.len()]);
        }
    }

    /// The first stamp in a block from this offset belongs there; true without a whole stamp.
    #[inline]
    pub fn is_in_place(&self, file: u64, offset: u64, block: &[u8]) -> bool {
        let sector = offset.div_ceil(SECTOR as u64);
        let start = (sector * SECTOR as u64 - offset) as usize;
        match block.get(start..).and_then(|rest| rest.first_chunk::<8>()) {
            Some(found) => u64::from_le_bytes(*found) == self.address(file, sector),
            None => true,
        }
    }

    /// Checks all bytes of whole sectors in a block from this offset. Sectors that writes cover in
    /// part mix their contents; `is_whole` says that there are none.
    pub fn check(&self, file: u64, offset: u64, block: &[u8], is_whole: bool) -> Sectors {
        let mut found = Sectors::default();
        let first = offset.div_ceil(SECTOR as u64);
        let start = (first * SECTOR as u64 - offset) as usize;
        let Some(rest) = block.get(start..) else { return found };
        for (nth, sector) in rest.as_chunks::<SECTOR>().0.iter().enumerate() {
            let address = self.address(file, first + nth as u64);
            found.all += 1;
            let [stamp, sequence] = [0, 8].map(|at| {
                u64::from_le_bytes(*sector[at..].first_chunk().expect("a sector is longer"))
            });
            if stamp != address {
                let is_empty = sector.iter().all(|byte| *byte == 0);
                found.empty += u64::from(is_empty);
                found.wrong += u64::from(!is_empty);
                continue;
            }
            let mut expected = [0; SECTOR];
            self.sector(address, sequence, &mut expected);
            found.wrong += u64::from(is_whole && *sector != expected);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn blocks_fit_together_wherever_they_are_cut(
            random in 0_u64..600,
            cuts in prop::collection::vec(1_usize..1500, 1..8),
        ) {
            let content = Content::new(7, random);
            let mut whole = vec![1_u8; 4096];
            content.fill(3, 512, 9, &mut whole);
            let mut pieces = Vec::new();
            for cut in cuts {
                let mut piece = vec![2_u8; cut.min(4096 - pieces.len())];
                content.fill(3, 512 + pieces.len() as u64, 9, &mut piece);
                prop_assert!(content.is_in_place(3, 512 + pieces.len() as u64, &piece));
                pieces.extend(piece);
            }
            prop_assert_eq!(&whole[..pieces.len()], &pieces[..]);
            let found = content.check(3, 512, &whole, true);
            prop_assert_eq!(found, Sectors { all: 8, empty: 0, wrong: 0 });
        }
    }

    #[test]
    fn what_lies_elsewhere_or_is_damaged_is_found() {
        let content = Content::new(7, 512);
        let mut block = vec![0; 2048];
        content.fill(1, 4096, 1, &mut block);
        assert!(content.is_in_place(1, 4096, &block));
        assert!(!content.is_in_place(1, 4608, &block));
        assert!(!content.is_in_place(2, 4096, &block));
        assert!(!Content::new(8, 512).is_in_place(1, 4096, &block));
        let check = |block: &[u8], is_whole, expected: (u64, u64, u64)| {
            let found = content.check(1, 4096, block, is_whole);
            assert_eq!((found.all, found.empty, found.wrong), expected);
        };
        check(&block, true, (4, 0, 0));
        let mut damaged = block.clone();
        damaged[700] ^= 1;
        check(&damaged, true, (4, 0, 1));
        // Parts of two writes are no damage where blocks do not end with sectors.
        check(&damaged, false, (4, 0, 0));
        damaged[512..1024].fill(0);
        check(&damaged, true, (4, 1, 0));
        damaged[0] ^= 1;
        check(&damaged, true, (4, 1, 1));
        check(&block[..511], true, (0, 0, 0));
    }

    /// Bytes that differ from zero, as a rough measure of what a compressor must keep, and whether any
    /// two sectors have a word in common that it could refer back to.
    #[test]
    fn content_compresses_as_asked_and_not_further() {
        for random in [16_u64, 128, 256, 512] {
            let content = Content::new(3, random);
            let mut block = vec![0; 128 * SECTOR];
            content.fill(0, 0, 5, &mut block);
            let kept = block.iter().filter(|byte| **byte != 0).count() as f64;
            // One random byte in 256 is zero, and the number of the write has one that is not.
            let expected = 128.0 * ((random - 8) as f64 * 255.0 / 256.0 + 1.0);
            assert!((kept / expected - 1.0).abs() < 0.02, "{random}: {kept} of {expected}");
            let mut words: Vec<[u8; 8]> = block.as_chunks::<8>().0.to_vec();
            words.retain(|word| *word != [0; 8] && *word != 5_u64.to_le_bytes());
            let n = words.len();
            words.sort_unstable();
            words.dedup();
            assert_eq!(words.len(), n, "{random}");
        }
    }
}
