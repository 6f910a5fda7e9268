//! A probe's own connection, and the numbers in its answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dyno_host::ThreadListing;
use dyno_units::{Nanoseconds, clean_text};
use dyno_workload::{Connection, Connector, ErrorClass, NamedRows, StatementError, TextRows};

use super::Values;
use crate::dialects::{ALL as ALL_SQL, sql_of, within};
use crate::sql::{SqlSpec, first_cell};

const RECONNECT_PAUSE: Nanoseconds = Nanoseconds::from_secs(5);

/// After a refusal: a missing view stays missing, and the server logs each one.
const REFUSED_PAUSE: Nanoseconds = Nanoseconds::from_secs(60);

/// Three times the server's limit of a second, in case the server hangs.
const SOCKET_LIMIT: Nanoseconds = Nanoseconds::from_secs(3);

pub(crate) struct Asker {
    connector: Connector,
    has_session: bool,
    // Whether what it asks names tables of the catalog without their schema.
    names_tables: bool,
    open: Option<Box<dyn Connection>>,
    // That the server knows, made with each statement.
    settings: Vec<&'static str>,
    not_before: Nanoseconds,
    // Why there is no connection.
    unreachable: String,
    // Until when a statement is not asked again, and why.
    refused: BTreeMap<String, (Nanoseconds, String)>,
    reported: BTreeSet<String>,
    notes: Vec<String>,
}

impl Asker {
    /// Opens connections by this connector, the first one when it is first asked.
    pub(crate) fn new(connector: Connector) -> Asker {
        Asker {
            connector,
            has_session: true,
            names_tables: false,
            open: None,
            settings: Vec::new(),
            not_before: Nanoseconds::ZERO,
            unreachable: String::new(),
            refused: BTreeMap::new(),
            reported: BTreeSet::new(),
            notes: Vec::new(),
        }
    }

    /// The same for a peer that has no settings of a session: a pooler's console.
    pub(crate) fn without_session(connector: Connector) -> Asker {
        Asker { has_session: false, ..Asker::new(connector) }
    }

    /// The same for questions about tables of the catalog, which a study or a workload asks.
    pub(crate) fn of_tables(connector: Connector) -> Asker {
        Asker { names_tables: true, ..Asker::new(connector) }
    }

    /// Asks at `now`; `None` if there is no answer, for any reason.
    pub(crate) fn rows(&mut self, now: Nanoseconds, sql: &str) -> Option<TextRows> {
        self.named_rows(now, sql).map(|answer| answer.rows)
    }

    pub(crate) fn named_rows(&mut self, now: Nanoseconds, sql: &str) -> Option<NamedRows> {
        self.answer(now, sql).ok()
    }

    /// After a recent failure it fails at once for the same reason.
    pub(crate) fn answer(&mut self, now: Nanoseconds, sql: &str) -> Result<NamedRows, String> {
        if let Some((until, why)) = self.refused.get(sql)
            && now < *until
        {
            return Err(why.clone());
        }
        self.connect_at(now)?;
        self.send(sql).map_err(|error| self.failed(now, sql, &error))
    }

    /// On the open connection, with the settings; without one it is lost.
    fn send(&mut self, sql: &str) -> Result<NamedRows, StatementError> {
        let Some(connection) = self.open.as_deref_mut() else {
            let why = self.unreachable.clone();
            return Err(StatementError::new(ErrorClass::Disconnected, "probe", why));
        };
        match self.has_session {
            true => within(connection, &self.settings, sql),
            false => connection.query_named(sql),
        }
    }

    /// Opens a connection if there is none and the last try is not too recent.
    fn connect_at(&mut self, now: Nanoseconds) -> Result<(), String> {
        if self.open.is_none() {
            if now < self.not_before {
                return Err(self.unreachable.clone());
            }
            self.not_before = now + RECONNECT_PAUSE;
            if let Err(why) = self.connect() {
                self.note(format!(
                    "a probe cannot connect: {why}; its readings are missing until it can"
                ));
                self.unreachable.clone_from(&why);
                return Err(why);
            }
        }
        Ok(())
    }

    fn failed(&mut self, now: Nanoseconds, sql: &str, error: &StatementError) -> String {
        let why = error.to_string();
        match error.class {
            ErrorClass::Disconnected => {
                self.open = None;
                self.not_before = now + RECONNECT_PAUSE;
                self.unreachable.clone_from(&why);
            }
            ErrorClass::Refused => {
                self.refused.insert(sql.to_owned(), (now + REFUSED_PAUSE, why.clone()));
                // A view that this version lacks is not the user's concern.
                if ALL_SQL.iter().any(|dialect| dialect.no_right.contains(&error.code.as_ref())) {
                    self.note(format!(
                        "the user lacks a privilege, so `{}` is not recorded: {}",
                        beginning(sql),
                        error.message
                    ));
                }
            }
            // It took too long, or waited for a lock: the next time may do better.
            _ => {}
        }
        why
    }

    /// Takes the notes for the user since the last call, each of them once.
    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    pub(crate) fn note(&mut self, note: String) {
        let note = clean_text(&note);
        if self.reported.insert(note.clone()) {
            self.notes.push(note);
        }
    }

    /// Numbers of the first row by the names of their columns. Text is left out.
    pub(crate) fn row_numbers(&mut self, now: Nanoseconds, sql: &str) -> Option<Values> {
        self.named_rows(now, sql).map(|answer| named_numbers(&answer))
    }

    /// Without pauses between attempts. Fails with the reason.
    pub(crate) fn ask(&mut self, sql: &str) -> Result<NamedRows, String> {
        if self.open.is_none() {
            self.connect()?;
        }
        let answer = self.send(sql);
        if answer.as_ref().is_err_and(|error| error.class == ErrorClass::Disconnected) {
            self.open = None;
        }
        answer.map_err(|error| format!("the server does not answer `{sql}`: {error}"))
    }

    fn connect(&mut self) -> Result<(), String> {
        let mut connection = (self.connector)().map_err(|error| error.to_string())?;
        connection.set_cold_limit(SOCKET_LIMIT.0);
        if self.has_session {
            let SqlSpec { guard, probe_session, within, check_routines, .. } =
                sql_of(connection.dialect());
            // Statements that name tables look names up like those of a load; nobody may have checked this server.
            if let Some(check) = check_routines.filter(|_| self.names_tables) {
                check(connection.as_mut())?;
            }
            let guard: &[&str] = if self.names_tables { &[] } else { guard };
            self.settings = guard.to_vec();
            for &setting in *probe_session {
                let made = match within {
                    Some(in_one_message) => {
                        connection.query(&in_one_message(&[setting], "SELECT 1"))
                    }
                    None => connection.query(setting),
                };
                match made {
                    Ok(_) => self.settings.push(setting),
                    Err(error) if error.class == ErrorClass::Disconnected => {
                        return Err(error.to_string());
                    }
                    // This version does not know it.
                    Err(_) if within.is_some() => drop(connection.query("ROLLBACK")),
                    Err(_) => {}
                }
            }
        }
        self.open = Some(connection);
        Ok(())
    }
}

fn beginning(sql: &str) -> String {
    const SHOWN: usize = 60;
    match sql.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", sql[..end].trim_end()),
        None => sql.to_owned(),
    }
}

/// A number as servers write it: `12`, `-0.5`, `1e9`, `t`, `ON`. None for other text.
pub(crate) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    match text {
        "t" | "ON" | "true" => return Some(1.0),
        "f" | "OFF" | "false" => return Some(0.0),
        _ => {}
    }
    // `parse` also accepts words such as `inf` and `nan`.
    let is_numeric =
        text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E'));
    text.parse().ok().filter(|value: &f64| is_numeric && value.is_finite())
}

pub(crate) fn cell(row: &[Option<String>], column: usize) -> Option<&str> {
    row.get(column)?.as_deref()
}

/// Rows of a name and a number, names in lower case.
pub(crate) fn numbers_by_name(rows: &TextRows) -> Values {
    rows.iter()
        .filter_map(|row| Some((cell(row, 0)?.to_ascii_lowercase(), number(cell(row, 1)?)?)))
        .collect()
}

pub(crate) fn named_numbers(answer: &NamedRows) -> Values {
    let Some(row) = answer.rows.first() else { return Values::new() };
    answer
        .columns
        .iter()
        .zip(row)
        .filter_map(|(name, value)| Some((name.to_ascii_lowercase(), number(value.as_deref()?)?)))
        .collect()
}

/// The same connector, with each of its connections marked in `threads` as a probe's, if there is
/// such a list. `sql` asks for the server's id of the connection; without an id, nothing is marked.
pub(crate) fn marked(
    connector: &Connector,
    sql: &'static str,
    threads: Option<&ThreadListing>,
) -> Connector {
    let connector = Arc::clone(connector);
    let Some(threads) = threads.cloned() else { return connector };
    Arc::new(move || {
        let mut connection = connector()?;
        if let Some(number) = own_number(connection.as_mut(), sql) {
            threads.add_probe(number);
        }
        Ok(connection)
    })
}

fn own_number(connection: &mut dyn Connection, sql: &str) -> Option<u64> {
    let id = first_cell(connection.query(sql).ok()?)?;
    number(&id).map(|number| number as u64)
}
