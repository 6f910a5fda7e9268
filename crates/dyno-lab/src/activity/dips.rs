//! Dips: the limit of a volume's device is lowered for a while, repeatedly.

use std::sync::Arc;

use dyno_host::Dips;
use dyno_record::VolumeDip;
use dyno_units::{Clock, Nanoseconds};

use super::{Activity, StepEnd, Surroundings};
use crate::{MadeVolume, Result, VolumeAct};

pub(crate) struct VolumeDips {
    name: String,
    volume: MadeVolume,
    dips: Dips,
    clock: Arc<dyn Clock>,
    made: Vec<VolumeDip>,
}

impl VolumeDips {
    pub(crate) fn of(volume: &MadeVolume, clock: &Arc<dyn Clock>) -> Option<VolumeDips> {
        Some(VolumeDips {
            name: format!("dips of volume {}", volume.name),
            dips: volume.dips?,
            volume: volume.clone(),
            clock: Arc::clone(clock),
            made: Vec::new(),
        })
    }
}

/// Begin and end of the n-th dip, from 0, after the beginning of the measured time.
fn dip(dips: &Dips, n: u64) -> (Nanoseconds, Nanoseconds) {
    let end = Nanoseconds(dips.every.0.saturating_mul(n + 1));
    (end.saturating_sub(dips.length), end)
}

impl Activity for VolumeDips {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, at: &mut Surroundings<'_, '_, '_>) -> Result {
        let began = self.clock.now();
        let limit = self.volume.limit.with(&self.dips.limit).words().unwrap_or_default();
        for n in 0.. {
            let (start, end) = dip(&self.dips, n);
            if !at.wait(&*self.clock, began + start) {
                break;
            }
            let lowered = self.clock.now();
            self.volume.act(VolumeAct::Lower, &[])?;
            let goes_on = at.wait(&*self.clock, began + end);
            self.volume.act(VolumeAct::Raise, &[])?;
            let raised = self.clock.now();
            self.made.push(VolumeDip {
                volume: self.volume.name.clone(),
                start_s: lowered.saturating_sub(began).as_secs_f64(),
                length_s: raised.saturating_sub(lowered).as_secs_f64(),
                limit: limit.clone(),
            });
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    fn add_to(&mut self, end: &mut StepEnd) {
        end.summary.dips.append(&mut self.made);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_period_ends_with_a_dip() {
        let (every, length) = (Nanoseconds::from_secs(60), Nanoseconds::from_secs(5));
        let dips = Dips { every, length, limit: dyno_host::IoLimit::default() };
        let check = |n: u64, start_s: u64, end_s: u64| {
            let expected = (Nanoseconds::from_secs(start_s), Nanoseconds::from_secs(end_s));
            assert_eq!(dip(&dips, n), expected);
        };
        check(0, 55, 60);
        check(1, 115, 120);
        check(9, 595, 600);
    }
}
