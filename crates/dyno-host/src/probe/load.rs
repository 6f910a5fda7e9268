//! Threads that want to run, over the last minutes, from `/proc/loadavg`.

use std::path::Path;

use dyno_units::reading::prelude::*;

use super::source::Source;
use super::{Probe, insert, levels};
use crate::kernel_text::load_average;

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("load.avg1", Unit::other("threads"), "Load average (1 min)", "threads that ran or waited, exponentially damped average over a minute").chart(Topic::Load, 2).row(320),
    reading("load.threads", Unit::other("threads"), "threads", "threads on the machine"),
];

pub(super) fn probe(proc_root: &Path) -> Box<dyn Probe> {
    let mut source = Source::new(proc_root.join("loadavg"));
    levels(("load", READINGS), move |readings| {
        let (avg1, threads) = load_average(source.text()?);
        insert(readings, "load.avg1", avg1);
        insert(readings, "load.threads", threads);
        None
    })
}
