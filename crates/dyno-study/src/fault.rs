//! What a study says of a fault.

use dyno_units::Nanoseconds;

use crate::{Table, Variant};

/// One `[fault.NAME]`, with what it inherits and the levels of a variant filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultChoice {
    pub name: String,
    pub kind: FaultKind,
    /// Whether a replica is promoted in its place, which is killed and stays down.
    pub promotes: bool,
    /// The member that it happens to; none for the server that is measured.
    pub member: Option<String>,
    /// When it begins, in the measured time of each step.
    pub at: Nanoseconds,
    /// From its beginning to that of the next one; none where it happens once in a step.
    pub every: Option<Nanoseconds>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    Kill {
        /// How long afterwards it is started again; none for the end of the step.
        start_after: Option<Nanoseconds>,
    },
    /// Its processes stand still.
    Stop { length: Nanoseconds },
    /// It is shut down in order, and started again at once.
    Restart,
    /// It loses the other nodes of its cluster.
    Isolate { length: Nanoseconds },
}

impl FaultKind {
    pub fn word(self) -> &'static str {
        match self {
            FaultKind::Kill { .. } => "kill",
            FaultKind::Stop { .. } => "stop",
            FaultKind::Restart => "restart",
            FaultKind::Isolate { .. } => "isolate",
        }
    }

    pub fn length(self) -> Nanoseconds {
        match self {
            FaultKind::Kill { start_after } => start_after.unwrap_or(Nanoseconds::ZERO),
            FaultKind::Stop { length } | FaultKind::Isolate { length } => length,
            FaultKind::Restart => Nanoseconds::ZERO,
        }
    }
}

impl FaultChoice {
    /// A fault with the values of a table that was checked; none if it is no fault's, or nothing happens.
    pub(crate) fn of(table: &Table) -> Option<FaultChoice> {
        (table.kind == "fault").then_some(())?;
        let kind = match table.text("do")? {
            "kill" => FaultKind::Kill { start_after: table.time("start_after") },
            "stop" => FaultKind::Stop { length: table.time("for")? },
            "restart" => FaultKind::Restart,
            "isolate" => FaultKind::Isolate { length: table.time("for")? },
            _ => return None,
        };
        Some(FaultChoice {
            name: table.name.clone(),
            kind,
            promotes: table.text("then") == Some("promote"),
            member: table.owned("member"),
            at: table.time("at")?,
            every: table.time("every"),
        })
    }

    /// When it begins for the n-th time, from 0, in the measured time of a step; none if it does not.
    pub fn time(&self, n: u64) -> Option<Nanoseconds> {
        match (n, self.every) {
            (0, _) => Some(self.at),
            (n, Some(every)) => Some(Nanoseconds(self.at.0 + every.0.saturating_mul(n))),
            (_, None) => None,
        }
    }
}

impl Variant {
    pub fn fault(&self) -> Option<FaultChoice> {
        self.tables.iter().find_map(|table| FaultChoice::of(table))
    }
}
