//! A client's files, as a connection.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::task::Poll;

use dyno_model::Name;
use dyno_workload::files::{FileCommand, file_number};
use dyno_workload::{
    Cell, Connection, Dialect, ErrorClass, Reply, Row, Statement, StatementError, TextRows, Value,
};

use super::work::{Opened, Shared, check, make, settle};

use crate::error::StatementResult as Result;

/// Carries out operations on files, on the client's own thread.
pub(super) struct FileConnection {
    shared: Arc<Shared>,
    opened: Option<Opened>,
    commands: Vec<FileCommand>,
    in_flight: Option<InFlight>,
}

#[derive(Clone, Copy)]
enum InFlight {
    Command {
        command: FileCommand,
        file: u64,
        offset: u64,
    },
    /// What clients send after an error: there is nothing to roll back.
    Rollback,
    Other,
}

impl FileConnection {
    pub(super) fn new(shared: Arc<Shared>) -> FileConnection {
        FileConnection { shared, opened: None, commands: Vec::new(), in_flight: None }
    }

    fn carry_out(&mut self, command: FileCommand, (file, offset): (u64, u64)) -> Result<Reply> {
        let Some(opened) = &mut self.opened else { return Err(refused("no files are open")) };
        match command {
            FileCommand::Read => {
                opened.read(file, offset)?;
                Ok(Reply { rows: 1, ..Reply::default() })
            }
            FileCommand::Write => {
                opened.write(file, offset)?;
                Ok(Reply { affected: 1, ..Reply::default() })
            }
            FileCommand::Truncate => opened.truncate(file).map(|()| Reply::default()),
            FileCommand::Fsync => opened.fsync(file).map(|()| Reply::default()),
            FileCommand::Fdatasync => opened.fdatasync(file).map(|()| Reply::default()),
            _ => Err(refused("it is not a client operation")),
        }
    }
}

fn refused(message: &str) -> StatementError {
    StatementError::new(ErrorClass::Refused, "files", message)
}

impl Connection for FileConnection {
    /// None is spoken.
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn speaks_sql(&self) -> bool {
        false
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn prepare(&mut self, statements: &[Statement]) -> Result<()> {
        let commands = statements.iter().map(|statement| statement.sql.parse());
        let commands: Result<Vec<FileCommand>, String> = commands.collect();
        self.commands = commands.map_err(|why| refused(&why))?;
        Ok(())
    }

    fn send_execute(&mut self, statement: usize, values: &[Value<'_>]) {
        let number = |idx: usize| match values.get(idx) {
            Some(Value::Integer(number)) => *number as u64,
            _ => 0,
        };
        let command = self.commands[statement];
        self.in_flight = Some(InFlight::Command { command, file: number(0), offset: number(1) });
    }

    fn send_text(&mut self, sql: &str) {
        self.in_flight = Some(if sql == "ROLLBACK" { InFlight::Rollback } else { InFlight::Other });
    }

    fn poll_reply(&mut self) -> Poll<Result<Reply>> {
        Poll::Ready(match self.in_flight.take() {
            Some(InFlight::Command { command, file, offset }) => {
                self.carry_out(command, (file, offset))
            }
            Some(InFlight::Rollback) => Ok(Reply::default()),
            Some(InFlight::Other) => Err(refused("files do not accept SQL")),
            None => Err(refused("no operation is in flight")),
        })
    }

    fn set_blocking(&mut self, _blocking: bool, _timeout_ns: u64) -> Result<()> {
        // All operations block.
        Ok(())
    }

    fn query(&mut self, sql: &str) -> Result<TextRows> {
        match sql.parse().map_err(|why: String| refused(&why))? {
            FileCommand::Make(set) => make(&self.shared, set)?,
            FileCommand::Open(set) => self.opened = Some(Opened::open(&self.shared, set)?),
            FileCommand::Begin(set) => self.opened = Some(Opened::begin(&self.shared, set)?),
            FileCommand::Settle(set) => settle(&self.shared, set)?,
            FileCommand::Check(set) => {
                let numbers = check(&self.shared, set)?;
                return Ok(vec![numbers.iter().map(|n| Some(n.to_string())).collect()]);
            }
            _ => return Err(refused("it is a client operation")),
        }
        Ok(TextRows::new())
    }

    /// Writes blocks: a row is the number of one.
    fn load_rows(
        &mut self,
        table: &str,
        _columns: &[Name],
        next_row: &mut dyn FnMut(&mut Row) -> bool,
    ) -> Result<u64> {
        let file = file_number(table).ok_or_else(|| refused("there is no such file"))?;
        let mut filler = self.shared.filler(file)?;
        let mut row = Row::new();
        let mut n_rows = 0;
        loop {
            row.clear();
            if !next_row(&mut row) {
                break;
            }
            let [Cell::Integer(block)] = row.cells() else {
                return Err(refused("a row of a file is the number of a block"));
            };
            filler.push(*block as u64)?;
            n_rows += 1;
        }
        filler.finish()?;
        Ok(n_rows)
    }
}
