//! Rows of a dump on the wire.

use std::io::{self, BufRead, Read as _};

use dyno_workload::{Connection as _, Row};

use super::super::channel::lost;
use super::super::connection::MySqlConnection;
use super::super::load::{
    LOCAL_FILES_OFF, insert_head, load_data, load_statement, push_row, stored, takes_text,
};
use super::super::protocol::packets::{self, ColumnCount, Outcome};
use super::super::protocol::{Fields, HEADER_LEN, MAX_PAYLOAD, command, not_understood};
use super::quoted;
use crate::dump::{DumpError, Table, read_line, write_cell};
use crate::error::StatementResult as Result;

/// Lines are passed on when there are about this many bytes of them.
const PIECE_LEN: usize = 256 * 1024;

/// Bytes of one INSERT statement: below the smallest default of `max_allowed_packet` (1 MiB).
const INSERT_LEN: usize = 512 * 1024;

/// The byte that stands for NULL in a row of texts.
const NULL: u8 = 0xfb;

/// Selects rows and passes them on as lines. Returns their number.
pub(super) fn read(
    connection: &mut MySqlConnection,
    sql: &str,
    sink: &mut dyn FnMut(&[u8]) -> Result<(), DumpError>,
) -> Result<u64, DumpError> {
    let mut failure = None;
    let read = connection.cold_rows(|connection| {
        connection.channel.command(command::QUERY, sql.as_bytes())?;
        let first = connection.channel.packet_in()?;
        if first.first() == Some(&packets::ERROR) {
            return Err(packets::read_error(&first));
        }
        let count = ColumnCount::read(&first, connection.negotiated)
            .ok_or_else(|| not_understood("no column count"))?;
        connection.skip_result_definitions(count)?;
        let mut lines =
            Lines { text: Vec::with_capacity(PIECE_LEN + PIECE_LEN / 4), sink, n_rows: 0 };
        connection.channel.buffer.room(PIECE_LEN);
        loop {
            let next = receive(connection, count.n_columns, &mut lines)?;
            match next {
                Next::Row if lines.text.len() < PIECE_LEN => {}
                Next::Row => {
                    if let Err(error) = lines.pass_on() {
                        failure = Some(error);
                        return Err(not_understood("its rows are no longer needed"));
                    }
                }
                Next::End => break,
            }
        }
        if let Err(error) = lines.pass_on() {
            failure = Some(error);
        }
        Ok(lines.n_rows)
    });
    match failure {
        Some(failure) => Err(failure),
        None => Ok(read?),
    }
}

enum Next {
    Row,
    End,
}

struct Lines<'a> {
    text: Vec<u8>,
    sink: &'a mut dyn FnMut(&[u8]) -> Result<(), DumpError>,
    n_rows: u64,
}

impl Lines<'_> {
    fn pass_on(&mut self) -> Result<(), DumpError> {
        if !self.text.is_empty() {
            (self.sink)(&self.text)?;
            self.text.clear();
        }
        Ok(())
    }
}

fn receive(
    connection: &mut MySqlConnection,
    n_columns: u64,
    lines: &mut Lines<'_>,
) -> Result<Next> {
    let negotiated = connection.negotiated;
    connection.channel.packet_in_place(|packet| {
        let is_end = match negotiated.deprecates_eof {
            true => packet.len() < MAX_PAYLOAD,
            false => packet.len() < 9,
        };
        match packet.first() {
            Some(&packets::END) if is_end => match Outcome::from_end(packet, negotiated) {
                Some(_) => Ok(Next::End),
                None => Err(not_understood("a short end of the rows")),
            },
            Some(&packets::ERROR) => Err(packets::read_error(packet)),
            _ => {
                push_line(packet, n_columns, &mut lines.text)
                    .ok_or_else(|| not_understood("a row that is too short"))?;
                lines.n_rows += 1;
                Ok(Next::Row)
            }
        }
    })?
}

fn push_line(packet: &[u8], n_columns: u64, text: &mut Vec<u8>) -> Option<()> {
    let mut fields = Fields(packet);
    for idx in 0..n_columns {
        if idx > 0 {
            text.push(b'\t');
        }
        match fields.0.first() {
            Some(&NULL) => {
                fields.u8()?;
                write_cell(None, text);
            }
            _ => write_cell(Some(fields.lenenc_bytes()?), text),
        }
    }
    text.push(b'\n');
    Some(())
}

/// Stores the rows of lines, all or none. Returns their number.
pub(super) fn store(
    connection: &mut MySqlConnection,
    table: &Table,
    lines: &mut dyn io::Read,
) -> Result<u64, DumpError> {
    let mut failure = None;
    let loaded = connection.cold_rows(|connection| {
        // The file's text as it is.
        load_data(connection, &load_of(table), |connection| send(connection, lines, &mut failure))
    });
    if let Some(error) = failure {
        return Err(error.into());
    }
    match loaded {
        // It has consumed no line.
        Err(error) if LOCAL_FILES_OFF.contains(&error.code.as_str()) => {
            insert(connection, table, lines)
        }
        loaded => Ok(loaded?),
    }
}

fn send(
    connection: &mut MySqlConnection,
    lines: &mut dyn io::Read,
    failure: &mut Option<io::Error>,
) -> Result<u64> {
    let mut packet = vec![0; HEADER_LEN + PIECE_LEN];
    let mut n_rows = 0;
    loop {
        // A damaged file must fail before the end of the data, so that the server rolls back.
        let n_read = match lines.read(&mut packet[HEADER_LEN..]) {
            Ok(n_read) => n_read,
            Err(error) => {
                *failure = Some(error);
                return Err(lost("its file cannot be read"));
            }
        };
        if n_read == 0 {
            return Ok(n_rows);
        }
        let text = &packet[HEADER_LEN..HEADER_LEN + n_read];
        n_rows += memchr::memchr_iter(b'\n', text).count() as u64;
        connection.channel.framed_out(&mut packet[..HEADER_LEN + n_read])?;
    }
}

/// Dumped bytes are those that the server stores, so they are not converted; types that take no bytes
/// are sent as text.
fn load_of(table: &Table) -> String {
    let names: Vec<String> = table.columns.iter().map(|column| quoted(&column.name)).collect();
    let texts = table.columns.iter().map(|column| takes_text(&column.data_type));
    load_statement(&quoted(&table.name), names.iter().map(String::as_str).zip(texts))
}

/// INSERT of many rows a statement, in one transaction: a server that takes no local files.
fn insert(
    connection: &mut MySqlConnection,
    table: &Table,
    lines: &mut dyn io::Read,
) -> Result<u64, DumpError> {
    connection.query("START TRANSACTION")?;
    let inserted = insert_all(connection, table, lines);
    let end = if inserted.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = connection.query(end);
    let n_rows = inserted?;
    ended?;
    Ok(n_rows)
}

/// In bytes: the server's largest packet.
const ROW_MOST: u64 = 1 << 30;

fn insert_all(
    connection: &mut MySqlConnection,
    table: &Table,
    lines: &mut dyn io::Read,
) -> Result<u64, DumpError> {
    let names = table.columns.iter().map(|column| quoted(&column.name)).collect::<Vec<_>>();
    let head = insert_head(&quoted(&table.name), &names.join(", "));
    let mut lines = io::BufReader::new(lines);
    let (mut line, mut row, mut sql) = (Vec::new(), Row::new(), head.clone().into_bytes());
    let (mut n_stored, mut n_rows) = (0, 0);
    loop {
        line.clear();
        let is_last = lines.by_ref().take(ROW_MOST + 1).read_until(b'\n', &mut line)? == 0;
        if line.len() as u64 > ROW_MOST {
            return Err(DumpError::new("a file of the dump has a row of more than 1 GiB"));
        }
        if !is_last {
            row.clear();
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            read_line(text, table.columns.len(), &mut row)?;
            if sql.len() > head.len() {
                sql.push(b',');
            }
            // As LOAD DATA stores it: that bytes would be a text in UTF-8 does not make them one.
            let is_binary = |idx: usize, _: &[u8]| !takes_text(&table.columns[idx].data_type);
            push_row(&row, connection.escapes_by_backslash(), is_binary, &mut sql);
            n_rows += 1;
        }
        if sql.len() > head.len() && (is_last || sql.len() >= INSERT_LEN) {
            n_stored += connection.cold_rows(|connection| run_bytes(connection, &sql, n_rows))?;
            sql.truncate(head.len());
            n_rows = 0;
        }
        if is_last {
            return Ok(n_stored);
        }
    }
}

fn run_bytes(connection: &mut MySqlConnection, sql: &[u8], n_rows: u64) -> Result<u64> {
    connection.channel.command(command::QUERY, sql)?;
    let answer = connection.channel.packet_in()?;
    stored(connection, &answer, n_rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::Column;

    #[test]
    fn a_row_becomes_a_line() {
        let check = |packet: &[u8], n_columns: u64, expected: Option<&[u8]>| {
            let mut text = Vec::new();
            let found = push_line(packet, n_columns, &mut text).map(|()| text);
            assert_eq!(found.as_deref(), expected, "{packet:?}");
        };
        check(b"\x011\xfb\x03a\tb", 3, Some(b"1\t\\N\ta\\tb\n"));
        check(b"\x00", 1, Some(b"\n"));
        check(b"\x031", 1, None);
        check(b"\x011", 2, None);
    }

    #[test]
    fn texts_that_are_no_bytes_are_said_to_be_texts() {
        let column = |name: &str, data_type: &str| Column {
            name: name.to_owned(),
            data_type: data_type.to_owned(),
        };
        let table = Table {
            name: "t".to_owned(),
            columns: vec![column("a", "int"), column("b", "json")],
            create: String::new(),
            after: Vec::new(),
            at_last: Vec::new(),
        };
        let sql = load_of(&table);
        assert!(sql.ends_with("(`a`, @v1) SET `b` = CONVERT(@v1 USING utf8mb4)"), "{sql}");
    }
}
