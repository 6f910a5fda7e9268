//! Random numbers: the generator that PostgreSQL uses (xoroshiro128**, by Blackman and Vigna), so that
//! a seed gives the numbers that pgbench draws from it, and the distributions of pgbench's functions.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prng {
    low: u64,
    high: u64,
}

/// One step of splitmix64, which spreads a seed.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

impl Prng {
    pub fn new(mut seed: u64) -> Prng {
        let low = split_mix(&mut seed);
        Prng { low, high: split_mix(&mut seed) }
    }

    #[inline]
    pub fn bits(&mut self) -> u64 {
        let low = self.low;
        let mixed = self.high ^ low;
        self.low = low.rotate_left(24) ^ mixed ^ (mixed << 16);
        self.high = mixed.rotate_left(37);
        low.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }

    /// A number from 0 to `most`, all equally likely.
    #[inline]
    pub fn up_to(&mut self, most: u64) -> u64 {
        if most == 0 {
            return 0;
        }
        let shift = most.leading_zeros();
        loop {
            let value = self.bits() >> shift;
            if value <= most {
                return value;
            }
        }
    }

    /// A number from 0 to below 1.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 12) as f64 * (1.0 / (1_u64 << 52) as f64)
    }

    /// `random(least, most)`; the difference fits 63 bits.
    #[inline]
    pub(crate) fn uniform(&mut self, least: i64, most: i64) -> i64 {
        least.wrapping_add(self.up_to(most.wrapping_sub(least) as u64) as i64)
    }

    /// `random_exponential`: the density falls to exp(-`parameter`) over the range.
    pub(crate) fn exponential(&mut self, least: i64, most: i64, parameter: f64) -> i64 {
        let cut = (-parameter).exp();
        let uniform = 1.0 - self.unit();
        let share = -(cut + (1.0 - cut) * uniform).ln() / parameter;
        placed(least, most, share)
    }

    /// `random_gaussian`: a normal distribution that is cut off at `parameter` standard deviations on
    /// both sides (Box and Muller's method).
    pub(crate) fn gaussian(&mut self, least: i64, most: i64, parameter: f64) -> i64 {
        loop {
            let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
            let deviations = radius * (2.0 * std::f64::consts::PI * (1.0 - self.unit())).sin();
            if (-parameter..parameter).contains(&deviations) {
                return placed(least, most, (deviations + parameter) / (parameter * 2.0));
            }
        }
    }

    /// `random_zipfian`, by rejection (Devroye, Non-Uniform Random Variate Generation, 1986, p. 551).
    pub(crate) fn zipfian(&mut self, least: i64, most: i64, parameter: f64) -> i64 {
        let n = most - least + 1;
        if n <= 1 {
            return least;
        }
        let power = parameter - 1.0;
        let b = 2.0_f64.powf(power);
        loop {
            let (u, v) = (self.unit(), self.unit());
            let x = u.powf(-1.0 / power).floor();
            let t = (1.0 + 1.0 / x).powf(power);
            if v * x * (t - 1.0) / (b - 1.0) <= t / b && x <= n as f64 {
                return least - 1 + x as i64;
            }
        }
    }
}

/// The number at a share (0 to below 1) of a range.
fn placed(least: i64, most: i64, share: f64) -> i64 {
    least + ((most - least + 1) as f64 * share) as i64
}

/// FNV-1a of the eight bytes of `value`, low ones first.
pub(crate) fn hash_fnv1a(value: i64, seed: i64) -> i64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x100_0000_01b3;
    let hash = value
        .to_le_bytes()
        .iter()
        .fold(BASIS ^ seed as u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    hash as i64
}

/// MurmurHash2 of the eight bytes of `value`, in its 64-bit form.
pub(crate) fn hash_murmur2(value: i64, seed: i64) -> i64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let key = (value as u64).wrapping_mul(FACTOR);
    let key = (key ^ (key >> SHIFT)).wrapping_mul(FACTOR);
    let hash = seed as u64 ^ FACTOR.wrapping_mul(8);
    let hash = (hash ^ key).wrapping_mul(FACTOR);
    let hash = (hash ^ (hash >> SHIFT)).wrapping_mul(FACTOR);
    (hash ^ (hash >> SHIFT)) as i64
}

/// `permute`: where `value` lies in a permutation of 0 to below `size` that follows from `seed`. Six
/// rounds, each of an odd factor, an XOR and a rotation on both halves (which overlap where `size` is no
/// power of two), and an offset; as pgbench has it since version 14, because scripts rely on the values.
pub(crate) fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let mut random = Prng::new(seed as u64);
    let size = size as u64;
    let n_bits = size.ilog2();
    let mask = (1_u64 << n_bits) - 1;
    let mut at = value as u64 % size;
    let stir = |random: &mut Prng, at: u64| {
        let factor = (random.bits() & mask) | 1;
        let flips = random.bits() & mask;
        if at > mask {
            return at;
        }
        let at = (at.wrapping_mul(factor) ^ flips) & mask;
        ((at << 1) & mask) | (at >> (n_bits - 1))
    };
    for _ in 0..6 {
        at = stir(&mut random, at);
        at = size - 1 - stir(&mut random, size - 1 - at);
        at = (at.wrapping_add(random.up_to(size - 1))) % size;
    }
    at as i64
}

/// The streams of a run, derived from its seed in pgbench's order: with one thread, they are its own.
#[derive(Clone, Debug)]
pub struct Seeds {
    base: Prng,
}

impl Seeds {
    pub fn new(seed: u64) -> Seeds {
        Seeds { base: Prng::new(seed) }
    }

    /// The next stream. The first ones are those of the clients' functions, in the order of clients.
    pub fn stream(&mut self) -> Prng {
        Prng::new(self.base.bits())
    }

    /// The next number: `:default_seed`, drawn after the clients' streams.
    pub fn number(&mut self) -> i64 {
        self.base.bits() as i64
    }
}
