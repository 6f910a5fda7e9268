//! Cold calls: a statement is sent, and its whole answer received.

use dyno_units::Nanoseconds;
use dyno_workload::{Connection, Reply, Statement, StatementError};

use super::super::channel::lost;
use super::super::protocol::execute::ExecuteTemplate;
use super::super::protocol::keep::Column;
use super::super::protocol::packets::{self, ColumnCount, Outcome, Prepared};
use super::super::protocol::reply::file_refused;
use super::super::protocol::{Fields, MAX_PAYLOAD, command, not_understood, status};
use super::{COLUMNS_MAX, MySqlConnection, OwnStatement, misuse};
use crate::error::StatementResult as Result;
use crate::transport::{COLD_RESULT_MAX, ROWS_SILENCE, row_room, too_much};

/// The most results of one statement: whoever sends them without end would be listened to without end.
const RESULTS_MOST: usize = 1_000_000;

impl MySqlConnection {
    /// With a blocking socket, within `limit` (0: no limit); restores the mode.
    pub(in super::super) fn cold<T>(
        &mut self,
        limit: Nanoseconds,
        exchange: impl FnOnce(&mut MySqlConnection) -> Result<T>,
    ) -> Result<T> {
        self.cold_as(limit, false, exchange)
    }

    /// The same, with a shorter limit on silence while rows are stored.
    pub(in super::super) fn cold_as<T>(
        &mut self,
        limit: Nanoseconds,
        is_filling: bool,
        exchange: impl FnOnce(&mut MySqlConnection) -> Result<T>,
    ) -> Result<T> {
        if let Some(reason) = &self.down {
            return Err(lost(reason));
        }
        if self.n_awaited() > 0 {
            return Err(misuse("a statement is already in flight"));
        }
        let begun = match is_filling {
            true => self.channel.transport.begin_cold_within(limit, ROWS_SILENCE),
            false => self.channel.transport.begin_cold(limit),
        };
        begun.map_err(|error| lost(&error.to_string()))?;
        self.executing = None;
        self.n_kept = 0;
        let result = exchange(self).map_err(|error| self.failed(error));
        self.set_blocking(self.is_blocking, self.timeout_ns)?;
        result
    }

    /// Runs a cold exchange that moves rows: any time in all, a shorter limit on silence.
    pub(in super::super) fn cold_rows<T>(
        &mut self,
        exchange: impl FnOnce(&mut MySqlConnection) -> Result<T>,
    ) -> Result<T> {
        self.cold_as(Nanoseconds::ZERO, true, exchange)
    }

    /// Sends a statement and receives all its results, row by row. Only inside `cold`.
    pub(in super::super) fn exchange_text(
        &mut self,
        sql: &str,
        on_row: &mut dyn FnMut(Vec<Option<String>>),
    ) -> Result<Reply> {
        self.channel.command(command::QUERY, sql.as_bytes())?;
        let mut reply = Reply::default();
        for _ in 0..RESULTS_MOST {
            let first = self.channel.packet_in()?;
            let outcome = match first.first() {
                Some(&packets::OK) => Outcome::from_ok(&first),
                Some(&packets::ERROR) => return Err(packets::read_error(&first)),
                Some(&packets::LOCAL_FILE) => return Err(self.refuse_file(&first)?),
                _ => {
                    let Some(count) = ColumnCount::read(&first, self.negotiated) else {
                        return Err(not_understood("neither OK nor error nor a column count"));
                    };
                    Some(self.receive_rows(count, &mut reply, on_row)?)
                }
            };
            let Some(outcome) = outcome else { return Err(not_understood("a short OK packet")) };
            self.status = outcome.status;
            reply.affected = reply.affected.saturating_add(outcome.affected);
            reply.warnings += u64::from(outcome.warnings);
            if outcome.status & status::MORE_RESULTS == 0 {
                return Ok(reply);
            }
        }
        Err(not_understood(&format!("more than {RESULTS_MOST} results for one statement")))
    }

    /// Refuses a file that the server asks for; returns the error to report.
    pub(in super::super) fn refuse_file(&mut self, request: &[u8]) -> Result<StatementError> {
        let name = String::from_utf8_lossy(Fields(&request[1..]).rest()).into_owned();
        self.channel.packet_out(&[])?;
        self.channel.packet_in()?;
        Ok(file_refused(&name))
    }

    pub(in super::super) fn receive_rows(
        &mut self,
        count: ColumnCount,
        reply: &mut Reply,
        on_row: &mut dyn FnMut(Vec<Option<String>>),
    ) -> Result<Outcome> {
        if count.n_columns > COLUMNS_MAX {
            return Err(not_understood("a result with more columns than any server has"));
        }
        if count.has_definitions {
            self.read_names(count.n_columns)?;
        }
        let short = || not_understood("a row or the end of a result is too short");
        loop {
            let packet = self.channel.packet_in()?;
            let is_end = match self.negotiated.deprecates_eof {
                true => packet.len() < MAX_PAYLOAD,
                false => packet.len() < 9,
            };
            match packet.first() {
                Some(&packets::END) if is_end => {
                    return Outcome::from_end(&packet, self.negotiated).ok_or_else(short);
                }
                Some(&packets::ERROR) => return Err(packets::read_error(&packet)),
                _ => {
                    let row = packets::read_text_row(&packet, count.n_columns).ok_or_else(short)?;
                    self.n_kept = cold_room(self.n_kept, row_room(&row))?;
                    on_row(row);
                    reply.rows += 1;
                }
            }
        }
    }

    /// Skips column or parameter definitions, and the EOF packet after them.
    pub(in super::super) fn skip_definitions(&mut self, n: u64) -> Result<()> {
        let n_packets = n + u64::from(!self.negotiated.deprecates_eof && n > 0);
        for _ in 0..n_packets {
            let packet = self.channel.packet_in()?;
            if packet.first() == Some(&packets::ERROR) {
                return Err(packets::read_error(&packet));
            }
        }
        Ok(())
    }

    /// Skips the definitions of a result's columns. Only inside `cold`.
    pub(in super::super) fn skip_result_definitions(&mut self, count: ColumnCount) -> Result<()> {
        if count.n_columns > COLUMNS_MAX {
            return Err(not_understood("a result with more columns than any server has"));
        }
        if count.has_definitions { self.skip_definitions(count.n_columns) } else { Ok(()) }
    }

    pub(in super::super) fn read_names(&mut self, n: u64) -> Result<()> {
        self.names.clear();
        for _ in 0..n {
            let packet = self.channel.packet_in()?;
            if packet.first() == Some(&packets::ERROR) {
                return Err(packets::read_error(&packet));
            }
            let name = packets::read_column_name(&packet);
            let name = name.ok_or_else(|| not_understood("a column definition"))?;
            let name = self.cleaner.clean(&name);
            self.n_kept = cold_room(self.n_kept, name.len() + size_of::<String>())?;
            self.names.push(name);
        }
        if !self.negotiated.deprecates_eof && n > 0 {
            self.channel.packet_in()?;
        }
        Ok(())
    }

    pub(in super::super) fn read_definitions(&mut self, n: u64) -> Result<Vec<Column>> {
        let mut columns = Vec::new();
        for _ in 0..n {
            let packet = self.channel.packet_in()?;
            if packet.first() == Some(&packets::ERROR) {
                return Err(packets::read_error(&packet));
            }
            let column = Column::read(&packet);
            columns.push(column.ok_or_else(|| not_understood("a column definition"))?);
        }
        if !self.negotiated.deprecates_eof && n > 0 {
            self.channel.packet_in()?;
        }
        Ok(columns)
    }

    pub(super) fn prepare_one(&mut self, statement: &Statement) -> Result<OwnStatement> {
        let sql = &statement.sql;
        self.channel.command(command::STMT_PREPARE, sql.as_bytes())?;
        let answer = self.channel.packet_in()?;
        if answer.first() == Some(&packets::ERROR) {
            let error = packets::read_error(&answer);
            let message = format!("{} (when preparing `{sql}`)", error.message);
            return Err(StatementError { message, ..error });
        }
        let Some(prepared) = Prepared::read(&answer) else {
            return Err(not_understood("the reply to a prepare"));
        };
        self.skip_definitions(u64::from(prepared.n_parameters))?;
        let columns = self.read_definitions(u64::from(prepared.n_columns))?;
        let columns = statement.keeps_rows.then_some(columns);
        Ok(OwnStatement { template: ExecuteTemplate::new(prepared), columns })
    }
}

fn cold_room(n_kept: usize, more: usize) -> Result<usize> {
    let n_kept = n_kept + more;
    if n_kept <= COLD_RESULT_MAX {
        return Ok(n_kept);
    }
    Err(lost(&too_much()))
}
