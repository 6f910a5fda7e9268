//! The sentences on the size of data on a volume, and on ZFS snapshots and clones.

use super::AnswerWriter;
use crate::numbers::value;
use crate::words::share;
use crate::{Estimate, MetricId};

const ON_DISK: MetricId = MetricId::new("data.on_disk");
const SNAPSHOT: MetricId = MetricId::new("volume.snapshot_time");
const CLONE: MetricId = MetricId::new("volume.clone_time");

const SAVING_LEAST: f64 = 0.01;

impl AnswerWriter<'_> {
    pub(super) fn smallest(&self) -> Option<String> {
        let all = self.measured(ON_DISK);
        let [(least, size), .., (most, largest)] = all.as_slice() else { return None };
        let is_baseline = |variant: usize| self.findings.variants[variant].baseline.is_none();
        let baseline = all.iter().find(|(variant, _)| is_baseline(*variant) && variant != least);
        let (other, reference) = baseline.copied().unwrap_or((*most, largest));
        let saved = 1.0 - size.value / reference.value;
        if saved < SAVING_LEAST || !saved.is_finite() {
            return Some(format!(
                "The data take about the same disk space in all variants: {} to {}.",
                value(size),
                value(largest)
            ));
        }
        Some(format!(
            "{} takes the least disk space: {}, {} less than {} ({}).",
            self.name(*least),
            value(size),
            share(saved),
            self.name(other),
            value(reference)
        ))
    }

    pub(super) fn snapshots(&self) -> Option<String> {
        let range = |metric: MetricId| {
            let all = self.measured(metric);
            match all.as_slice() {
                [] => None,
                [(_, only)] => Some(value(only)),
                [(_, least), .., (_, most)] if value(least) == value(most) => Some(value(least)),
                [(_, least), .., (_, most)] => Some(format!("{} to {}", value(least), value(most))),
            }
        };
        let (snapshot, clone) = (range(SNAPSHOT)?, range(CLONE)?);
        Some(format!("A snapshot takes {snapshot}, a clone of it {clone}."))
    }

    /// Each variant's last measurement; the least value first.
    fn measured(&self, metric: MetricId) -> Vec<(usize, &Estimate)> {
        let of_variant = |variant: usize| {
            let cells = self.findings.cells.iter().filter(|cell| cell.variant == variant);
            let last = cells
                .filter(|cell| cell.metrics.contains_key(&metric))
                .max_by_key(|cell| cell.step);
            last.and_then(|cell| Some((variant, cell.metrics.get(&metric)?)))
        };
        let mut all: Vec<(usize, &Estimate)> =
            (0..self.findings.variants.len()).filter_map(of_variant).collect();
        all.sort_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
        all
    }
}

#[cfg(test)]
mod tests {
    use dyno_record::Run;
    use dyno_units::Direction::Lower;
    use dyno_units::{Question, Unit, metric};

    use super::*;
    use crate::fixtures::run;
    use crate::{Options, analyse};

    /// Headline and first line of a run with these questions, whose variants take so many bytes of the disk.
    fn answer(questions: &[Question], sizes: [f64; 2], snapshot: Option<f64>) -> (String, String) {
        let mut run: Run = run(&["ext4", "zfs"], &[4], 3, |_, _, _| 1_000.0);
        run.manifest.questions = questions.to_vec();
        for trial in &mut run.trials {
            trial.metrics = vec![
                metric("data.on_disk", Unit::Bytes, Lower, "data on disk", "x").secondary(),
                metric("volume.snapshot_time", Unit::Seconds, Lower, "snapshot", "x").secondary(),
                metric("volume.clone_time", Unit::Seconds, Lower, "clone", "x").secondary(),
            ];
            for step in &mut trial.steps {
                step.figures.insert(ON_DISK, sizes[trial.variant]);
                if let Some(seconds) = snapshot {
                    let seconds = seconds * (1 + trial.variant) as f64;
                    step.figures.extend([(SNAPSHOT, seconds), (CLONE, seconds / 10.0)]);
                }
            }
        }
        let answer = analyse(&[run], &Options::default()).answer;
        (answer.headline, answer.lines[0].clone())
    }

    #[test]
    fn a_study_that_asks_for_the_size_is_answered_with_it() {
        let (headline, _) = answer(&[Question::Space], [400e6, 100e6], None);
        assert_eq!(
            headline,
            "zfs takes the least disk space: 100 MB, 75 % less than ext4 (400 MB)."
        );
        let (headline, _) = answer(&[Question::Space], [100e6, 100.1e6], None);
        assert!(headline.starts_with("The data take about the same disk space"), "{headline}");
        let both = [Question::Best, Question::Space];
        let (headline, line) = answer(&both, [100e6, 400e6], None);
        assert!(!headline.contains("disk"), "{headline}");
        assert_eq!(line, "ext4 takes the least disk space: 100 MB, 75 % less than zfs (400 MB).");
        let (headline, line) = answer(&[Question::Best], [400e6, 100e6], Some(0.1));
        assert!(!(headline + &line).contains("disk"));
    }

    #[test]
    fn snapshots_and_clones_are_said_where_the_study_asks_for_them() {
        let (headline, _) = answer(&[Question::Snapshots], [1e6, 1e6], Some(0.1));
        assert_eq!(
            headline,
            "A snapshot takes 100 ms to 200 ms, a clone of it 10.0 ms to 20.0 ms."
        );
    }
}
