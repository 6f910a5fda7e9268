//! Deliberate acts on a server's process while clients use it.

use dyno_units::Nanoseconds;

use crate::error::Result;

/// What is done on purpose to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Act {
    /// Kills the server's process and all that it has started, at once: it can finish nothing.
    Kill,
    /// Suspends the server's process and all that it has started, until [`Act::Thaw`].
    Freeze,
    Thaw,
    /// Asks the server to end, and waits until it has.
    Stop,
    /// Starts the server that has ended again: the same program on the same data. Does not wait until it answers.
    Start,
    /// Cuts the server off from the other members of its cluster.
    CutOff,
    Rejoin,
    CheckNetwork,
}

/// When something was done, by the clock of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Acted {
    pub began: Nanoseconds,
    pub ended: Nanoseconds,
}

/// Acts on a server on purpose, wherever it runs.
pub trait Control: Send {
    fn act(&self, act: Act) -> Result<Acted>;

    /// Whether it does more than answer: a node has joined its cluster. Fails with its state if not
    /// yet; with [`Away::Down`] if it has ended for good.
    fn is_back(&self) -> Result<(), Away>;

    /// Whether it is on another machine, which may be lost.
    fn is_elsewhere(&self) -> bool {
        false
    }

    /// Why its machine, or that of another member, is lost; none if none is.
    fn lost(&self) -> Option<String> {
        None
    }
}

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Away {
    NotYet(String),
    Down(String),
}
