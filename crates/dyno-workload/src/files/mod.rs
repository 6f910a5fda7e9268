//! Workloads that measure a volume without a server: clients read, write and sync files.
//!
//! `file-io` works like fio and `sysbench fileio`: reads and writes of one size at random or
//! sequential places. `fsync` works like a database's log: a small write, then a sync. A file is a
//! [`Table`](crate::Table) and a block a row, so the fill phase makes the files. Clients send a
//! [`FileCommand`] as text, which the product executes. All content follows from the seed and can be
//! checked: see [`Content`].

mod command;
mod content;
mod io;
mod sync;

#[cfg(test)]
mod tests;

use dyno_units::Direction::{Higher, Lower};
use dyno_units::{Metric, MetricId, Unit, metric};

use crate::prelude::*;
use crate::workload::MeasuredStep;

pub use command::{FileCommand, FileSet, file_name, file_number};
pub use content::{Content, SECTOR, Sectors};

pub fn specs() -> Vec<WorkloadSpec> {
    vec![io::spec(), sync::spec()]
}

/// What a step of these workloads measures besides operations and their times.
#[rustfmt::skip]
const FIGURES: &[Metric] = &[
    metric("io.data_rate", Unit::BytesPerSecond, Higher, "data rate", "bytes of the blocks read and written ÷ measured time").secondary(),
    metric("io.cpu_per_operation", Unit::Microseconds, Lower, "CPU per operation", "CPU time of Dyno's process, which does the operations itself, ÷ operations").secondary(),
];

fn figures(step: &MeasuredStep<'_>, block: u64) -> Vec<(MetricId, f64)> {
    let operations: u64 = step.committed.iter().sum();
    let mut figures = Vec::new();
    if step.seconds > 0.0 {
        figures.push((FIGURES[0].id, (operations * block) as f64 / step.seconds));
    }
    if let Some(cpu_s) = step.cpu_s
        && operations > 0
    {
        figures.push((FIGURES[1].id, cpu_s * 1e6 / operations as f64));
    }
    figures
}

/// What the answer to [`FileCommand::Check`] says: one row with these numbers.
struct Checked {
    /// Bytes of all files, holes included.
    size: Option<i128>,
    /// Bytes that the filesystem has allocated for them.
    on_disk: Option<i128>,
    sectors: Option<i128>,
    /// Sectors that nobody has written.
    empty: Option<i128>,
    /// Sectors that do not hold what was written there.
    wrong: Option<i128>,
}

impl Checked {
    fn read(answers: &[TextRows]) -> Checked {
        let number = |column| answers.first().and_then(|answer| number_in(answer, 0, column));
        let [size, on_disk, sectors, empty, wrong] = [0, 1, 2, 3, 4].map(number);
        Checked { size, on_disk, sectors, empty, wrong }
    }

    fn filled(&self) -> AuditRow {
        AuditRow::equal("sectors without content", 0, self.empty)
    }

    fn content(&self) -> AuditRow {
        let read = self.sectors.map_or("no number".to_owned(), |n| n.to_string());
        let name = format!("sectors with wrong content, of {read} that were read back");
        AuditRow::equal(name, 0, self.wrong).undecided_if(self.sectors == Some(0))
    }

    /// Files must have their size; how much is on disk is up to the filesystem.
    fn bytes(&self, bounds: (i128, i128)) -> AuditRow {
        let AuditRow { name, expected, mut measured, pass, .. } =
            AuditRow::between("bytes of the files", bounds, self.size);
        if let (Some(size), Some(on_disk)) = (self.size, self.on_disk)
            && size > 0
        {
            let share = on_disk as f64 / size as f64;
            measured = format!("{measured}; {on_disk} on disk, {share:.3} of that");
        }
        AuditRow::judged(name, expected, measured, pass)
    }
}
