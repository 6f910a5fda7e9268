//! Reported during a load in addition to the record.

use dyno_load::Interval;
use dyno_model::Name;
use dyno_record::{EventKind, KindSecond};

use crate::observe::{Sample, six_digits};

const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 1.0];

pub(crate) fn kinds_event(step: String, names: &[Name], interval: &Interval) -> EventKind {
    let seconds = interval.length.as_secs_f64().max(1e-9);
    let per_s = |count: u64| six_digits(count as f64 / seconds);
    let kinds = names.iter().zip(&interval.kinds).map(|(name, kind)| {
        let us = |quantile| kind.response.value_at_quantile(quantile) as f64 / 1e3;
        let is_empty = kind.response.is_empty();
        KindSecond {
            name: name.clone().into_owned(),
            throughput: per_s(kind.outcomes.committed()),
            errors: per_s(kind.outcomes.failed()),
            response_us: QUANTILES
                .into_iter()
                .filter(|_| !is_empty)
                .map(|quantile| (quantile, six_digits(us(quantile))))
                .collect(),
        }
    });
    EventKind::Kinds { step, kinds: kinds.collect() }
}

pub(crate) fn readings_event(sample: &Sample) -> EventKind {
    EventKind::ReadingsTaken { values: sample.values.clone() }
}
