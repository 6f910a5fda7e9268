//! Random streams derived from one seed, so that every run can be repeated.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

impl Seed {
    /// An independent seed for the part of the run named by `label` and `index`.
    pub fn derive(self, label: &str, index: u64) -> Seed {
        // FNV-1a over the label, then one SplitMix64 step over all three.
        let hash = fnv_1a(FNV_1A, label.as_bytes());
        let mixed = self.0 ^ hash.rotate_left(17) ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Seed(split_mix(mixed))
    }

    pub fn stream(self) -> RandomStream {
        let mut state = self.0;
        let mut word = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            split_mix(state)
        };
        RandomStream { state: [word(), word(), word(), word()] }
    }
}

/// What FNV-1a of 64 bits begins with.
pub const FNV_1A: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, 64 bits, of what `hash` is of and these bytes.
pub fn fnv_1a(hash: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(hash, step)
}

/// SplitMix64's output function (Steele, Lea, Flood 2014).
fn split_mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A stream of random numbers: xoshiro256++ (Blackman and Vigna 2019).
#[derive(Clone, Debug)]
pub struct RandomStream {
    state: [u64; 4],
}

impl RandomStream {
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// In [0, 1), with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// In [0, n), n > 0, equally likely up to 2⁻⁶⁴·n (Lemire's multiply-shift, no rejection).
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0, "a number below zero was asked for");
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// In [low, high], each equally likely.
    #[inline]
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        debug_assert!(low <= high, "{low} is above {high}");
        low.wrapping_add(self.below(high.wrapping_sub(low) as u64 + 1) as i64)
    }

    /// By inversion.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Standard normal (Box and Muller 1958; the second value is dropped).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Fisher and Yates, Durstenfeld's version.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answer_of_xoshiro256_plus_plus() {
        // The reference implementation from state 1, 2, 3, 4.
        let mut stream = RandomStream { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| stream.next_u64()).collect();
        assert_eq!(first, [41943041, 58720359, 3588806011781223, 3591011842654386]);
    }

    #[test]
    fn derived_seeds_differ_by_label_and_by_index() {
        let seed = Seed(1);
        assert_ne!(seed.derive("client", 0), seed.derive("client", 1));
        assert_ne!(seed.derive("client", 0), seed.derive("order", 0));
        assert_eq!(seed.derive("client", 0), Seed(1).derive("client", 0));
    }

    #[test]
    fn means_are_where_they_belong() {
        let mut stream = Seed(7).stream();
        let n = 200_000;
        let mean = |draw: &mut dyn FnMut() -> f64| (0..n).map(|_| draw()).sum::<f64>() / n as f64;
        assert!((mean(&mut || stream.unit()) - 0.5).abs() < 0.005);
        assert!((mean(&mut || stream.exponential(3.0)) - 3.0).abs() < 0.05);
        assert!(mean(&mut || stream.normal()).abs() < 0.01);
        assert!((mean(&mut || stream.between(-5, 5) as f64)).abs() < 0.05);
    }

    #[test]
    fn shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..50).collect();
        Seed(3).stream().shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
