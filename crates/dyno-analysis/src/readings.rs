//! The readings that the analysis knows by name: as evidence of stalls, as ages of a server, as
//! resources that a transaction used.
//!
//! The analysis must not know the probes, so these names are written down a second time here. A test
//! of the program compares them with what the probes register: a name that no probe emits is
//! evidence that can never be found.

use crate::{attribution, detect, stalls};

/// Every name or pattern (`*` stands for anything) of readings that the analysis refers to.
pub fn patterns() -> Vec<&'static str> {
    let mut all = stalls::patterns();
    all.extend(detect::patterns());
    all.extend(attribution::uses::patterns());
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether a reading's name fits a pattern.
pub fn fits(pattern: &str, name: &str) -> bool {
    stalls::pattern::fits(pattern, name)
}
