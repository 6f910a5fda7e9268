//! Whether keys were drawn as intended: counters, and the test of Kolmogorov and Smirnov. Without
//! its skew, a benchmark measures caches that fit and locks without contention, and looks better.
//! So each client counts its draws, and the audit compares their sum with the intended
//! distribution.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::AuditRow;

/// Fine enough for any skew, small enough for each client.
const BINS_MOST: usize = 256;

/// Number of bins if each of very many clients has its own.
const BINS_FEW: u64 = 64;

/// ln(2 / α), α = 6.8e-6: both normal tails beyond 4.5 standard deviations.
const LN_TWO_PER_ALPHA: f64 = 12.59;

/// Distance below which draws have to stay to show anything: a missing skew is further away.
const KS_LIMIT_MOST: f64 = 0.25;

/// One client adds, without waiting; others may read at any time.
#[derive(Debug)]
pub struct Counters(Box<[AtomicU64]>);

impl Counters {
    pub(crate) fn new(n: usize) -> Counters {
        Counters((0..n).map(|_| AtomicU64::new(0)).collect())
    }

    pub(crate) fn add_to(&self, sums: &mut [u64]) {
        for (sum, counter) in sums.iter_mut().zip(&self.0) {
            *sum += counter.load(Ordering::Relaxed);
        }
    }

    #[inline]
    pub fn add(&self, idx: usize, by: u64) {
        // One writer: nothing can come between the two.
        let counter = &self.0[idx];
        counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub struct CounterSet {
    n: usize,
    clients: Mutex<Vec<Arc<Counters>>>,
}

impl CounterSet {
    pub fn new(n: usize) -> CounterSet {
        CounterSet { n, clients: Mutex::default() }
    }

    /// The counters of one further client. Locks and allocates: for a client's beginning.
    pub fn client(&self) -> Arc<Counters> {
        let counters = Arc::new(Counters::new(self.n));
        self.clients
            .lock()
            .expect("no thread panics while it holds the lock")
            .push(Arc::clone(&counters));
        counters
    }

    pub fn sums(&self) -> Vec<u64> {
        let mut sums = vec![0; self.n];
        let clients = self.clients.lock().expect("no thread panics while it holds the lock");
        clients.iter().for_each(|counters| counters.add_to(&mut sums));
        sums
    }
}

/// How keys are cut into bins, and what share of the draws each bin should get.
#[derive(Clone, Debug)]
pub struct KeyBins {
    rule: Rule,
    expected: Vec<f64>,
}

#[derive(Clone, Debug)]
enum Rule {
    Even(u64),
    Table(Vec<u16>),
}

impl KeyBins {
    /// For `n_keys` keys of which each is as likely as any other. `n_keys` must not be 0.
    pub fn even(n_keys: u64) -> KeyBins {
        KeyBins::cut(n_keys, BINS_MOST as u64, |first, end| (end - first) as f64 / n_keys as f64)
    }

    /// For `n_keys` keys (not 0), where those before key k should get the share `share_before(k)`.
    /// Neighbours share a bin, and bins are few, as there may be many clients.
    pub fn of_neighbours(n_keys: u64, share_before: impl Fn(u64) -> f64) -> KeyBins {
        KeyBins::cut(n_keys, BINS_FEW, |first, end| share_before(end) - share_before(first))
    }

    fn cut(n_keys: u64, bins_most: u64, share: impl Fn(u64, u64) -> f64) -> KeyBins {
        assert!(n_keys > 0, "nothing can be drawn from no keys");
        let n_bins = n_keys.min(bins_most);
        // Bin b begins with the first key whose product reaches b whole times n_keys.
        let start =
            |bin: u64| (u128::from(bin) * u128::from(n_keys)).div_ceil(u128::from(n_bins)) as u64;
        let expected = (0..n_bins).map(|bin| share(start(bin), start(bin + 1))).collect();
        KeyBins { rule: Rule::Even(n_keys), expected }
    }

    /// Key k should have the probability `shares[k]`; they need not sum to 1. The hottest keys come
    /// first: a wrong skew shows most there.
    pub fn hottest_first(shares: &[f64]) -> KeyBins {
        let total: f64 = shares.iter().sum();
        assert!(total > 0.0, "nothing can be drawn from no keys");
        let mut keys: Vec<usize> = (0..shares.len()).collect();
        keys.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]).then(a.cmp(&b)));
        let mut table = vec![0; shares.len()];
        let mut expected = vec![0.0];
        let mut before = 0.0;
        for key in keys {
            let is_full = before >= total * expected.len() as f64 / BINS_MOST as f64;
            if is_full && expected.len() < BINS_MOST {
                expected.push(0.0);
            }
            table[key] = (expected.len() - 1) as u16;
            expected[table[key] as usize] += shares[key] / total;
            before += shares[key];
        }
        KeyBins { rule: Rule::Table(table), expected }
    }

    #[inline]
    fn bin_of(&self, key: u64) -> usize {
        match &self.rule {
            Rule::Even(n_keys) => {
                let (key, n_bins) = (key.min(n_keys - 1), self.expected.len());
                match key.checked_mul(n_bins as u64) {
                    // Nearly always: a division of twice the width costs many times as much.
                    Some(product) => (product / n_keys) as usize,
                    None => {
                        let product = u128::from(key) * n_bins as u128;
                        (product / u128::from(*n_keys)) as usize
                    }
                }
            }
            Rule::Table(table) => table.get(key as usize).map_or(0, |&bin| bin.into()),
        }
    }
}

#[derive(Debug)]
pub struct DrawnKeys {
    bins: KeyBins,
    counts: CounterSet,
}

#[derive(Debug)]
pub struct DrawnByClient {
    keys: Arc<DrawnKeys>,
    counters: Arc<Counters>,
}

impl DrawnByClient {
    #[inline]
    pub fn note(&self, key: u64) {
        self.counters.add(self.keys.bins.bin_of(key), 1);
    }
}

impl DrawnKeys {
    pub fn new(bins: KeyBins) -> Arc<DrawnKeys> {
        let counts = CounterSet::new(bins.expected.len());
        Arc::new(DrawnKeys { bins, counts })
    }

    /// For one further client. Locks and allocates: for a client's beginning.
    pub fn client(self: &Arc<Self>) -> DrawnByClient {
        DrawnByClient { counters: self.counts.client(), keys: Arc::clone(self) }
    }

    pub fn sums(&self) -> Vec<u64> {
        self.counts.sums()
    }

    /// Adds what clients elsewhere have drawn of the same bins; nothing if there are others.
    pub fn add(&self, sums: &[u64]) {
        if sums.len() == self.bins.expected.len() {
            let elsewhere = self.counts.client();
            sums.iter().enumerate().for_each(|(bin, n)| elsewhere.add(bin, *n));
        }
    }

    pub fn audit_row(&self, name: &str) -> AuditRow {
        distance_row(name, &self.counts.sums(), &self.bins.expected)
    }
}

/// Keys with distributions of their own, each with the name of its row in the audit.
#[derive(Debug)]
pub(crate) struct DrawnKinds<const N: usize>(pub(crate) [(&'static str, Arc<DrawnKeys>); N]);

impl<const N: usize> DrawnKinds<N> {
    pub(crate) fn client(&self) -> [DrawnByClient; N] {
        self.0.each_ref().map(|(_, keys)| keys.client())
    }

    pub(crate) fn audit_rows(&self) -> impl Iterator<Item = AuditRow> {
        self.0.iter().map(|(name, keys)| keys.audit_row(name))
    }
}

pub fn distance_row(name: &str, counts: &[u64], expected: &[f64]) -> AuditRow {
    let n: u64 = counts.iter().sum();
    let (distance, limit) = (ks_distance(counts, expected), ks_limit(n));
    let name = format!("{name}: distance from the intended distribution (Kolmogorov–Smirnov)");
    let expected = format!("at most {limit:.4} for {n} draws");
    let row = AuditRow::judged(name, expected, format!("{distance:.4}"), distance <= limit);
    row.undecided_if(limit > KS_LIMIT_MOST)
}

/// Kolmogorov and Smirnov's over bins: the largest difference of cumulated shares; 0 if empty.
pub fn ks_distance(counts: &[u64], expected: &[f64]) -> f64 {
    let n: u64 = counts.iter().sum();
    if n == 0 {
        return 0.0;
    }
    let total: f64 = expected.iter().sum();
    let (mut found, mut cumulated, mut most) = (0, 0.0, 0.0_f64);
    for (count, share) in counts.iter().zip(expected) {
        found += count;
        cumulated += share / total;
        most = most.max((found as f64 / n as f64 - cumulated).abs());
    }
    most
}

/// Bound of the distance in all but 7 of a million cases: √(ln(2/α)/2n), the bound of Dvoretzky,
/// Kiefer and Wolfowitz with Massart's constant (1990), valid for every n, and on the safe side for
/// bins.
pub fn ks_limit(n: u64) -> f64 {
    (LN_TWO_PER_ALPHA / (2.0 * n.max(1) as f64)).sqrt().min(1.0)
}

/// How far hits among `n` tries of probability `p` are from n·p, in all but 7 of a million cases.
pub fn share_tolerance(n: u64, p: f64) -> f64 {
    sum_tolerance(n, p * (1.0 - p), 1.0)
}

/// How far the sum of `n` independent draws stays from its mean, in all but 7 of a million cases;
/// no draw is further than `reach` from its own. Bernstein's inequality, valid for every n, where
/// standard deviations fail for rare events.
pub fn sum_tolerance(n: u64, variance: f64, reach: f64) -> f64 {
    let third = LN_TWO_PER_ALPHA * reach / 3.0;
    third + (third * third + 2.0 * LN_TWO_PER_ALPHA * n as f64 * variance).sqrt()
}

/// Checks that `hits` of `n` tries are a share of `p`, as exactly as `n` tries can show, plus or
/// minus `unknown` hits. Undecided if chance could explain no hit at all.
pub fn share_row(name: &str, p: f64, (hits, n): (u64, u64), unknown: u64) -> AuditRow {
    let (low, high) = if p <= 0.0 {
        (0.0, 0.0)
    } else {
        let tolerance = share_tolerance(n, p) + unknown as f64;
        let mean = n as f64 * p;
        ((mean - tolerance).max(0.0), (mean + tolerance).min(n as f64))
    };
    let percent = |hits: f64| 100.0 * hits / n.max(1) as f64;
    let bounds = format!("({:.2} to {:.2} of {n})", percent(low), percent(high));
    let (expected, hits) = (format!("{:.2} % {bounds}", 100.0 * p), hits as f64);
    let measured = format!("{:.2} %", percent(hits));
    let row = AuditRow::judged(name, expected, measured, (low..=high).contains(&hits));
    row.undecided_if(p > 0.0 && low <= 0.0)
}

#[cfg(test)]
mod tests {
    use dyno_units::Seed;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn distances_are_those_of_hand() {
        let check = |counts: &[u64], shares: &[f64], expected: f64| {
            assert!((ks_distance(counts, shares) - expected).abs() < 1e-12, "{counts:?}");
        };
        check(&[5, 5], &[0.5, 0.5], 0.0);
        check(&[10, 0], &[0.5, 0.5], 0.5);
        check(&[1, 2, 1], &[0.5, 0.25, 0.25], 0.25);
        check(&[0, 0], &[0.5, 0.5], 0.0);
        check(&[3, 1], &[2.0, 2.0], 0.25);
    }

    #[test]
    fn limits_fall_with_the_root_of_the_draws() {
        assert_eq!(ks_limit(0), 1.0);
        assert!((ks_limit(10_000) - 0.02509).abs() < 1e-5);
        assert!((ks_limit(1_000_000) * 10.0 - ks_limit(10_000)).abs() < 1e-12);
        // About five standard deviations if they are many, and never less than 8 hits.
        assert!((share_tolerance(1_000_000, 0.5) / 500.0 - 5.03).abs() < 0.01);
        assert!(share_tolerance(1, 0.01) > 8.0);
    }

    #[test]
    fn shares_are_judged_by_how_many_tries_there_were() {
        let passes = |p, hits, n, unknown| share_row("x", p, (hits, n), unknown).pass;
        assert!(passes(0.01, 0, 100, 0));
        assert!(!passes(0.01, 0, 100_000, 0));
        assert!(passes(0.01, 1_000, 100_000, 0));
        assert!(!passes(0.01, 1_200, 100_000, 0) && passes(0.01, 1_200, 100_000, 100));
        assert!(passes(0.0, 0, 10, 0) && !passes(0.0, 1, 100, 5));
        assert!(passes(1.0, 50, 50, 0) && !passes(1.0, 30, 50, 0));
        // Where never once would be chance too, nothing is decided; where too often is not, it is.
        let undecided = |p, hits, n| share_row("x", p, (hits, n), 0).is_undecided;
        assert!(undecided(0.01, 0, 2000) && undecided(0.01, 20, 2000));
        assert!(!undecided(0.01, 900, 2000) && !undecided(0.01, 40, 4000));
        assert!(!undecided(0.0, 0, 10) && undecided(0.45, 0, 0));
        let row = share_row("x", 0.6, (615, 1000), 0);
        assert_eq!(
            (&*row.expected, &*row.measured),
            ("60.00 % (51.80 to 68.20 of 1000)", "61.50 %")
        );
    }

    #[test]
    fn few_draws_decide_nothing() {
        let undecided = |n| distance_row("x", &[n, n], &[0.5, 0.5]).is_undecided;
        assert!(undecided(0) && undecided(50) && !undecided(51));
        assert!(!distance_row("x", &[90, 0], &[0.5, 0.5]).pass);
    }

    fn row_of(bins: KeyBins, n: u64, mut draw: impl FnMut() -> u64) -> AuditRow {
        let keys = DrawnKeys::new(bins);
        let clients = [keys.client(), keys.client()];
        (0..n).for_each(|nth| clients[nth as usize % 2].note(draw()));
        keys.audit_row("keys")
    }

    #[test]
    fn a_skew_that_is_gone_is_found_and_one_that_is_there_passes() {
        let shares: Vec<f64> = (0..1000).map(|key| 1.0 / f64::from(key + 1)).collect();
        let bins = KeyBins::hottest_first(&shares);
        let mut random = Seed(1).stream();
        let row = row_of(bins.clone(), 500, || random.below(1000));
        assert!(!row.pass, "{row:?}");
        // Zipf's law with exponent 1, by its approximate inverse.
        let cumulated: Vec<f64> = shares
            .iter()
            .scan(0.0, |sum, share| {
                *sum += share;
                Some(*sum)
            })
            .collect();
        let row = row_of(bins, 50_000, || {
            let at = random.unit() * cumulated[999];
            cumulated.partition_point(|&sum| sum <= at) as u64
        });
        assert!(row.pass, "{row:?}");
        let mut random = Seed(2).stream();
        assert!(row_of(KeyBins::even(1_000_003), 50_000, || random.below(1_000_003)).pass);
        assert!(!row_of(KeyBins::even(1_000_003), 50_000, || random.below(900_000)).pass);
        assert!(row_of(KeyBins::even(3), 50_000, || random.below(3)).pass);
    }

    proptest! {
        #[test]
        fn every_key_has_a_bin_and_the_bins_have_the_keys_shares(
            n_keys in 1_u64..5000,
            n_clients in 1_usize..4,
        ) {
            let keys = DrawnKeys::new(KeyBins::even(n_keys));
            let clients: Vec<_> = (0..n_clients).map(|_| keys.client()).collect();
            (0..n_keys).for_each(|key| clients[key as usize % n_clients].note(key));
            let counts = keys.counts.sums();
            prop_assert_eq!(counts.iter().sum::<u64>(), n_keys);
            prop_assert!(ks_distance(&counts, &keys.bins.expected) < 1e-9);
        }

        #[test]
        fn hot_keys_come_first(shares in prop::collection::vec(0.0_f64..1.0, 1..2000)) {
            prop_assume!(shares.iter().sum::<f64>() > 0.0);
            let bins = KeyBins::hottest_first(&shares);
            prop_assert!(bins.expected.len() <= BINS_MOST);
            prop_assert!((bins.expected.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            for a in 0..shares.len() - 1 {
                if shares[a] > shares[a + 1] {
                    prop_assert!(bins.bin_of(a as u64) <= bins.bin_of(a as u64 + 1));
                }
            }
        }
    }
}
