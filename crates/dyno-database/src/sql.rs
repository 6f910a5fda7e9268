//! The SQL that Dyno itself needs of a dialect: whose tables are in a catalog, sessions of probes,
//! what a statement costs. One value in the folder of each dialect.

use std::sync::Arc;

use dyno_units::Clock;
use dyno_workload::{Connection, Dialect};

use crate::{Access, CostSource};

/// What Dyno itself says in one dialect.
pub(crate) struct SqlSpec {
    pub(crate) dialect: Dialect,
    /// How Dyno notes which tables it made.
    pub(crate) catalog: CatalogSql,
    /// Settings of a probe's session; those that a version does not know are passed over.
    pub(crate) probe_session: &'static [&'static str],
    /// Said in a session whose questions name no tables of a catalog's own, so that they find
    /// nothing but the server's own functions and operators: in a schema where others may make
    /// things, one of theirs could fit better, and would run with Dyno's rights.
    pub(crate) probe_guard: Option<&'static str>,
    /// Codes of errors for a right that the user lacks.
    pub(crate) no_right: &'static [&'static str],
    /// The engine's counters, read on a connection of their own.
    pub(crate) cost_source: OpenCostSource,
    /// Why a statement must not be run whatever it may change: what the server reads in it that
    /// others do not.
    pub(crate) hidden_text: fn(&str) -> Option<&'static str>,
}

/// Makes a cost source of a connection, or says why there is none.
pub(crate) type OpenCostSource =
    fn(Box<dyn Connection>, Access, &Arc<dyn Clock>) -> Result<Box<dyn CostSource>, String>;

/// The statements of [`crate::claim_catalog`] and its siblings.
pub(crate) struct CatalogSql {
    /// What is in a catalog besides its system's own things, each as a text that stays the same
    /// while it is there; `None` if no other user can put anything there.
    pub(crate) contents: Option<&'static str>,
    /// Asks for the schema that unqualified names mean; none if there are no schemas.
    pub(crate) schema: Option<&'static str>,
    /// From that schema's name, the statement that lists what there is: name, kind, and `mine` if
    /// its owner is the connection's user.
    pub(crate) relations: fn(schema: &str) -> String,
    /// From the qualified name of the notes, the statement that returns their definition, who made
    /// them, and who the connection's user is.
    pub(crate) notes: fn(name: &str) -> String,
    /// What has to be done before the notes are written again; none if a view can be replaced.
    pub(crate) before_notes: Option<&'static str>,
    /// The words that make a view, or replace it.
    pub(crate) create_view: &'static str,
    /// What makes a literal a column of type text.
    pub(crate) text_cast: &'static str,
    /// Put before and behind a query so that no user's functions or operators run in it.
    pub(crate) guard: Option<(&'static str, &'static str)>,
    /// What it means that the notes have no definition; none if that says nothing.
    pub(crate) no_definition: Option<&'static str>,
}
