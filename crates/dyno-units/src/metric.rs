//! Metrics as data: what is estimated for each variant at each step.
//!
//! Code that measures a figure declares it as one line of a table:
//!
//! ```
//! use dyno_units::{Direction::Lower, Metric, Unit, metric};
//!
//! #[rustfmt::skip]
//! const FIGURES: &[Metric] = &[
//!     metric("job.time", Unit::Seconds, Lower, "job time", "from the start of the job to its end").main(),
//!     metric("job.rss_peak", Unit::Bytes, Lower, "peak RSS of the job", "most resident memory of its processes").secondary(),
//! ];
//! assert_eq!(FIGURES[0].id.as_str(), "job.time");
//! ```
//!
//! A trial's record holds the values by id, with these lines. Analysis and report loop over them:
//! a new figure is estimated, compared, ranked, gated and shown without a change there.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;

use crate::locked;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Unit;

/// In bytes.
pub const METRIC_ID_MAX: usize = 100;

/// `throughput`, `job.time`. Ids read from text are interned for the life of the process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetricId(&'static str);

static READ: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

impl MetricId {
    pub const fn new(id: &'static str) -> MetricId {
        MetricId(id)
    }

    /// `None` if it is empty, too long, or has anything but ASCII letters, digits and `._-`.
    pub fn parse(text: &str) -> Option<MetricId> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if text.is_empty() || text.len() > METRIC_ID_MAX || !text.chars().all(is_part) {
            return None;
        }
        let mut read = locked(&READ);
        if let Some(known) = read.get(text) {
            return Some(MetricId(known));
        }
        let kept: &'static str = Box::leak(text.into());
        read.insert(kept);
        Some(MetricId(kept))
    }

    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for MetricId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for MetricId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Serialize for MetricId {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for MetricId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<MetricId, D::Error> {
        let text = String::deserialize(from)?;
        MetricId::parse(&text).ok_or_else(|| D::Error::custom("it is not the id of a metric"))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Higher,
    Lower,
    /// Descriptive, never judged.
    #[default]
    Neither,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricRole {
    /// May be the main metric of a step. A step without load takes the first one declared.
    Main,
    /// Compared, with its own verdicts.
    Secondary,
    /// Shown, not compared.
    #[default]
    Context,
}

/// All that analysis and report need to know about a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    pub id: MetricId,
    pub unit: Unit,
    #[serde(default)]
    pub better: Direction,
    #[serde(default)]
    pub role: MetricRole,
    /// The largest possible value, such as 1 or 100 for a share; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// In a sentence and above a column: `p95 response time`.
    pub title: Cow<'static, str>,
    /// One sentence without its first capital and its full stop.
    pub text: Cow<'static, str>,
}

pub(crate) type Text = &'static str;

/// Shown and not compared, until [`Metric::main`] or [`Metric::secondary`] says otherwise.
pub const fn metric(id: Text, unit: Unit, better: Direction, title: Text, text: Text) -> Metric {
    let (title, text) = (Cow::Borrowed(title), Cow::Borrowed(text));
    let role = MetricRole::Context;
    Metric { id: MetricId::new(id), unit, better, role, at_most: None, title, text }
}

impl Metric {
    pub const fn main(mut self) -> Metric {
        self.role = MetricRole::Main;
        self
    }

    /// Neither a value nor an interval goes beyond `most`.
    pub const fn at_most(mut self, most: f64) -> Metric {
        self.at_most = Some(most);
        self
    }

    pub const fn secondary(mut self) -> Metric {
        self.role = MetricRole::Secondary;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Metric =
        metric("job.time", Unit::Seconds, Direction::Lower, "job time", "how long it took").main();

    #[test]
    fn a_metric_survives_its_record() {
        let text = serde_json::to_string(&TIME).expect("it is written");
        assert_eq!(
            text,
            r#"{"id":"job.time","unit":"s","better":"lower","role":"main","title":"job time","text":"how long it took"}"#
        );
        assert_eq!(serde_json::from_str::<Metric>(&text).expect(&text), TIME);
    }

    #[test]
    fn an_id_is_the_same_wherever_it_comes_from() {
        let read = MetricId::parse("job.time").expect("it is an id");
        assert_eq!(read, TIME.id);
        let again = MetricId::parse("job.time").expect("it is an id");
        assert!(std::ptr::eq(read.as_str(), again.as_str()));
        match read {
            TIME_ID => {}
            other => panic!("{other}"),
        }
    }

    const TIME_ID: MetricId = MetricId::new("job.time");

    #[test]
    fn what_is_no_id_is_refused() {
        let check = |text: &str, expected: bool| {
            assert_eq!(MetricId::parse(text).is_some(), expected, "{text}");
        };
        check("response_p99", true);
        check("vol.data.fsync-p99", true);
        check("", false);
        check("a b", false);
        check("\u{1b}[31m", false);
        check("<b>", false);
        check(&"x".repeat(METRIC_ID_MAX), true);
        check(&"x".repeat(METRIC_ID_MAX + 1), false);
    }
}
