//! pgbench's built-in scripts: statements, and a client's transaction.

use std::fmt::Write;

use crate::ledger::{Ledger, Note};
use crate::prelude::*;
use crate::skew::DrawnByClient;

use super::{Protocol, Settings, TELLERS};

const DELTA_MOST: i64 = 5000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    TpcbLike,
    SimpleUpdate,
    SelectOnly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    UpdateAccount,
    SelectAccount,
    UpdateTeller,
    UpdateBranch,
    InsertHistory,
}

use Line::{InsertHistory, SelectAccount, UpdateAccount, UpdateBranch, UpdateTeller};

impl Script {
    pub(super) const ALL: [Script; 3] =
        [Script::TpcbLike, Script::SimpleUpdate, Script::SelectOnly];

    pub(super) fn kinds(self) -> &'static [Name] {
        match self {
            Script::TpcbLike => const { &[name("tpcb_like")] },
            Script::SimpleUpdate => const { &[name("simple_update")] },
            Script::SelectOnly => const { &[name("select_only")] },
        }
    }

    pub(super) fn has_begin(self) -> bool {
        self != Script::SelectOnly
    }

    /// Its statements, BEGIN and COMMIT aside; the order is that of [`Script::statements`].
    pub(super) fn lines(self) -> &'static [Line] {
        match self {
            Script::TpcbLike => {
                &[UpdateAccount, SelectAccount, UpdateTeller, UpdateBranch, InsertHistory]
            }
            Script::SimpleUpdate => &[UpdateAccount, SelectAccount, InsertHistory],
            Script::SelectOnly => &[SelectAccount],
        }
    }

    pub(super) fn n_statements(self) -> u64 {
        self.lines().len() as u64 + if self.has_begin() { 2 } else { 0 }
    }

    pub(super) fn statements(self, dialect: Dialect, names_transactions: bool) -> Vec<Statement> {
        let statement = |line: &Line| {
            let sql = dialect.placeholders(line.sql(names_transactions));
            Statement::new(sql, line.class())
        };
        self.lines().iter().map(statement).collect()
    }

    /// Its lines, parsed each time, then BEGIN and COMMIT, if it has them.
    pub(super) fn unnamed_statements(self, dialect: Dialect, has_names: bool) -> Vec<Statement> {
        let ends = if self.has_begin() { &["BEGIN", "COMMIT"][..] } else { &[] };
        let ends = ends.iter().map(|sql| Statement::new(*sql, StatementClass::Other));
        let lines = self.statements(dialect, has_names).into_iter();
        lines.chain(ends).map(Statement::unnamed).collect()
    }
}

impl Line {
    /// Its text, with `?` for each of [`Line::values`], and for the name of the transaction if it has one.
    fn sql(self, names_transactions: bool) -> &'static str {
        match self {
            UpdateAccount => "UPDATE pgbench_accounts SET abalance = abalance + ? WHERE aid = ?",
            SelectAccount => "SELECT abalance FROM pgbench_accounts WHERE aid = ?",
            UpdateTeller => "UPDATE pgbench_tellers SET tbalance = tbalance + ? WHERE tid = ?",
            UpdateBranch => "UPDATE pgbench_branches SET bbalance = bbalance + ? WHERE bid = ?",
            InsertHistory if names_transactions => {
                "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime, filler) \
                 VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP, ?)"
            }
            InsertHistory => {
                "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) \
                 VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP)"
            }
        }
    }

    fn class(self) -> StatementClass {
        match self {
            SelectAccount => StatementClass::Read,
            _ => StatementClass::Write,
        }
    }

    fn values(self, drawn: &Drawn) -> ([i64; 4], usize) {
        let Drawn { aid, bid, tid, delta } = *drawn;
        match self {
            UpdateAccount => ([delta, aid, 0, 0], 2),
            SelectAccount => ([aid, 0, 0, 0], 1),
            UpdateTeller => ([delta, tid, 0, 0], 2),
            UpdateBranch => ([delta, bid, 0, 0], 2),
            InsertHistory => ([tid, bid, aid, delta], 4),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Drawn {
    aid: i64,
    bid: i64,
    tid: i64,
    delta: i64,
}

/// Longest statement with its values, in bytes: 115 of the INSERT, four numbers and a name.
const STATEMENT_BYTES_MAX: usize = 256;

const NAME_BYTES_MAX: usize = 22;

/// What names the transactions of one client, and whether they were confirmed.
pub(super) struct Naming {
    note: Note,
    client: u64,
    n_drawn: u64,
    name: String,
}

impl Naming {
    pub(super) fn new(ledger: &Arc<Ledger>) -> Naming {
        let note = Note::new(ledger, NAME_BYTES_MAX);
        let name = String::with_capacity(NAME_BYTES_MAX);
        Naming { note, client: ledger.client(), n_drawn: 0, name }
    }

    fn draw(&mut self) {
        self.n_drawn += 1;
        self.name.clear();
        write!(self.name, "{}-{}", self.client, self.n_drawn)
            .expect("writing to a String cannot fail");
    }
}

/// Of accounts, tellers and branches.
type Drawing = [DrawnByClient; 3];

pub(super) struct Client {
    settings: Settings,
    drawn: Drawn,
    /// Notes accounts, tellers, branches, counted from 0.
    drawing: Drawing,
    naming: Option<Naming>,
    // Used again for each statement that goes as text.
    sql: String,
}

impl Client {
    pub(super) fn new(settings: &Settings, drawing: Drawing, naming: Option<Naming>) -> Client {
        let sql = String::with_capacity(STATEMENT_BYTES_MAX);
        Client { settings: settings.clone(), drawn: Drawn::default(), drawing, naming, sql }
    }

    async fn line(&mut self, statement: usize, line: Line, session: &mut Session) -> Done {
        let (numbers, mut n) = line.values(&self.drawn);
        let [a, b, c, d] = numbers.map(Value::Integer);
        let mut values = [a, b, c, d, Value::Null];
        if let (InsertHistory, Some(naming)) = (line, &self.naming) {
            values[n] = Value::Text(naming.name.as_bytes());
            n += 1;
        }
        match self.settings.protocol {
            Protocol::Prepared | Protocol::Extended => {
                session.execute(statement, &values[..n]).await?
            }
            Protocol::Simple => {
                write_text(&mut self.sql, line.sql(self.naming.is_some()), &values[..n]);
                session.text(&self.sql, line.class()).await?
            }
        };
        Ok(())
    }
}

fn write_text(sql: &mut String, template: &str, values: &[Value<'_>]) {
    sql.clear();
    let mut values = values.iter();
    for (idx, part) in template.split('?').enumerate() {
        if idx > 0 {
            let value = values.next().expect("a line has as many values as places for them");
            let written = match value {
                Value::Integer(number) => write!(sql, "{number}"),
                // A name: letters that need no escape.
                Value::Text(name) => write!(sql, "'{}'", String::from_utf8_lossy(name)),
                _ => unreachable!("a line has numbers and a name"),
            };
            written.expect("writing to a String cannot fail");
        }
        sql.push_str(part);
    }
}

impl Transactions for Client {
    /// Draws all values, in pgbench's order.
    fn draw(&mut self, random: &mut RandomStream) -> usize {
        let Settings { script, scale, accounts: distribution, .. } = &self.settings;
        let account = distribution.draw(random);
        let [accounts, tellers, branches] = &self.drawing;
        accounts.note(account);
        self.drawn.aid = account as i64 + 1;
        if script.has_begin() {
            let branch = random.below(*scale);
            let teller = random.below(scale * TELLERS);
            branches.note(branch);
            tellers.note(teller);
            (self.drawn.bid, self.drawn.tid) = (branch as i64 + 1, teller as i64 + 1);
            self.drawn.delta = random.below(2 * DELTA_MOST as u64 + 1) as i64 - DELTA_MOST;
        }
        if let Some(naming) = &mut self.naming {
            naming.draw();
        }
        0
    }

    async fn perform(&mut self, _: usize, _: &mut RandomStream, session: &mut Session) -> Done {
        let Settings { script, protocol, .. } = self.settings;
        let (has_begin, lines) = (script.has_begin(), script.lines());
        let is_extended = protocol == Protocol::Extended;
        if let Some(naming) = &mut self.naming {
            naming.note.sends(0, &naming.name);
        }
        if has_begin {
            match is_extended {
                true => session.execute(lines.len(), &[]).await?,
                false => session.begin().await?,
            };
        }
        for (statement, line) in lines.iter().enumerate() {
            self.line(statement, *line, session).await?;
        }
        if has_begin {
            match is_extended {
                true => session.execute(lines.len() + 1, &[]).await?,
                false => session.commit().await?,
            };
        }
        if let Some(naming) = &mut self.naming {
            naming.note.confirmed();
        }
        Ok(())
    }
}
