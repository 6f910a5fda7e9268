//! The common error of a family: one estimate and one guard for verdicts, other effects, ranking,
//! groups of loads and kinds, so that no two figures contradict each other.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::join::Joined;
use crate::statistics::{PooledError, pooled_errors};

use super::{Draft, Levels};

/// By variant, from the second of an order on, and place.
type Errors = Option<Vec<Vec<PooledError>>>;

/// Values of one metric by variant and place (a step, a group of steps, a kind at a step), for the
/// errors of all differences between variants.
pub(crate) struct CommonError {
    /// By variant.
    baselines: Vec<Option<usize>>,
    /// Natural logarithms by block, of each variant and place with any value, also zero.
    logs: BTreeMap<(usize, usize), BTreeMap<u32, f64>>,
    places: Vec<usize>,
    /// Estimates so far, by the order of variants.
    known: RefCell<HashMap<Vec<usize>, Errors>>,
}

impl CommonError {
    /// From `values(variant, place)` with blocks. `None` if effects have their own pairs only:
    /// trials not interleaved, several runs, or variants stopped early (incomplete blocks).
    pub(crate) fn new(
        joined: &Joined<'_>,
        levels: &Levels<'_>,
        n_places: usize,
        values: impl Fn(usize, usize) -> Vec<(u32, f64)>,
    ) -> Option<CommonError> {
        if !joined.interleaved || joined.n_runs != 1 || levels.stops_early {
            return None;
        }
        let baselines: Vec<Option<usize>> = joined.variants.iter().map(|v| v.baseline).collect();
        let mut logs = BTreeMap::new();
        for (variant, place) in
            (0..baselines.len()).flat_map(|v| (0..n_places).map(move |place| (v, place)))
        {
            let own = values(variant, place);
            if !own.is_empty() {
                let positive = own.into_iter().filter(|(_, value)| *value > 0.0);
                let own = positive.map(|(block, value)| (block, value.ln())).collect();
                logs.insert((variant, place), own);
            }
        }
        let is_there = |variant: usize, place: usize| logs.contains_key(&(variant, place));
        let is_compared = |place: &usize| {
            let both = |(variant, baseline): (usize, &Option<usize>)| {
                baseline.is_some_and(|b| is_there(variant, *place) && is_there(b, *place))
            };
            baselines.iter().enumerate().any(both)
        };
        let places = (0..n_places).filter(is_compared).collect();
        let known = RefCell::new(HashMap::new());
        Some(CommonError { baselines, logs, places, known })
    }

    /// Error of a difference, in either order; `None` with too few values. Against its baseline a
    /// variant has the error of the baseline's comparisons; two others have the larger error of
    /// both directions, among those that share their baseline, or else all.
    pub(crate) fn of(&self, (one, other): (usize, usize), place: usize) -> Option<PooledError> {
        if self.baselines[one] == Some(other) {
            return self.against(other, one, Some(other), place);
        }
        if self.baselines[other] == Some(one) {
            return self.against(one, other, Some(one), place);
        }
        let shared = self.baselines[one].filter(|_| self.baselines[one] == self.baselines[other]);
        let there = self.against(other, one, shared, place)?;
        let back = self.against(one, other, shared, place)?;
        Some(if there.variance >= back.variance { there } else { back })
    }

    /// From what is compared with `baseline`, or from all.
    fn against(
        &self,
        first: usize,
        variant: usize,
        baseline: Option<usize>,
        place: usize,
    ) -> Option<PooledError> {
        let is_member = |v: &usize| {
            let has_any = self.places.iter().any(|place| self.logs.contains_key(&(*v, *place)));
            let is_kin = baseline.is_none_or(|b| *v == b || self.baselines[*v] == Some(b));
            *v != first && has_any && is_kin
        };
        let rest = (0..self.baselines.len()).filter(is_member);
        let order: Vec<usize> = std::iter::once(first).chain(rest).collect();
        let variant = order.iter().position(|v| *v == variant)?.checked_sub(1)?;
        let place = self.places.iter().position(|p| *p == place)?;
        let mut known = self.known.borrow_mut();
        let errors = match known.get(&order) {
            Some(errors) => errors,
            None => {
                let errors = pooled_errors(&self.table(&order));
                known.entry(order).or_insert(errors)
            }
        };
        Some(errors.as_ref()?[variant][place])
    }

    /// By variant, place and block, of blocks in which all have one.
    fn table(&self, variants: &[usize]) -> Vec<Vec<Vec<f64>>> {
        let cells = || variants.iter().flat_map(|v| self.places.iter().map(move |p| (*v, *p)));
        let has_all = |block: &u32| {
            cells().all(|cell| self.logs.get(&cell).is_some_and(|own| own.contains_key(block)))
        };
        let own = cells().filter_map(|cell| self.logs.get(&cell));
        let all: BTreeSet<u32> = own.flat_map(|own| own.keys().copied()).collect();
        let blocks: Vec<u32> = all.into_iter().filter(has_all).collect();
        let of_place = |variant: usize, place: usize| -> Vec<f64> {
            blocks.iter().map(|block| self.logs[&(variant, place)][block]).collect()
        };
        let of = |v: &usize| self.places.iter().map(|place| of_place(*v, *place)).collect();
        variants.iter().map(of).collect()
    }
}

/// `places` are those of the drafts.
pub(crate) fn pool(
    drafts: &mut [Draft],
    places: &[usize],
    errors: Option<&CommonError>,
    levels: &Levels<'_>,
) {
    let Some(errors) = errors else { return };
    for (draft, place) in drafts.iter_mut().zip(places) {
        let comparison = &draft.comparison;
        let pair = (comparison.variant, comparison.baseline);
        let error = errors.of(pair, *place).filter(|_| comparison.paired);
        if let Some(error) = error {
            let rule = levels.of(comparison.variant);
            draft.pool(error, &rule);
        }
    }
}
