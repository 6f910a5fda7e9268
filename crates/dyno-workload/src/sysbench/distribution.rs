//! How row numbers are drawn: sysbench's five distributions, over any number of items. Formulas are
//! sysbench's (1.0.20 for `special`, its unreleased successor for `zipfian`), with the quirks that
//! each variant names. Different are the source of randomness, a [`RandomStream`], and indexes of
//! 64 instead of 32 bits, computed in `f64`: above 2⁵³ items the lowest bits are not random.

mod shares;

use crate::options::{Options, any_count, real, refuse, word};
use crate::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DistributionSpec {
    /// Every item equally likely. The default of sysbench's current source.
    Uniform,
    /// The mean of `iterations` uniform draws: a bell around the middle.
    Gaussian { iterations: u32 },
    /// A bell with a hot band in the middle; the default of sysbench 1.0.
    ///
    /// Quirk: one draw decides between bell and band and then places the item in the band, so the
    /// part for its low values stays cold: with 75 % hot draws, the default, the hot band is the
    /// upper three quarters of the central 1 %.
    Special {
        iterations: u32,
        /// Width of the hot band in percent of the items, in (0, 100].
        band_pct: f64,
        /// Share of the draws that go to the band in percent, in [0, 100).
        hot_pct: f64,
    },
    /// A power law: with `h` 0.2, 80 % of the draws go to 20 % of the items, at every scale.
    Pareto { h: f64 },
    /// Zipf's law: item i is drawn in proportion to 1 / (i + 1)^exponent.
    ///
    /// Quirk: not scrambled. The first item is the hottest; hot items are neighbours on the same
    /// pages, which a cache serves better than real hot rows.
    Zipfian { exponent: f64 },
}

pub const OPTIONS: &[OptionSpec] = &[
    word("distribution", &["uniform", "gaussian", "special", "pareto", "zipfian"]).help(
        "how rows are chosen (the default of sysbench 1.0 is `special`, that of its successor \
         `uniform`)",
    ),
    any_count("gaussian_iterations", "12")
        .help("uniform draws averaged for one draw of `gaussian` and of the bell of `special`"),
    real("special_pct", "1").help("width of the hot band of `special`, in percent of the rows"),
    real("special_res", "75")
        .help("share of the draws of `special` that go to the hot band, in percent"),
    real("pareto_h", "0.2").help("`pareto` sends 1 - h of the draws to h of the rows"),
    real("zipfian_exponent", "0.8")
        .help("exponent of `zipfian`; 0 is uniform, larger is more skewed"),
];

impl DistributionSpec {
    /// Reads the choice from [`OPTIONS`], checking the ranges of all parameters, used or not.
    pub fn from_options(options: &Options) -> Result<DistributionSpec, OptionError> {
        let real = |name: &str, accepts: fn(f64) -> bool, range: &str| {
            let value = options.real(name);
            match accepts(value) {
                true => Ok(value),
                false => refuse(name, format!("`{value}` is not in {range}")),
            }
        };
        let iterations = options.count("gaussian_iterations");
        if !(1..=1000).contains(&iterations) {
            return refuse("gaussian_iterations", "it must be between 1 and 1000");
        }
        let iterations = iterations as u32;
        let band_pct = real("special_pct", |v| v > 0.0 && v <= 100.0, "(0, 100]")?;
        let hot_pct = real("special_res", |v| (0.0..100.0).contains(&v), "[0, 100)")?;
        let h = real("pareto_h", |v| v > 0.0 && v < 1.0, "(0, 1)")?;
        let exponent = real("zipfian_exponent", |v| (0.0..=20.0).contains(&v), "[0, 20]")?;
        Ok(match options.text("distribution") {
            "gaussian" => DistributionSpec::Gaussian { iterations },
            "special" => DistributionSpec::Special { iterations, band_pct, hot_pct },
            "pareto" => DistributionSpec::Pareto { h },
            "zipfian" => DistributionSpec::Zipfian { exponent },
            _ => DistributionSpec::Uniform,
        })
    }

    /// This distribution over `n` items. `n` must not be 0.
    pub fn over(self, n: u64) -> Distribution {
        assert!(n > 0, "nothing can be drawn from no items");
        let shape = match self {
            DistributionSpec::Uniform => Shape::Uniform,
            DistributionSpec::Gaussian { iterations } => Shape::Gaussian { iterations },
            DistributionSpec::Special { iterations, band_pct, hot_pct } => {
                let span = (n - 1) as f64;
                let (bell_share, band) = ((100.0 - hot_pct) / 100.0, span * band_pct / 100.0 + 1.0);
                let band_start = span / 2.0 - span * band_pct / 200.0;
                Shape::Special { iterations, bell_share, band, band_start }
            }
            DistributionSpec::Pareto { h } => Shape::Pareto { power: h.ln() / (1.0 - h).ln() },
            DistributionSpec::Zipfian { exponent } => Shape::Zipfian(Zipfian::new(n, exponent)),
        };
        Distribution { n, shape }
    }
}

/// A distribution over a number of items, its constants computed.
#[derive(Clone, Copy, Debug)]
pub struct Distribution {
    n: u64,
    shape: Shape,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    Uniform,
    Gaussian { iterations: u32 },
    Special { iterations: u32, bell_share: f64, band: f64, band_start: f64 },
    Pareto { power: f64 },
    Zipfian(Zipfian),
}

impl Distribution {
    #[inline]
    pub fn draw(&self, random: &mut RandomStream) -> u64 {
        match &self.shape {
            Shape::Uniform => random.below(self.n),
            shape => self.draw_uneven(shape, random),
        }
    }

    fn draw_uneven(&self, shape: &Shape, random: &mut RandomStream) -> u64 {
        let n = self.n;
        let item = match shape {
            Shape::Uniform => return random.below(n),
            Shape::Gaussian { iterations } => (bell(*iterations, random) * n as f64) as u64,
            Shape::Special { iterations, bell_share, band, band_start } => {
                let first = random.unit();
                if first < *bell_share {
                    (bell(*iterations, random) * (n - 1) as f64) as u64
                } else {
                    (first * band + band_start) as u64
                }
            }
            Shape::Pareto { power } => (n as f64 * random.unit().powf(*power)) as u64,
            Shape::Zipfian(zipfian) => return zipfian.draw(random),
        };
        // Rounding in f64 may reach n where exact arithmetic stays below it.
        item.min(n - 1)
    }
}

#[inline]
fn bell(iterations: u32, random: &mut RandomStream) -> f64 {
    (0..iterations).map(|_| random.unit()).sum::<f64>() / f64::from(iterations)
}

/// By rejection-inversion (Hörmann and Derflinger 1996): 1.1 tries a draw, any exponent ≥ 0.
#[derive(Clone, Copy, Debug)]
struct Zipfian {
    n: u64,
    exponent: f64,
    // H(1.5) - 1 and H(n + 0.5): the ends of the range that is inverted.
    integral_first: f64,
    integral_last: f64,
    // Below this distance from an item's left edge every try is accepted.
    squeeze: f64,
}

impl Zipfian {
    fn new(n: u64, exponent: f64) -> Zipfian {
        let integral_first = integral(1.5, exponent) - 1.0;
        let integral_last = integral(n as f64 + 0.5, exponent);
        let at_two = integral(2.5, exponent) - density(2.0, exponent);
        let squeeze = 2.0 - integral_inverse(at_two, exponent);
        Zipfian { n, exponent, integral_first, integral_last, squeeze }
    }

    fn draw(&self, random: &mut RandomStream) -> u64 {
        let span = self.integral_first - self.integral_last;
        loop {
            let u = self.integral_last + random.unit() * span;
            let x = integral_inverse(u, self.exponent);
            let rank = ((x + 0.5) as u64).clamp(1, self.n);
            let k = rank as f64;
            let is_accepted = k - x <= self.squeeze
                || u >= integral(k + 0.5, self.exponent) - density(k, self.exponent);
            if is_accepted {
                return rank - 1;
            }
        }
    }
}

/// h(x) = x^-e.
fn density(x: f64, exponent: f64) -> f64 {
    (-exponent * x.ln()).exp()
}

/// H(x) = (x^(1-e) - 1) / (1 - e), and ln x where e is 1.
fn integral(x: f64, exponent: f64) -> f64 {
    let ln_x = x.ln();
    let t = (1.0 - exponent) * ln_x;
    let ratio = if t == 0.0 { 1.0 } else { t.exp_m1() / t };
    ratio * ln_x
}

fn integral_inverse(u: f64, exponent: f64) -> f64 {
    // Below -1 only by rounding.
    let t = (u * (1.0 - exponent)).max(-1.0);
    let ratio = if t == 0.0 { 1.0 } else { t.ln_1p() / t };
    (ratio * u).exp()
}

#[cfg(test)]
mod tests;
