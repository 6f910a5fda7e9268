//! What a study says of a job.

use dyno_units::{Direction, Metric, MetricId, MetricRole, Nanoseconds, SettingValue, Unit};

use crate::{FieldValue, Table, Variant};

/// One `[job.NAME]`, with what it inherits and the levels of a variant filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct JobChoice {
    /// Its name in the study, with which the ids of its figures begin.
    pub name: String,
    pub work: JobWork,
    /// A command that runs before it begins, not timed; empty if there is none.
    pub setup: Vec<String>,
    /// Statements sent before it begins and after `setup`, not timed.
    pub before: Vec<String>,
    /// Whether the tables must be the same before `setup` and after the job.
    pub same_tables: bool,
    /// A statement that must return something true after it.
    pub check: Option<String>,
    pub load: JobLoad,
    /// How long after the step's beginning it begins.
    pub start_after: Nanoseconds,
    /// The member with which it works; none for the server that is measured.
    pub member: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JobWork {
    Sql {
        /// In the order in which they are sent.
        statements: Vec<String>,
        /// Connections, each with one statement at a time.
        at_once: usize,
    },
    /// Statements that are sent as a batch, again and again, until one handles no row.
    Batches {
        /// The statements of a batch; the last one returns the number of rows that it handled.
        statements: Vec<String>,
        /// Connections, each with batches of its own.
        at_once: usize,
        pause: Nanoseconds,
    },
    Command {
        command: Vec<String>,
        figures: Vec<Metric>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobLoad {
    Off,
    UntilDone,
    /// It ends by itself, and the job with it.
    On,
}

/// Figures of a command that Dyno measures itself.
const MEASURED: [&str; 3] = ["time", "cpu", "rss_peak"];

/// A figure of a job from its name and what the study says of it: `1/s, higher`. None if that is no
/// unit and a direction, or the name cannot be that of a figure or is one of [`MEASURED`].
pub(crate) fn figure(name: &str, text: &str) -> Option<Metric> {
    let (unit, better) = text.rsplit_once(',').filter(|_| !MEASURED.contains(&name))?;
    let better = match better.trim() {
        "higher" => Direction::Higher,
        "lower" => Direction::Lower,
        _ => return None,
    };
    let unit = unit.trim();
    let is_unit = !unit.is_empty() && unit.chars().count() <= 20;
    let is_right = is_unit && !unit.contains(|c: char| c.is_control());
    Some(Metric {
        id: MetricId::parse(&format!("job.{name}"))?,
        unit: is_right.then(|| Unit::from(unit))?,
        better,
        role: MetricRole::Secondary,
        at_most: None,
        title: format!("{name} of the job").into(),
        text: format!("what the command of the job printed as {name}").into(),
    })
}

impl JobChoice {
    /// Whether it sends statements to the server.
    pub fn has_sql(&self) -> bool {
        let is_command = matches!(self.work, JobWork::Command { .. });
        !is_command || !self.before.is_empty() || self.check.is_some() || self.same_tables
    }

    /// A job with the values of a table that was checked; none if it is no job's, or does nothing.
    pub(crate) fn of(table: &Table) -> Option<JobChoice> {
        (table.kind == "job").then_some(())?;
        let texts = |field: &str| table.texts(field).to_vec();
        let figures = table.named("figures").filter_map(|(name, value)| match value {
            FieldValue::Setting(SettingValue::Text(text)) => figure(name, text),
            _ => None,
        });
        let at_once = table.number("at_once").unwrap_or(1) as usize;
        let work = match texts("command") {
            _ if table.text("repeat") == Some("until-no-rows") && !texts("sql").is_empty() => {
                JobWork::Batches {
                    statements: texts("sql"),
                    at_once,
                    pause: table.time("pause").unwrap_or_default(),
                }
            }
            command if !command.is_empty() => {
                JobWork::Command { command, figures: figures.collect() }
            }
            _ => JobWork::Sql { statements: texts("sql"), at_once },
        };
        if matches!(&work, JobWork::Sql { statements, .. } if statements.is_empty()) {
            return None;
        }
        Some(JobChoice {
            name: table.name.clone(),
            work,
            setup: texts("setup"),
            before: texts("before"),
            same_tables: table.is_on("same_tables"),
            check: table.owned("check"),
            load: match table.text("load") {
                Some("until-done") => JobLoad::UntilDone,
                Some("on") => JobLoad::On,
                _ => JobLoad::Off,
            },
            start_after: table.time("start_after").unwrap_or_default(),
            member: table.owned("member"),
        })
    }
}

/// The kind of a variant's table that is the other database of its job. In studies it is a [database.NAME].
pub(crate) const OTHER_DATABASE: &str = "other_database";

impl Variant {
    pub fn job(&self) -> Option<JobChoice> {
        self.tables.iter().find_map(|table| JobChoice::of(table))
    }
}
