//! TPC-C's random numbers: non-uniform ones, last names, texts, and permutations with random
//! access.

use dyno_units::{RandomStream, Seed};

/// Syllables of last names (clause 4.3.2.3).
const SYLLABLES: [&[u8]; 10] =
    [b"BAR", b"OUGHT", b"ABLE", b"PRI", b"PRES", b"ESE", b"ANTI", b"CALLY", b"ATION", b"EING"];

/// Appends the last name of `number`, from 0 to 999.
pub(super) fn push_last_name(out: &mut Vec<u8>, number: u64) {
    for digit in [number / 100 % 10, number / 10 % 10, number % 10] {
        out.extend_from_slice(SYLLABLES[digit as usize]);
    }
}

/// NURand(A, x, y) of clause 2.1.6: ((random(0, A) | random(x, y)) + C) % (y − x + 1) + x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NuRand {
    a: u64,
    c: u64,
    pub(super) low: u64,
    high: u64,
    is_flat: bool,
}

impl NuRand {
    /// Over [low, high] with the constant `c`.
    pub(super) fn new(a: u64, c: u64, (low, high): (u64, u64)) -> NuRand {
        NuRand { a, c, low, high, is_flat: false }
    }

    /// The same range without any skew: a fault, for tests.
    pub(super) fn flat(self) -> NuRand {
        NuRand { is_flat: true, ..self }
    }

    pub(super) fn draw(&self, random: &mut RandomStream) -> u64 {
        let span = self.high - self.low + 1;
        if self.is_flat {
            return self.low + random.below(span);
        }
        let both = random.below(self.a + 1) | (self.low + random.below(span));
        (both + self.c) % span + self.low
    }

    /// Shares of the values in [low, high] among all pairs of the two draws.
    ///
    /// Pairs whose OR is within v are those of two numbers within v, which can be counted; Möbius
    /// inversion over subsets of bits removes those not v itself.
    pub(super) fn shares(&self) -> Vec<f64> {
        let n_bits = 64 - self.high.max(self.a).leading_zeros();
        let size = 1_usize << n_bits;
        let is_first = |value: u64| f64::from(value <= self.a);
        let is_second = |value: u64| f64::from((self.low..=self.high).contains(&value));
        let mut first: Vec<f64> = (0..size as u64).map(is_first).collect();
        let mut second: Vec<f64> = (0..size as u64).map(is_second).collect();
        sum_over_subsets(&mut first, 1.0);
        sum_over_subsets(&mut second, 1.0);
        let mut pairs: Vec<f64> = first.iter().zip(&second).map(|(a, b)| a * b).collect();
        sum_over_subsets(&mut pairs, -1.0);
        let span = self.high - self.low + 1;
        let mut shares = vec![0.0; span as usize];
        for (value, count) in (0_u64..).zip(pairs) {
            shares[((value + self.c) % span) as usize] += count;
        }
        shares
    }
}

/// Adds to each value `sign` times those whose bits are a subset of its bits; -1 undoes 1.
fn sum_over_subsets(values: &mut [f64], sign: f64) {
    let mut bit = 1;
    while bit < values.len() {
        for idx in 0..values.len() {
            if idx & bit != 0 {
                values[idx] += sign * values[idx ^ bit];
            }
        }
        bit <<= 1;
    }
}

/// The constants C of the run, and the one of the load that decides who has which last name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Constants {
    pub(super) last_name_of_load: u64,
    pub(super) last_name_of_run: u64,
    pub(super) customer: u64,
    pub(super) item: u64,
}

impl Constants {
    /// Clause 2.1.6.1: constants of last names differ by 65 to 119, but not by 96 or 112.
    pub(super) fn draw(seed: Seed) -> Constants {
        let mut random = seed.derive("constants", 0).stream();
        let last_name_of_load = random.below(256);
        let last_name_of_run = loop {
            let candidate = random.below(256);
            let delta = candidate.abs_diff(last_name_of_load);
            if (65..=119).contains(&delta) && delta != 96 && delta != 112 {
                break candidate;
            }
        };
        let (customer, item) = (random.below(1024), random.below(8192));
        Constants { last_name_of_load, last_name_of_run, customer, item }
    }
}

/// A random order of 0 … n − 1 with random access: a Feistel network of four rounds over the next
/// power of four, walked until below n (Black and Rogaway 2002).
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    pub(super) fn new(n: u64, seed: Seed) -> Permutation {
        let mut random = seed.stream();
        let n_bits = 64 - n.saturating_sub(1).leading_zeros();
        let keys = [(); 4].map(|()| random.next_u64());
        Permutation { n, half_bits: n_bits.div_ceil(2).max(1), keys }
    }

    /// The element at position `idx`, which is below n.
    pub(super) fn at(&self, idx: u64) -> u64 {
        let mut value = idx;
        loop {
            value = self.scramble(value);
            if value < self.n {
                return value;
            }
        }
    }

    fn scramble(&self, value: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for key in self.keys {
            let mixed = (right ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ key.rotate_left(29);
            let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (left, right) = (right, left ^ (mixed >> 40 & mask));
        }
        left << self.half_bits | right
    }
}

const ALPHANUMERIC: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Appends `n` characters of the first `of` of digits, capitals and small letters.
fn push_characters(out: &mut Vec<u8>, n: u64, of: u64, random: &mut RandomStream) {
    /// Characters of one draw of 64 bits: the last of them is biased by less than 62⁸ / 2⁶⁴.
    const PER_DRAW: u64 = 8;
    let mut left = n;
    while left > 0 {
        let mut bits = random.next_u64();
        for _ in 0..left.min(PER_DRAW) {
            let wide = u128::from(bits) * u128::from(of);
            out.push(ALPHANUMERIC[(wide >> 64) as usize]);
            bits = wide as u64;
        }
        left -= left.min(PER_DRAW);
    }
}

/// Appends an a-string: alphanumeric, its length from `low` to `high` (clause 4.3.2.2).
pub(super) fn push_text(out: &mut Vec<u8>, (low, high): (u64, u64), random: &mut RandomStream) {
    let n = low + random.below(high - low + 1);
    push_characters(out, n, 62, random);
}

/// Appends an n-string of `n` digits.
pub(super) fn push_digits(out: &mut Vec<u8>, n: u64, random: &mut RandomStream) {
    push_characters(out, n, 10, random);
}

/// Appends a ZIP code: four random digits and 11111 (clause 4.3.2.7).
pub(super) fn push_zip(out: &mut Vec<u8>, random: &mut RandomStream) {
    push_digits(out, 4, random);
    out.extend_from_slice(b"11111");
}

/// What data of the tenth of items and stock that is brand holds (clause 4.3.3.1).
pub(super) const ORIGINAL: &[u8] = b"ORIGINAL";

/// Appends 26 to 50 characters; in one of ten cases a part of them reads ORIGINAL.
pub(super) fn push_brand(out: &mut Vec<u8>, random: &mut RandomStream) {
    let start = out.len();
    push_text(out, (26, 50), random);
    if random.below(10) == 0 {
        let room = out.len() - start - ORIGINAL.len();
        let at = start + random.below(room as u64 + 1) as usize;
        out[at..at + ORIGINAL.len()].copy_from_slice(ORIGINAL);
    }
}

pub(super) fn is_brand(data: &[u8]) -> bool {
    data.windows(ORIGINAL.len()).any(|window| window == ORIGINAL)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn last_names_are_those_of_the_specification() {
        let check = |number, expected: &str| {
            let mut out = Vec::new();
            push_last_name(&mut out, number);
            assert_eq!(out, expected.as_bytes());
        };
        check(371, "PRICALLYOUGHT");
        check(40, "BARPRESBAR");
        check(0, "BARBARBAR");
        check(999, "EINGEINGEING");
    }

    #[test]
    fn the_shares_of_nurand_are_those_of_counting() {
        let nurand = NuRand::new(7, 5, (1, 12));
        let mut expected = vec![0.0; 12];
        for a in 0..=7_u64 {
            for b in 1..=12_u64 {
                expected[(((a | b) + 5) % 12) as usize] += 1.0;
            }
        }
        assert_eq!(nurand.shares(), expected);
        let names = NuRand::new(255, 7, (0, 999)).shares();
        assert_eq!((names.len(), names.iter().sum::<f64>()), (1000, 256_000.0));
    }

    #[test]
    fn hot_customers_are_as_hot_as_known() {
        // Of 3000 customers the hottest 1 % get 22.2 % of the draws, the hottest 20 % get 79 %.
        let mut shares = NuRand::new(1023, 77, (1, 3000)).shares();
        shares.sort_by(|a, b| b.total_cmp(a));
        let total: f64 = shares.iter().sum();
        let of = |n: usize| shares[..n].iter().sum::<f64>() / total;
        assert!((of(30) - 0.222).abs() < 0.005, "{}", of(30));
        assert!((of(600) - 0.79).abs() < 0.01, "{}", of(600));
    }

    #[test]
    fn constants_keep_the_rule_of_load_and_run() {
        for seed in 0..500 {
            let constants = Constants::draw(Seed(seed));
            let delta = constants.last_name_of_run.abs_diff(constants.last_name_of_load);
            assert!((65..=119).contains(&delta) && delta != 96 && delta != 112, "{constants:?}");
            assert_eq!(constants, Constants::draw(Seed(seed)));
        }
    }

    #[test]
    fn a_tenth_of_brand_data_is_original() {
        let mut random = Seed(4).stream();
        let mut n = 0;
        for _ in 0..10_000 {
            let mut out = Vec::new();
            push_brand(&mut out, &mut random);
            assert!((26..=50).contains(&out.len()));
            n += usize::from(is_brand(&out));
        }
        assert!((850..1150).contains(&n), "{n}");
    }

    proptest! {
        #[test]
        fn a_permutation_has_every_number_once(n in 1_u64..4000, seed: u64) {
            let permutation = Permutation::new(n, Seed(seed));
            let mut seen: Vec<u64> = (0..n).map(|idx| permutation.at(idx)).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..n).collect::<Vec<_>>());
        }

        #[test]
        fn nurand_stays_in_its_range(seed: u64, c in 0_u64..8192) {
            let nurand = NuRand::new(8191, c, (1, 100_000));
            let mut random = Seed(seed).stream();
            for _ in 0..50 {
                prop_assert!((1..=100_000).contains(&nurand.draw(&mut random)));
            }
        }
    }
}
