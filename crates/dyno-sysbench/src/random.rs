//! Random numbers as sysbench draws them: their distributions are part of what a script measures.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// xoroshiro128+ (Blackman and Vigna 2016), with the constants 55, 14, 36.
#[derive(Clone, Debug)]
pub(crate) struct Generator {
    state: [u64; 2],
}

impl Generator {
    pub(crate) fn new(state: [u64; 2]) -> Generator {
        // All zeros would stay zeros.
        Generator { state: if state == [0, 0] { [1, 2] } else { state } }
    }

    pub(crate) fn next(&mut self) -> u64 {
        let [first, mut second] = self.state;
        let result = first.wrapping_add(second);
        second ^= first;
        self.state = [first.rotate_left(55) ^ second ^ (second << 14), second.rotate_left(36)];
        result
    }

    /// A number in [0, 1), with 52 random bits.
    pub(crate) fn unit(&mut self) -> f64 {
        f64::from_bits(0x3ff_u64 << 52 | self.next() >> 12) - 1.0
    }
}

/// What `sysbench.rand.default` draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    Uniform,
    /// The mean of several uniform numbers.
    Gaussian,
    /// A share of the draws falls into a small part in the middle.
    #[default]
    Special,
    /// A power law by the share of the draws that a share of the values gets.
    Pareto,
    /// Zipf's law; sysbench has it since 1.1.
    Zipfian,
}

impl Distribution {
    pub fn of_word(word: &str) -> Option<Distribution> {
        Some(match word {
            "uniform" => Distribution::Uniform,
            "gaussian" => Distribution::Gaussian,
            "special" => Distribution::Special,
            "pareto" => Distribution::Pareto,
            "zipfian" => Distribution::Zipfian,
            _ => return None,
        })
    }
}

/// The options `--rand-*`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomSettings {
    pub distribution: Distribution,
    pub iterations: u32,
    /// Percentage of all values that are special.
    pub special_percent: f64,
    /// Percentage of the draws that are special.
    pub special_share: f64,
    /// The share h: 1-h of the draws fall into h of the values.
    pub pareto_h: f64,
    pub zipfian_exponent: f64,
}

impl Default for RandomSettings {
    fn default() -> RandomSettings {
        RandomSettings {
            distribution: Distribution::Special,
            iterations: 12,
            special_percent: 1.0,
            special_share: 75.0,
            pareto_h: 0.2,
            zipfian_exponent: 0.8,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Random {
    pub(crate) generator: Generator,
    settings: RandomSettings,
}

impl Random {
    pub(crate) fn new(state: [u64; 2], settings: RandomSettings) -> Random {
        Random { generator: Generator::new(state), settings }
    }

    /// One of the values from `a` to `b`; as in sysbench, the range wraps at 2³².
    pub(crate) fn draw(&mut self, distribution: Distribution, a: u32, b: u32) -> u32 {
        match distribution {
            Distribution::Uniform => self.uniform(a, b),
            Distribution::Gaussian => self.gaussian(a, b),
            Distribution::Special => self.special(a, b),
            Distribution::Pareto => self.pareto(a, b),
            Distribution::Zipfian => self.zipfian(a, b),
        }
    }

    pub(crate) fn default(&mut self, a: u32, b: u32) -> u32 {
        self.draw(self.settings.distribution, a, b)
    }

    fn uniform(&mut self, a: u32, b: u32) -> u32 {
        let n = b.wrapping_sub(a).wrapping_add(1);
        a.wrapping_add((self.generator.unit() * f64::from(n)) as u32)
    }

    fn gaussian(&mut self, a: u32, b: u32) -> u32 {
        let n = f64::from(b.wrapping_sub(a).wrapping_add(1));
        let iterations = self.settings.iterations.max(1);
        let sum: f64 = (0..iterations).map(|_| self.generator.unit() * n).sum();
        a.wrapping_add((sum / f64::from(iterations)) as u32)
    }

    fn special(&mut self, a: u32, b: u32) -> u32 {
        let RandomSettings { special_percent: percent, special_share: share, .. } = self.settings;
        let iterations = self.settings.iterations.max(1);
        let span = f64::from(b.wrapping_sub(a));
        let widened = if share < 100.0 { span * 100.0 / (100.0 - share) } else { f64::INFINITY };
        let unit = self.generator.unit();
        let drawn = unit * widened;
        if drawn < span {
            let sum: f64 = (0..iterations).map(|_| self.generator.unit()).sum();
            return a.wrapping_add((sum * span / f64::from(iterations)) as u32);
        }
        let width = span * percent / 100.0;
        let place = unit * (width + 1.0) + span / 2.0 - span * percent / 200.0;
        a.wrapping_add(place as u32)
    }

    fn pareto(&mut self, a: u32, b: u32) -> u32 {
        let n = f64::from(b.wrapping_sub(a).wrapping_add(1));
        let h = self.settings.pareto_h;
        let power = h.ln() / (1.0 - h).ln();
        a.wrapping_add((n * self.generator.unit().powf(power)) as u32)
    }

    /// Rejection-inversion (Hörmann and Derflinger 1996).
    fn zipfian(&mut self, a: u32, b: u32) -> u32 {
        let n = f64::from(b.wrapping_sub(a).wrapping_add(1).max(1));
        let e = self.settings.zipfian_exponent;
        let h = |x: f64| (-e * x.ln()).exp();
        let is_one = (1.0 - e).abs() < 1e-8;
        let power = |x: f64| (((1.0 - e) * x.ln()).exp() - 1.0) / (1.0 - e);
        let root = |y: f64| ((1.0 + y * (1.0 - e)).max(0.0).ln() / (1.0 - e)).exp();
        let integral = |x: f64| if is_one { x.ln() } else { power(x) };
        let inverse = |y: f64| if is_one { y.exp() } else { root(y) };
        let s = 2.0 - inverse(integral(2.5) - h(2.0));
        let first = integral(1.5) - 1.0;
        let last = integral(n + 0.5);
        loop {
            let u = last + self.generator.unit() * (first - last);
            let x = inverse(u);
            let k = (x + 0.5).floor().clamp(1.0, n);
            if k - x <= s || u >= integral(k + 0.5) - h(k) {
                return a.wrapping_add(k as u32 - 1);
            }
        }
    }

    /// Appends `format` with a random digit for each `#` and a random lower-case letter for each `@`.
    pub(crate) fn string(&mut self, format: &[u8], out: &mut Vec<u8>) {
        out.extend(format.iter().map(|&byte| match byte {
            b'#' => self.uniform(u32::from(b'0'), u32::from(b'9')) as u8,
            b'@' => self.uniform(u32::from(b'a'), u32::from(b'z')) as u8,
            byte => byte,
        }));
    }

    /// Appends a string of random length, of characters from `0` to `z`.
    pub(crate) fn varstring(&mut self, min: u32, max: u32, out: &mut Vec<u8>) {
        let length = self.uniform(min, max.max(min));
        out.extend((0..length).map(|_| self.uniform(u32::from(b'0'), u32::from(b'z')) as u8));
    }
}

/// Numbers of 32 bits that do not repeat before all were drawn, in a scrambled order (Preshing 2012); shared
/// by all clients.
#[derive(Debug)]
pub struct Unique {
    next: AtomicU32,
    offset: u32,
}

const PRIME: u64 = 4_294_967_291;

impl Unique {
    pub fn new(index: u32, offset: u32) -> Unique {
        let scramble = |seed: u32, add: u32| permuted(permuted(seed).wrapping_add(add));
        Unique {
            next: AtomicU32::new(scramble(index, 0x682f_0161)),
            offset: scramble(offset, 0x4679_0905),
        }
    }

    pub(crate) fn draw(&self) -> u32 {
        let index = self.next.fetch_add(1, Relaxed);
        permuted(permuted(index).wrapping_add(self.offset) ^ 0x5bf0_3635)
    }
}

/// The quadratic residue modulo a prime, which maps each half of the numbers onto distinct ones.
fn permuted(x: u32) -> u32 {
    let wide = u64::from(x);
    if wide >= PRIME {
        return x;
    }
    let residue = (wide * wide % PRIME) as u32;
    if wide <= PRIME / 2 { residue } else { (PRIME as u32).wrapping_sub(residue) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares of the draws by tenths of the values from 1 to 1000.
    fn tenths(distribution: Distribution) -> [f64; 10] {
        let mut random = Random::new([7, 11], RandomSettings::default());
        let mut shares = [0.0; 10];
        for _ in 0..20_000 {
            let value = random.draw(distribution, 1, 1000);
            assert!((1..=1001).contains(&value), "{distribution:?} drew {value}");
            shares[((value - 1) / 100).min(9) as usize] += 1.0 / 20_000.0;
        }
        shares
    }

    #[track_caller]
    fn check(distribution: Distribution, tenth: usize, expected: f64) {
        let share = tenths(distribution)[tenth];
        assert!((share - expected).abs() < 0.02, "{distribution:?}: {share}, not {expected}");
    }

    #[test]
    fn distributions_are_those_of_sysbench() {
        check(Distribution::Uniform, 0, 0.1);
        check(Distribution::Uniform, 9, 0.1);
        // Measured with sysbench 1.0.20.
        check(Distribution::Special, 3, 0.026);
        check(Distribution::Special, 4, 0.351);
        check(Distribution::Special, 5, 0.593);
        check(Distribution::Pareto, 0, 0.72);
        check(Distribution::Gaussian, 0, 0.0);
        // The sum of k^-0.8 to 100 is 8.1 of 15.5.
        check(Distribution::Zipfian, 0, 0.52);
    }

    #[test]
    fn unique_numbers_do_not_repeat() {
        let unique = Unique::new(1, 2);
        let mut seen: Vec<u32> = (0..100_000).map(|_| unique.draw()).collect();
        seen.sort_unstable();
        assert!(seen.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn strings_follow_their_format() {
        let mut random = Random::new([3, 4], RandomSettings::default());
        let (mut text, mut varied) = (Vec::new(), Vec::new());
        random.string(b"##-@@", &mut text);
        assert!(text[..2].iter().all(u8::is_ascii_digit) && text[2] == b'-');
        assert!(text[3..].iter().all(u8::is_ascii_lowercase));
        random.varstring(3, 5, &mut varied);
        assert!((3..=5).contains(&varied.len()));
    }
}
