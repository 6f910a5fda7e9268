//! Sequential stopping: variants that need no more repetitions. Decided before each block, from
//! earlier blocks only, so that a run resumed in the middle of a block decides like an uninterrupted
//! one. A settled variant stays settled.

use std::collections::BTreeMap;
use std::path::Path;

use dyno_record::EventKind;
use dyno_study::Plan;

/// Indexes of variants that need no more repetitions, with reasons. Given the run's folder and a
/// block; may use only earlier blocks.
pub type Decide<'a> = &'a dyn Fn(&Path, u32) -> anyhow::Result<Vec<(usize, String)>>;

pub(crate) struct Stopping<'a> {
    plan: &'a Plan,
    folder: &'a Path,
    /// The decision, and the blocks before the first one; none if all variants get all repetitions.
    looking: Option<(Decide<'a>, u32)>,
    looked: u32,
    settled: BTreeMap<usize, String>,
}

impl<'a> Stopping<'a> {
    pub(crate) fn new(plan: &'a Plan, folder: &'a Path, rule: Option<Decide<'a>>) -> Stopping<'a> {
        let looking = rule.zip(plan.repetitions_min);
        Stopping { plan, folder, looking, looked: 0, settled: BTreeMap::new() }
    }

    /// Decides if it is this block's turn, once. Returns events for newly settled variants.
    pub(crate) fn look(&mut self, block: u32) -> anyhow::Result<Vec<EventKind>> {
        let Some((decide, least)) = self.looking else { return Ok(Vec::new()) };
        if block <= least.max(self.looked) {
            return Ok(Vec::new());
        }
        self.looked = block;
        let mut told = Vec::new();
        for (variant, why) in decide(self.folder, block)? {
            let Some(name) = self.plan.variants.get(variant).map(|variant| &variant.name) else {
                continue;
            };
            if self.settled.contains_key(&variant) {
                continue;
            }
            let (repetitions, variant_name) = (block - 1, name.clone());
            told.push(EventKind::VariantSettled {
                variant: variant_name,
                repetitions,
                why: why.clone(),
            });
            self.settled.insert(variant, why);
        }
        Ok(told)
    }

    pub(crate) fn settled(&self, variant: usize) -> Option<&String> {
        self.settled.get(&variant)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn plan() -> Plan {
        crate::fixture::plan(&[1], "repetitions = 6\nstop = 'settled'\nrepetitions_min = 2\n")
    }

    #[test]
    fn it_looks_once_a_block_and_never_takes_back() {
        let plan = plan();
        let asked = RefCell::new(Vec::new());
        let decide = |_: &Path, block: u32| {
            asked.borrow_mut().push(block);
            Ok(if block == 4 { vec![(1, "better".to_owned())] } else { Vec::new() })
        };
        let mut stopping = Stopping::new(&plan, Path::new("run"), Some(&decide));
        let mut told = Vec::new();
        for block in [1, 1, 2, 2, 3, 3, 4, 4, 5, 5] {
            told.extend(stopping.look(block).expect("it can look"));
            assert_eq!(stopping.settled(0), None);
            assert_eq!(stopping.settled(1).is_some(), block >= 4);
        }
        assert_eq!(*asked.borrow(), [3, 4, 5]);
        let (variant, why) = ("b".to_owned(), "better".to_owned());
        assert_eq!(told, [EventKind::VariantSettled { variant, repetitions: 3, why }]);
    }

    #[test]
    fn without_anybody_who_decides_all_is_repeated() {
        let plan = plan();
        let mut stopping = Stopping::new(&plan, Path::new("run"), None);
        assert_eq!(stopping.look(5).expect("there is nothing to look at"), []);
        assert_eq!(stopping.settled(0), None);
    }
}
