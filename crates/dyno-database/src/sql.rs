//! Dyno's own SQL in a dialect: ownership of tables, sessions of probes, costs of statements. Each
//! dialect's folder has one value.

use dyno_workload::{Connection, Dialect, TextRows};

/// The SQL of Dyno itself in one dialect.
pub(crate) struct SqlSpec {
    pub(crate) dialect: Dialect,
    pub(crate) catalog: CatalogSql,
    /// One message that makes these settings, runs the statement, and leaves none of them behind; none if settings are
    /// statements of a session that is nobody else's next.
    pub(crate) within: Option<fn(settings: &[&str], statement: &str) -> String>,
    /// Settings for queries that name no tables: finds only the server's own functions and operators. In a schema where
    /// other users may create some, one of theirs could fit better, and run with Dyno's rights.
    pub(crate) guard: &'static [&'static str],
    /// Settings of a probe; those that a version does not know are skipped.
    pub(crate) probe_session: &'static [&'static str],
    /// Asks which tables run code of other users when they are read, or what is read with them. The condition is on
    /// those that are read, as the dialect calls them. None if no table does.
    pub(crate) tables_of_others: Option<fn(condition: &str) -> String>,
    /// Fails, with the reason, if a statement, or a condition, reads what runs code of other users; none if nothing does.
    /// With the settings of [`SqlSpec::check_routines`].
    pub(crate) check_read:
        Option<fn(&mut dyn Connection, pinned: &[String], sql: &str) -> Result<(), String>>,
    /// Fails, with the reason, if other users' functions or operators would run with the rights of Dyno's user in
    /// sessions whose statements do name tables; none if none could. Returns the settings with which a transaction is as
    /// it was checked.
    pub(crate) check_routines: Option<fn(&mut dyn Connection) -> Result<Vec<String>, String>>,
    /// Codes of errors for a right that the user lacks.
    pub(crate) no_right: &'static [&'static str],
    /// Why a statement must not run, as this server reads it differently from others.
    pub(crate) hidden_text: fn(&str) -> Option<&'static str>,
    /// How a statement of another session is cancelled; none if it cannot be.
    pub(crate) cancel: Option<CancelSql>,
    /// How a server is recognised under another address; none if it cannot be.
    pub(crate) identity: Option<Identity>,
    /// Statements whose answers depend on a table's rows alone, not on their order on disk.
    pub(crate) digest: Option<fn(table: &str) -> Vec<String>>,
    /// How the statements are read that the server has counted; none if it counts none.
    #[cfg(feature = "servers")]
    pub(crate) counted: Option<CountedSql>,
}

pub(crate) struct CancelSql {
    /// Asks for a number that names the session it is sent in.
    pub(crate) session: &'static str,
    pub(crate) cancel: fn(session: u64) -> String,
}

pub(crate) enum Identity {
    /// Asks for what no two servers have in common.
    Answer(&'static str),
    /// Takes a named lock without waiting, and asks in another session whether it is taken: for servers without a
    /// distinguishing setting. Such locks belong to one server, even in a cluster.
    Lock { take: fn(name: &str) -> String, is_taken: fn(name: &str) -> String },
}

pub(crate) struct CatalogSql {
    /// A stable text for each object that is not the system's; `None` if no other user can add any.
    pub(crate) contents: Option<&'static str>,
    /// Asks for the schema that unqualified names mean; none if there are no schemas.
    pub(crate) schema: Option<&'static str>,
    /// By schema: name, kind, and `mine` if the connection's user owns it.
    pub(crate) relations: fn(schema: &str) -> String,
    /// By the notes' qualified name: their definition, who made them, and the connection's user.
    pub(crate) notes: fn(name: &str) -> String,
    /// By schema and a list of names as literals: what a statement drops (`PROCEDURE x`), who made it, and 1 if Dyno did,
    /// of all routines of these names; none if Dyno makes no routines.
    pub(crate) routines: Option<fn(schema: &str, names: &str) -> String>,
    /// The statement before the notes are rewritten; `None` if a view can be replaced.
    pub(crate) before_notes: Option<&'static str>,
    pub(crate) create_view: &'static str,
    pub(crate) drop_view: &'static str,
    pub(crate) text_cast: &'static str,
    /// The meaning of notes without a definition; `None` if it has none.
    pub(crate) no_definition: Option<&'static str>,
}

pub(crate) struct CountedSql {
    /// None if the session could call nothing that other users made.
    pub(crate) guard: Option<CountedGuard>,
    /// Statements of the catalog, with executions and rows returned or changed, the most frequent first. The
    /// first query that the server knows is used; `{schema}` is the guard's.
    pub(crate) statements: &'static [&'static str],
    /// Asks how many executions the server has counted without the texts of their statements.
    pub(crate) without_text: Option<&'static str>,
    pub(crate) missing: &'static str,
    /// For all columns of the catalog's tables, in order: table, column, and as 0 or 1 whether it is a number, begins
    /// an index, ends a unique one. With a guard also the table's quoted name with schema; `{visible}` is the tables'
    /// numbers.
    pub(crate) columns: &'static str,
    /// The condition of [`SqlSpec::tables_of_others`] for these tables; none if there are no such tables.
    pub(crate) of_others: Option<&'static str>,
    /// Asks for a sample of a column's values without reading its table, by the names that [`CountedSql::columns`] has.
    pub(crate) sampled: Option<fn(table: &str, column: &str) -> String>,
    /// Queries for some values of a column, at most 1000 characters each, and for its minimum and maximum if an
    /// index begins with it. Arguments are quoted names. Calls nothing that other users can have made.
    pub(crate) values: fn(table: &str, column: &str) -> [String; 2],
    pub(crate) quote: char,
}

/// Keeps other users' functions, operators, casts and views from running with the rights of the user who captures.
pub(crate) struct CountedGuard {
    /// Fails, with the reason, if the session acts as somebody else.
    pub(crate) check: fn(&mut dyn Connection) -> Result<(), String>,
    /// Asks for the numbers of the tables whose names are found without a schema.
    pub(crate) visible: &'static str,
    /// With which nothing is changed, and nothing of a table's owner is called.
    pub(crate) settings: &'static [&'static str],
    /// Asks for the quoted name of the schema in which the server keeps its statistics.
    pub(crate) schema: &'static str,
}

pub(crate) fn first_cell(rows: TextRows) -> Option<String> {
    rows.into_iter().next()?.into_iter().next()?
}
