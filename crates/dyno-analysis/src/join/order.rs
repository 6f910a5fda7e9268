//! The steps of several runs in the order of their load.

use std::rc::Rc;

use dyno_record::StepRecord;

use super::Joined;

impl Joined<'_> {
    /// Closed loads by clients, then offered rates, then searches; a workload's own steps stay.
    pub(super) fn order_steps(&mut self) {
        if self.steps.iter().any(|step| step.own.is_some()) {
            return;
        }
        let load = |step: &StepRecord| {
            (step.search.is_some(), step.rate.is_some(), step.rate.unwrap_or(0.0), step.clients)
        };
        let mut order: Vec<usize> = (0..self.steps.len()).collect();
        order.sort_by(|&a, &b| {
            let (a, b) = (load(&self.steps[a]), load(&self.steps[b]));
            a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal)
        });
        let place = |old: usize| order.iter().position(|&idx| idx == old).unwrap_or(old);
        let places: Vec<usize> = (0..order.len()).map(place).collect();
        self.steps = order.iter().map(|&idx| self.steps[idx].clone()).collect();
        // Shared by the trials of a run.
        for trials in self.trials.chunk_by_mut(|a, b| Rc::ptr_eq(&a.step_indexes, &b.step_indexes))
        {
            let Some(first) = trials.first() else { continue };
            let placed: Rc<[usize]> = first.step_indexes.iter().map(|idx| places[*idx]).collect();
            trials.iter_mut().for_each(|trial| trial.step_indexes = Rc::clone(&placed));
        }
    }
}
