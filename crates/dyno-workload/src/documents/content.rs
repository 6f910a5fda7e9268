//! A document's content, from its key and a seed.

use dyno_units::RandomStream;

/// Six bits as a letter: text that does not compress by more than a quarter.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub(super) fn write_content(content: &mut [u8], random: &mut RandomStream) {
    crate::row::write_letters(content, LETTERS, random);
}

/// Before the load: each number below their count once, with neighbours far apart by key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    n: u64,
    step: u64,
}

impl Numbers {
    pub(super) fn of(n: u64) -> Numbers {
        // The golden section spreads multiples evenly; the next number without a common divisor meets each once.
        let mut step = ((n as f64 * 0.618_033_988_75) as u64).max(1);
        while divisor(step, n) != 1 {
            step += 1;
        }
        Numbers { n, step }
    }

    pub(super) fn of_key(self, key: u64) -> u64 {
        (u128::from(key) * u128::from(self.step) % u128::from(self.n)) as u64
    }
}

fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use dyno_units::Seed;

    use super::*;

    #[test]
    fn each_number_belongs_to_one_key() {
        for n in [1, 2, 3, 4, 10, 97, 1000, 1024] {
            let numbers = Numbers::of(n);
            let mut all: Vec<u64> = (0..n).map(|key| numbers.of_key(key)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..n).collect::<Vec<_>>());
        }
        let far = Numbers::of(1_000_000_000);
        assert!(far.of_key(1).abs_diff(far.of_key(2)) > 1_000_000);
    }

    #[test]
    fn content_is_random_letters() {
        let mut random = Seed(1).stream();
        let mut content = [0; 1003];
        write_content(&mut content, &mut random);
        assert!(content.iter().all(|letter| LETTERS.contains(letter)));
        let mut kinds = content.to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), 64);
    }
}
