//! The sentences on the size of data on a volume, and on ZFS snapshots and clones.

use dyno_record::Run;
use dyno_units::Direction::Lower;
use dyno_units::{Question, Unit, metric};

use crate::answer::figures::{CLONE, ON_DISK, SNAPSHOT};
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
            let size = Some(sizes[trial.variant]).filter(|size| *size > 0.0);
            step.figures.extend(size.map(|size| (ON_DISK, size)));
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
    let is_less = "zfs takes the least disk space: 100 MB, 75.0 % less than ext4 (400 MB; ";
    assert!(headline.starts_with(is_less) && headline.ends_with("n = 3)."), "{headline}");
    let (headline, _) = answer(&[Question::Space], [100e6, 100.1e6], None);
    let same = "No winner on disk: ext4 measured 100 MB (zfs 100 MB), but zfs does not differ by more than 3 %.";
    assert_eq!(headline, same);
    let (headline, line) = answer(&[Question::Space], [0.0, 100e6], None);
    assert!(headline.starts_with("The data of zfs take 100 MB on disk ("), "{headline}");
    assert!(headline.ends_with("n = 3). Without a size at 4 clients: ext4."), "{headline}");
    assert!(!line.contains("Not answered"), "{line}");
    let both = [Question::Best, Question::Space];
    let (headline, line) = answer(&both, [100e6, 400e6], None);
    assert!(!headline.contains("disk"), "{headline}");
    let is_less = "ext4 takes the least disk space: 100 MB, 75.0 % less than zfs (400 MB; ";
    assert!(line.starts_with(is_less), "{line}");
    let (headline, line) = answer(&[Question::Best], [400e6, 100e6], Some(0.1));
    assert!(!(headline + &line).contains("disk"));
}

#[test]
fn snapshots_and_clones_are_said_where_the_study_asks_for_them() {
    let (headline, _) = answer(&[Question::Snapshots], [1e6, 1e6], Some(0.1));
    assert_eq!(
        headline,
        "A snapshot takes 100 ms (ext4) to 200 ms (zfs), a clone of it 10.0 ms (ext4) to 20.0 ms (zfs) (n = 3)."
    );
}
