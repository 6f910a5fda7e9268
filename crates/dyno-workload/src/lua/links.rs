//! A script's connections, and their prepared statements.

use dyno_sysbench::ParamKind;

use crate::Connector;
use crate::prelude::*;

/// A statement that a script has prepared.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) sql: String,
    pub(super) class: StatementClass,
    pub(super) kinds: Vec<ParamKind>,
    /// The index of the connection's statement; none if values are written into the text.
    pub(super) prepared: Option<usize>,
    is_closed: bool,
}

/// Values of a statement that is executed without leaving the script; those with more are rare.
pub(super) const MOST_VALUES: usize = 8;

/// For execution, without text, as caches are cold: statements share cache lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quick {
    /// The index of the connection's statement.
    pub(super) prepared: u32,
    pub(super) class: StatementClass,
    /// How many of the kinds are known.
    n_kinds: u8,
    kinds: [ParamKind; MOST_VALUES],
}

impl Quick {
    /// None for a statement that is not prepared on the server, or has too many values.
    fn of(made: &Made) -> Option<Quick> {
        let prepared = u32::try_from(made.prepared?).ok()?;
        let mut kinds = [ParamKind::default(); MOST_VALUES];
        kinds.get_mut(..made.kinds.len())?.copy_from_slice(&made.kinds);
        Some(Quick { prepared, class: made.class, n_kinds: made.kinds.len() as u8, kinds })
    }

    #[inline]
    pub(super) fn kind(&self, at: usize) -> Option<ParamKind> {
        (at < usize::from(self.n_kinds)).then(|| self.kinds[at])
    }
}

/// A connection besides the client's own: it blocks the thread.
struct Other {
    connection: Box<dyn Connection>,
    rows: TextRows,
    n_columns: usize,
}

/// What the client's own connection is to the script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Use {
    /// The script has not asked for it.
    #[default]
    Free,
    Taken,
    Closed,
}

/// All connections of a script. Number 0 is the client's own, if it has one.
// Hot fields first, so that they share cache lines.
#[derive(Default)]
#[repr(C)]
pub(super) struct Links {
    /// Of the statements of the client's own connection.
    quick: Vec<Option<Quick>>,
    pub(super) main: Option<Session>,
    main_use: Use,
    others: Vec<Option<Other>>,
    connector: Option<Connector>,
    statements: Vec<Vec<Made>>,
    /// Rows of the latest cold query on the client's own connection.
    early: Option<(TextRows, usize)>,
}

pub(super) enum Connected {
    Number(usize),
    /// The client's own, which was closed and is to be opened again.
    Again,
    Refused(String),
}

impl Links {
    pub(super) fn new(main: Option<Session>, connector: Option<Connector>) -> Links {
        Links { main, connector, statements: vec![Vec::new()], ..Links::default() }
    }

    pub(super) fn connect(&mut self) -> Connected {
        if self.main.is_some() && self.main_use != Use::Taken {
            let before = std::mem::replace(&mut self.main_use, Use::Taken);
            self.statements[0].clear();
            self.quick.clear();
            return if before == Use::Free { Connected::Number(0) } else { Connected::Again };
        }
        match self.open() {
            Ok(other) => {
                self.others.push(Some(other));
                self.statements.push(Vec::new());
                Connected::Number(self.others.len())
            }
            Err(why) => Connected::Refused(why),
        }
    }

    fn open(&self) -> Result<Other, String> {
        let connector = self.connector.as_ref().ok_or(
            "a script of a study has one connection for each client; `dyno sysbench` opens more",
        )?;
        let mut connection = connector().map_err(|error| error.to_string())?;
        connection.set_cold_limit(0);
        Ok(Other { connection, rows: Vec::new(), n_columns: 0 })
    }

    /// Replaces a connection besides the client's own by a new one.
    pub(super) fn reopen(&mut self, number: usize) -> Result<(), String> {
        let opened = self.open()?;
        *self.other(number).ok_or("the connection is not one of the script's")? = Some(opened);
        Ok(())
    }

    fn other(&mut self, number: usize) -> Option<&mut Option<Other>> {
        self.others.get_mut(number.checked_sub(1)?)
    }

    pub(super) fn disconnect(&mut self, number: usize) {
        match self.other(number) {
            Some(other) => *other = None,
            None if number == 0 => self.main_use = Use::Closed,
            None => {}
        }
    }

    pub(super) fn is_main(&self, number: usize) -> bool {
        number == 0 && self.main.is_some()
    }

    pub(super) fn cold(&mut self, number: usize) -> Option<&mut dyn Connection> {
        match number {
            0 => self.main.as_mut().map(Session::connection),
            _ => Some(self.other(number)?.as_mut()?.connection.as_mut()),
        }
    }

    pub(super) fn keep(&mut self, number: usize, rows: TextRows, n_columns: usize) {
        match self.other(number) {
            None if number == 0 => self.early = Some((rows, n_columns)),
            Some(Some(other)) => (other.rows, other.n_columns) = (rows, n_columns),
            None | Some(None) => {}
        }
    }

    /// The client's own connection has sent a statement: what was kept of it before is over.
    pub(super) fn forget_early(&mut self) {
        self.early = None;
    }

    /// A row of the latest result.
    pub(super) fn row(&self, number: usize, row: usize) -> Vec<Option<Vec<u8>>> {
        let texts = |rows: &TextRows| {
            let values = rows.get(row).into_iter().flatten();
            values.map(|value| value.as_ref().map(|text| text.clone().into_bytes())).collect()
        };
        if let Some(idx) = number.checked_sub(1) {
            let other = self.others.get(idx).and_then(Option::as_ref);
            return other.map(|other| texts(&other.rows)).unwrap_or_default();
        }
        if let Some((rows, _)) = &self.early {
            return texts(rows);
        }
        let Some(session) = &self.main else { return Vec::new() };
        let rows = session.kept_rows();
        if row >= rows.n_rows() {
            return Vec::new();
        }
        let value = |column| {
            let is_null = rows.is_null(row, column);
            (!is_null).then(|| rows.text(row, column).unwrap_or_default().to_vec())
        };
        (0..rows.n_columns()).map(value).collect()
    }

    #[inline]
    pub(super) fn own(&mut self, statement: usize) -> Option<(&mut Session, Quick)> {
        Some((self.main.as_mut()?, (*self.quick.get(statement)?)?))
    }

    fn changed(&mut self, number: usize, statement: usize) {
        let made = self.statements.get(number).and_then(|all| all.get(statement));
        if let (0, Some(made)) = (number, made) {
            if self.quick.len() <= statement {
                self.quick.resize(statement + 1, None);
            }
            self.quick[statement] = Quick::of(made);
        }
    }

    pub(super) fn statement(&self, number: usize, statement: usize) -> Option<&Made> {
        self.statements.get(number)?.get(statement)
    }

    fn made(&mut self, number: usize, statement: usize) -> Option<&mut Made> {
        self.statements.get_mut(number)?.get_mut(statement)
    }

    pub(super) fn bind(&mut self, number: usize, statement: usize, kinds: Vec<ParamKind>) {
        if let Some(made) = self.made(number, statement) {
            made.kinds = kinds;
        }
        self.changed(number, statement);
    }

    pub(super) fn close(&mut self, number: usize, statement: usize) {
        if let Some(made) = self.made(number, statement) {
            made.is_closed = true;
        }
    }

    /// Reuses a closed one's place; `is_emulated` writes values into the text.
    pub(super) fn prepare(&mut self, number: usize, sql: &str, is_emulated: bool) -> Done<usize> {
        let class = StatementClass::of_text(sql);
        let (sql, kinds) = (sql.to_owned(), Vec::new());
        let mut made = Made { sql, class, kinds, prepared: None, is_closed: false };
        if !is_emulated && let Some(session) = self.main.as_mut().filter(|_| number == 0) {
            let taken = self.statements[0].iter().filter(|made| made.prepared.is_some());
            let free = taken.clone().find(|made| made.is_closed).and_then(|made| made.prepared);
            let place = free.unwrap_or(taken.count());
            let text = session.dialect().placeholders(&made.sql);
            match session.prepare_at(place, &Statement::new(text, class)) {
                Ok(()) => made.prepared = Some(place),
                // This command is not supported in the prepared statement protocol.
                Err(error) if error.code == "1295" => {}
                Err(error) => return Err(error),
            }
        }
        let Some(all) = self.statements.get_mut(number) else {
            let why = "the connection is not one of the script's";
            return Err(StatementError::new(ErrorClass::Refused, "2006", why));
        };
        let is_alike = |one: &Made| one.is_closed && one.prepared == made.prepared;
        let idx = all.iter().position(is_alike).unwrap_or(all.len());
        match all.get_mut(idx) {
            Some(place) => *place = made,
            None => all.push(made),
        }
        self.changed(number, idx);
        Ok(idx)
    }

    /// The statements of the client's own connection, in the order of their places on the server.
    pub(super) fn of_server(&self) -> Vec<Statement> {
        let Some(dialect) = self.main.as_ref().map(Session::dialect) else { return Vec::new() };
        let statement = |made: &Made| Statement::new(dialect.placeholders(&made.sql), made.class);
        let of_server = |made: &Made| made.prepared.map(|place| (place, statement(made)));
        let mut all: Vec<(usize, Statement)> =
            self.statements[0].iter().filter_map(of_server).collect();
        all.sort_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, statement)| statement).collect()
    }
}
