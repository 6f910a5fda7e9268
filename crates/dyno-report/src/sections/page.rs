//! What every section is made from.

use std::borrow::Cow;

use dyno_record::Run;

use super::distribution::{self, Distributions};
use super::panel::{self, TrialStep};
use crate::times::Times;
use crate::view::View;

/// Where a section is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Browser,
    PullRequest,
    Terminal,
}

/// The findings, and the series of the record.
pub(crate) struct Page<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) reader: Reader,
    /// Columns of a terminal.
    pub(super) width: usize,
    pub(super) runs: &'a [Run],
    pub(super) steps: Vec<Vec<TrialStep<'a>>>,
    /// Most points of a path.
    pub(super) points: usize,
    pub(super) times: Cow<'a, Times>,
    pub(super) distributions: Distributions,
}

impl<'a> Page<'a> {
    /// For a browser.
    pub(super) fn new(view: &'a View<'a>, runs: &'a [Run], times: Cow<'a, Times>) -> Page<'a> {
        let steps = panel::gather(view, runs);
        Page {
            view,
            reader: Reader::Browser,
            width: 0,
            runs,
            points: panel::points_most(view, &steps),
            steps,
            times,
            distributions: distribution::gather(view.findings, runs),
        }
    }
}
