//! Fills a table: LOAD DATA LOCAL INFILE without a file, or INSERT if that is off.

use dyno_model::Name;
use dyno_workload::{Cell, ErrorClass, Row, StatementError};

use super::connection::MySqlConnection;
use super::protocol::{HEADER_LEN, MAX_PAYLOAD, command, not_understood, packets};
use super::sql::quoted;

use crate::error::StatementResult as Result;

const PACKET_LEN: usize = 256 * 1024;

/// Limits of a LOAD statement, which then commits: engines keep locks and undo for every row of a
/// transaction (RocksDB refuses more than a million).
const MAX_ROWS: u64 = 200_000;
const MAX_BYTES: usize = 64 << 20;

/// Bytes of one INSERT statement: below the smallest default of `max_allowed_packet` (1 MiB).
const INSERT_LEN: usize = 512 * 1024;

/// Codes of a server that has local files turned off: MariaDB, later MariaDB, MySQL.
pub(super) const LOCAL_FILES_OFF: [&str; 4] = ["1148", "4166", "3948", "3950"];

/// Turns checks off for this session, keeping their old values. RocksDB reads less without unique
/// checks. With InnoDB they stay on: without both checks, MariaDB 10.6 and later fill an empty table
/// through sorted temporary files, at twice the CPU of inserting rows in key order.
const CHECKS_OFF: &str = "SET @dyno_unique_checks = @@unique_checks, \
    @dyno_foreign_key_checks = @@foreign_key_checks, \
    unique_checks = IF(@@default_storage_engine = 'ROCKSDB', 0, @@unique_checks), \
    foreign_key_checks = 0";
const CHECKS_AS_BEFORE: &str =
    "SET unique_checks = @dyno_unique_checks, foreign_key_checks = @dyno_foreign_key_checks";

/// The rows to store, with one row of lookahead, so that no statement is begun without rows.
struct Source<'a> {
    row: Row,
    has_row: bool,
    next_row: &'a mut dyn FnMut(&mut Row) -> bool,
}

impl Source<'_> {
    fn advance(&mut self) {
        self.row.clear();
        self.has_row = (self.next_row)(&mut self.row);
    }
}

/// Stores rows until there are no more. Only inside a cold exchange.
pub(super) fn load_rows(
    connection: &mut MySqlConnection,
    table: &str,
    columns: &[Name],
    next_row: &mut dyn FnMut(&mut Row) -> bool,
) -> Result<u64> {
    let mut source = Source { row: Row::new(), has_row: false, next_row };
    source.advance();
    let target = Target::find(connection, table, columns)?;
    run(connection, CHECKS_OFF)?;
    let result = store_all(connection, &target, &mut source);
    match &result {
        Err(error) if error.class.loses_connection() => {}
        _ => run(connection, CHECKS_AS_BEFORE)?,
    }
    result
}

fn store_all(
    connection: &mut MySqlConnection,
    target: &Target,
    source: &mut Source<'_>,
) -> Result<u64> {
    let mut n_stored = 0;
    while source.has_row {
        match load_piece(connection, target, source) {
            Ok(n_rows) => n_stored += n_rows,
            Err(error) if LOCAL_FILES_OFF.contains(&error.code.as_str()) => {
                return Ok(insert_all(connection, target, source)?.saturating_add(n_stored));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(n_stored)
}

struct Target {
    /// The quoted name: `` `t` ``.
    table: String,
    /// `` `a`, `b` ``
    columns: String,
    load: String,
}

impl Target {
    /// Asks the server in which columns a text is stored otherwise than in UTF-8.
    fn find(connection: &mut MySqlConnection, table: &str, columns: &[Name]) -> Result<Target> {
        let sql = format!(
            "SELECT column_name, data_type, character_set_name FROM information_schema.columns \
             WHERE table_schema = DATABASE() AND table_name = 0x{}",
            hex(table)
        );
        let mut of_text = Vec::new();
        connection.exchange_text(&sql, &mut |row| {
            let mut cells = row.into_iter().map(Option::unwrap_or_default);
            let mut next = || cells.next().unwrap_or_default();
            let (name, data_type, charset) = (next(), next(), next());
            // A column without a character set stores all bytes.
            let is_utf8 = ["", "utf8mb4", "utf8mb3", "utf8"].contains(&charset.as_str());
            if takes_text(&data_type.to_lowercase()) || !is_utf8 {
                of_text.push(name.to_lowercase());
            }
        })?;
        Ok(Target::new(table, columns, |name| of_text.contains(&name.to_lowercase())))
    }

    fn new(table: &str, columns: &[Name], is_of_text: impl Fn(&str) -> bool) -> Target {
        let table = quoted(table);
        let quoted: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
        let texts = columns.iter().map(|name| is_of_text(name));
        let load = load_statement(&table, quoted.iter().map(String::as_str).zip(texts));
        Target { table, columns: quoted.join(", "), load }
    }
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Types whose columns take no text without a character set.
const OF_TEXT: [&str; 4] = ["json", "uuid", "inet4", "inet6"];

/// Whether columns of this type, in small letters, take nothing but what is said to be text.
pub(super) fn takes_text(data_type: &str) -> bool {
    OF_TEXT.contains(&data_type)
}

/// `columns` are quoted, with true for texts in UTF-8, which the server converts; other bytes are stored
/// unchanged. Separators are explicit, as the session's SQL mode can change their defaults.
pub(super) fn load_statement<'a>(
    table: &str,
    columns: impl Iterator<Item = (&'a str, bool)>,
) -> String {
    let (mut places, mut set) = (Vec::new(), Vec::new());
    for (idx, (name, is_of_text)) in columns.enumerate() {
        if is_of_text {
            places.push(format!("@v{idx}"));
            set.push(format!("{name} = CONVERT(@v{idx} USING utf8mb4)"));
        } else {
            places.push(name.to_owned());
        }
    }
    let set = if set.is_empty() { String::new() } else { format!(" SET {}", set.join(", ")) };
    format!(
        "LOAD DATA LOCAL INFILE 'dyno' INTO TABLE {table} CHARACTER SET binary FIELDS TERMINATED \
         BY 0x09 ESCAPED BY 0x5C LINES TERMINATED BY 0x0A ({}){set}",
        places.join(", ")
    )
}

fn run(connection: &mut MySqlConnection, sql: &str) -> Result<()> {
    connection.exchange_text(sql, &mut |_| {}).map(|_| ())
}

/// Stores rows by one LOAD statement. An error of `LOCAL_FILES_OFF` has consumed no row.
fn load_piece(
    connection: &mut MySqlConnection,
    target: &Target,
    source: &mut Source<'_>,
) -> Result<u64> {
    load_data(connection, &target.load, |connection| send_rows(connection, source))
}

/// Sends a LOAD statement and the data that `send` sends, which returns their number of rows; how many are stored.
pub(super) fn load_data(
    connection: &mut MySqlConnection,
    load: &str,
    send: impl FnOnce(&mut MySqlConnection) -> Result<u64>,
) -> Result<u64> {
    connection.channel.command(command::QUERY, load.as_bytes())?;
    let answer = connection.channel.packet_in()?;
    match answer.first() {
        Some(&packets::LOCAL_FILE) => {}
        Some(&packets::ERROR) => return Err(packets::read_error(&answer)),
        _ => {
            return Err(not_understood(
                "the server answered LOAD DATA without requesting the data",
            ));
        }
    }
    let n_sent = send(connection)?;
    connection.channel.packet_out(&[])?;
    let answer = connection.channel.packet_in()?;
    stored(connection, &answer, n_sent)
}

/// According to the server's answer. Fails if rows are missing or changed.
pub(super) fn stored(connection: &mut MySqlConnection, answer: &[u8], n_sent: u64) -> Result<u64> {
    if answer.first() == Some(&packets::ERROR) {
        return Err(packets::read_error(answer));
    }
    let outcome = packets::Outcome::from_ok(answer)
        .ok_or_else(|| not_understood("the reply to the rows that were sent"))?;
    if outcome.warnings > 0 || outcome.affected != n_sent {
        refuse_changed(connection, n_sent, outcome.affected)?;
    }
    Ok(outcome.affected)
}

fn send_rows(connection: &mut MySqlConnection, source: &mut Source<'_>) -> Result<u64> {
    let mut packet = Vec::with_capacity(PACKET_LEN + PACKET_LEN / 4);
    packet.resize(HEADER_LEN, 0);
    let (mut n_rows, mut n_bytes) = (0, 0);
    while source.has_row && n_rows < MAX_ROWS && n_bytes < MAX_BYTES {
        source.row.write_tab_separated(&mut packet);
        n_rows += 1;
        source.advance();
        if packet.len() >= PACKET_LEN {
            n_bytes += packet.len();
            send_data(connection, &mut packet)?;
        }
    }
    if packet.len() > HEADER_LEN {
        send_data(connection, &mut packet)?;
    }
    Ok(n_rows)
}

/// Sends and clears a packet of rows, as several if a row is too long for one.
fn send_data(connection: &mut MySqlConnection, packet: &mut Vec<u8>) -> Result<()> {
    if packet.len() - HEADER_LEN < MAX_PAYLOAD {
        connection.channel.framed_out(packet)?;
    } else {
        for part in packet[HEADER_LEN..].chunks(PACKET_LEN) {
            connection.channel.packet_out(part)?;
        }
    }
    packet.truncate(HEADER_LEN);
    Ok(())
}

/// LOAD DATA LOCAL warns and skips rows, but data must be stored exactly. Notes are ignored.
fn refuse_changed(connection: &mut MySqlConnection, n_sent: u64, n_stored: u64) -> Result<()> {
    let mut warning = None;
    connection.exchange_text("SHOW WARNINGS", &mut |row| {
        let is_note = row.first().is_some_and(|level| level.as_deref() == Some("Note"));
        if !is_note && warning.is_none() {
            warning = Some(row);
        }
    })?;
    if warning.is_none() && n_sent == n_stored {
        return Ok(());
    }
    let mut cells = warning.unwrap_or_default().into_iter().skip(1).map(Option::unwrap_or_default);
    let code = cells.next().unwrap_or_else(|| "rows".to_owned());
    let reason = cells.next().unwrap_or_else(|| "the server gives no reason".to_owned());
    let class = match code.as_str() {
        "1062" => ErrorClass::DuplicateKey,
        _ => ErrorClass::Refused,
    };
    let message = format!("{n_stored} of {n_sent} rows were stored, some altered: {reason}");
    Err(StatementError::new(class, code, message))
}

fn insert_all(
    connection: &mut MySqlConnection,
    target: &Target,
    source: &mut Source<'_>,
) -> Result<u64> {
    let head = insert_head(&target.table, &target.columns);
    let mut n_stored = 0;
    while source.has_row {
        let mut sql = head.clone().into_bytes();
        while source.has_row && sql.len() < INSERT_LEN {
            if sql.len() > head.len() {
                sql.push(b',');
            }
            // Texts are in UTF-8, as the connection's are; what is not is no text.
            let is_binary = |_, value: &[u8]| std::str::from_utf8(value).is_err();
            push_row(&source.row, connection.escapes_by_backslash(), is_binary, &mut sql);
            source.advance();
        }
        connection.channel.command(command::QUERY, &sql)?;
        let answer = connection.channel.packet_in()?;
        if answer.first() == Some(&packets::ERROR) {
            return Err(packets::read_error(&answer));
        }
        match packets::Outcome::from_ok(&answer) {
            Some(outcome) => n_stored = outcome.affected.saturating_add(n_stored),
            None => return Err(not_understood("the reply to an INSERT")),
        }
    }
    Ok(n_stored)
}

/// The beginning of an INSERT statement; both names are quoted.
pub(super) fn insert_head(table: &str, columns: &str) -> String {
    format!("INSERT INTO {table} ({columns}) VALUES ")
}

/// Appends `(1,'text',NULL)`. `is_binary`, by place in the row and bytes, marks values to store unchanged;
/// others are texts of the connection's character set, which the server converts.
pub(super) fn push_row(
    row: &Row,
    escapes_by_backslash: bool,
    is_binary: impl Fn(usize, &[u8]) -> bool,
    sql: &mut Vec<u8>,
) {
    for (idx, &cell) in row.cells().iter().enumerate() {
        sql.push(if idx == 0 { b'(' } else { b',' });
        match cell {
            Cell::Null => sql.extend_from_slice(b"NULL"),
            Cell::Integer(number) => sql.extend_from_slice(number.to_string().as_bytes()),
            Cell::Text { .. } => {
                let text = row.text(cell);
                if is_binary(idx, text) {
                    sql.extend_from_slice(b"_binary");
                }
                sql.push(b'\'');
                for &byte in text {
                    if byte == b'\'' || (byte == b'\\' && escapes_by_backslash) {
                        sql.push(byte);
                    }
                    sql.push(byte);
                }
                sql.push(b'\'');
            }
        }
    }
    sql.push(b')');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &[u8], escapes_by_backslash: bool, is_binary: bool, expected: &[u8]) {
        let mut row = Row::new();
        row.push_integer(-5);
        row.push_null();
        row.push_text(text);
        let mut sql = Vec::new();
        push_row(&row, escapes_by_backslash, |idx, _| is_binary && idx == 2, &mut sql);
        assert_eq!(sql, expected, "{}", String::from_utf8_lossy(&sql));
    }

    #[test]
    fn literals_are_quoted_for_the_sessions_mode() {
        check(b"it's \\n", true, false, br"(-5,NULL,'it''s \\n')");
        check(b"it's \\n", false, false, br"(-5,NULL,'it''s \n')");
        check(b"\xff\0", true, true, b"(-5,NULL,_binary'\xff\0')");
    }

    #[test]
    fn names_are_quoted() {
        let target = Target::new("a`b", &dyno_model::names(&["c", "d e"]), |name| name == "d e");
        assert_eq!((target.table.as_str(), target.columns.as_str()), ("`a``b`", "`c`, `d e`"));
        let end = "(`c`, @v1) SET `d e` = CONVERT(@v1 USING utf8mb4)";
        assert!(target.load.ends_with(end), "{}", target.load);
    }
}
