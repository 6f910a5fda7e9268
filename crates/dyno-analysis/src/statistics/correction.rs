//! Correction for many comparisons.

/// Corrects p-values for their number (Holm 1979): the k-th smallest of m is multiplied by m − k +
/// 1, and is at least the one before. Rejecting at α then keeps the probability of any false
/// rejection at or below α, however the comparisons depend on each other.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut corrected = vec![0.0; p_values.len()];
    let mut at_least = 0.0_f64;
    for (rank, &idx) in order.iter().enumerate() {
        at_least = at_least.max(p_values[idx] * (p_values.len() - rank) as f64).min(1.0);
        corrected[idx] = at_least;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(p_values: &[f64], expected: &[f64]) {
        let actual = holm(p_values);
        let same = actual.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(same && actual.len() == expected.len(), "{actual:?}");
    }

    #[test]
    fn known_answers() {
        check(&[], &[]);
        check(&[0.04], &[0.04]);
        check(&[0.01, 0.04, 0.03, 0.005], &[0.03, 0.06, 0.06, 0.02]);
        check(&[0.5, 0.6, 0.9], &[1.0, 1.0, 1.0]);
        check(&[0.02, 0.02], &[0.04, 0.04]);
    }

    proptest! {
        #[test]
        fn between_the_plain_value_and_bonferroni(
            p_values in prop::collection::vec(0.0..1.0_f64, 1..12),
        ) {
            let m = p_values.len() as f64;
            for (corrected, p) in holm(&p_values).into_iter().zip(&p_values) {
                prop_assert!(corrected >= *p && corrected <= (p * m).min(1.0) + 1e-12);
            }
        }
    }
}
