//! A common error of all variants and steps. Three blocks give each difference two degrees of
//! freedom, although twelve comparisons have twelve times as many values. One variance for all is
//! estimated far better if all trials spread alike; otherwise it is wrong for some, so the largest
//! of five is used, each of which holds in another case.

use super::describe::mean;

pub const POOLED_BLOCKS_LEAST: usize = 3;
/// Between blocks and variants; with fewer, what the steps of a trial share cannot be estimated.
const FREEDOM_LEAST: usize = 4;

/// Of one difference within a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PooledError {
    pub variance: f64,
    /// Degrees of freedom, at most the number of independent values.
    pub freedom: f64,
}

/// The common errors of the differences between each variant and the baseline (`table[0]`), by
/// variant from the first that is compared, then by step; `None` with too few values, or a single
/// difference. `table[variant][step][block]` are logarithms; all variants have all steps in all
/// blocks.
///
/// What is left when the means of variants, steps and blocks are taken out has (blocks − 1) ×
/// (variants − 1) degrees of freedom at each step. Steps of a trial share a part of their noise, so
/// freedom is multiplied by tr(Σ)² / tr(Σ²) (Satterthwaite 1946), both estimated without bias from
/// the covariance of the steps (Bai and Saranadasa 1996). The variance of a difference is the
/// largest of
///
/// 1. twice that of what is left, of all variants and steps,
/// 2. the mean of the variances of all differences: larger where the baseline spreads most,
/// 3. the mean of those of this variant over all steps,
/// 4. twice that of what is left at this step, of all variants,
/// 5. the mean of the first and of this difference's own: larger where one variant spreads most.
pub fn pooled_errors(table: &[Vec<Vec<f64>>]) -> Option<Vec<Vec<PooledError>>> {
    let Residuals { at_step, freedom } = Residuals::of(table)?;
    let (n_variants, n_steps) = (table.len(), at_step.len());
    let of_all = mean(&at_step);
    let own: Vec<Vec<f64>> = (1..n_variants)
        .map(|variant| (0..n_steps).map(|step| own_variance(table, variant, step)).collect())
        .collect();
    let of_differences = mean(&own.concat());
    let error = |variances: &Vec<f64>, step: usize| {
        let of_cell = 0.5 * (of_all + variances[step]);
        let of_many = of_all.max(of_differences).max(mean(variances)).max(at_step[step]);
        PooledError { variance: of_many.max(of_cell), freedom }
    };
    Some(
        own.iter()
            .map(|variances| (0..n_steps).map(|step| error(variances, step)).collect())
            .collect(),
    )
}

/// The first variance alone, right only if all trials spread alike: for the example `error_rates`.
pub fn pooled_error_unguarded(table: &[Vec<Vec<f64>>]) -> Option<PooledError> {
    let Residuals { at_step, freedom } = Residuals::of(table)?;
    Some(PooledError { variance: mean(&at_step), freedom })
}

/// Values without the means of variants, steps and blocks.
struct Residuals {
    /// Variance of a difference, by step.
    at_step: Vec<f64>,
    /// Degrees of freedom of all steps together.
    freedom: f64,
}

impl Residuals {
    /// `None` with too few values, or a single difference.
    fn of(table: &[Vec<Vec<f64>>]) -> Option<Residuals> {
        let n_variants = table.len();
        let n_steps = table.first()?.len();
        let n_blocks = table.first()?.first()?.len();
        if n_variants < 2 || (n_variants - 1) * n_steps < 2 || n_blocks < POOLED_BLOCKS_LEAST {
            return None;
        }
        let freedom = (n_blocks - 1) * (n_variants - 1);
        if freedom < FREEDOM_LEAST {
            return None;
        }
        let freedom = freedom as f64;
        let left: Vec<Vec<Vec<f64>>> = (0..n_steps).map(|step| residuals(table, step)).collect();
        let covariance = |a: usize, b: usize| {
            let products = left[a].iter().flatten().zip(left[b].iter().flatten());
            products.map(|(a, b)| a * b).sum::<f64>() / freedom
        };
        let at_step = (0..n_steps).map(|step| 2.0 * covariance(step, step)).collect();
        let freedom = freedom * independent_steps(n_steps, freedom, &covariance);
        Some(Residuals { at_step, freedom })
    }
}

/// By variant and block.
fn residuals(table: &[Vec<Vec<f64>>], step: usize) -> Vec<Vec<f64>> {
    let n_blocks = table[0][step].len();
    let centers: Vec<f64> = table.iter().map(|variant| mean(&variant[step])).collect();
    let of_block = |block: usize| {
        let off: Vec<f64> =
            table.iter().zip(&centers).map(|(variant, c)| variant[step][block] - c).collect();
        mean(&off)
    };
    let blocks: Vec<f64> = (0..n_blocks).map(of_block).collect();
    let left = |(variant, center): (&Vec<Vec<f64>>, &f64)| {
        variant[step].iter().zip(&blocks).map(|(value, block)| value - center - block).collect()
    };
    table.iter().zip(&centers).map(left).collect()
}

fn own_variance(table: &[Vec<Vec<f64>>], variant: usize, step: usize) -> f64 {
    let pairs = table[variant][step].iter().zip(&table[0][step]);
    super::describe::variance(&pairs.map(|(our, their)| our - their).collect::<Vec<f64>>())
}

/// tr(Σ)² / tr(Σ²), at least one.
fn independent_steps(
    n_steps: usize,
    freedom: f64,
    covariance: &dyn Fn(usize, usize) -> f64,
) -> f64 {
    let trace: f64 = (0..n_steps).map(|step| covariance(step, step)).sum();
    let squares: f64 = (0..n_steps)
        .flat_map(|a| (0..n_steps).map(move |b| (a, b)))
        .map(|(a, b)| covariance(a, b).powi(2))
        .sum();
    let unbiased_squares = squares - trace * trace / freedom;
    let unbiased_trace = trace * trace * (freedom + 1.0) / freedom - 2.0 * squares / freedom;
    if unbiased_squares <= 0.0 {
        return n_steps as f64;
    }
    (unbiased_trace / unbiased_squares).clamp(1.0, n_steps as f64)
}

#[cfg(test)]
mod tests;
