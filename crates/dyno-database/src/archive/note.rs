//! The note of the batch in flight: the keys that it stores at the destination.
//!
//! It is a table in the source, written by a connection of its own before the rows are stored, and emptied by the
//! transaction that deletes them. After a killed run it tells which rows at the destination belong to an unfinished
//! batch and may have changed in the source since.

use dyno_workload::Dialect;

use super::sql::{quoted, text};
use super::value::{self, Kind};
use super::{ArchiveError, ArchiveOptions, ArchiveSide, Result, refuse};

const PART_MAX: usize = 96 * 1024;

pub(super) struct Note {
    table: String,
    quoted: String,
    destination: String,
    /// Whether Dyno could not make it again: then somebody has made it by hand, and it stays.
    stays: bool,
}

impl Note {
    /// Finds the table of the note, or makes it.
    pub(super) fn open(notes: &mut ArchiveSide, options: &ArchiveOptions) -> Result<Note> {
        let dialect = notes.dialect;
        let mut digest = flate2::Crc::new();
        digest.update(options.table.as_bytes());
        let table = format!("dyno_archive_{:08x}", digest.sum());
        let quoted = quoted(dialect, &table);
        let look = found(dialect, &table);
        let mut there = notes.rows("look for the note of a batch", &look)?;
        if there.is_empty() {
            let create = create(dialect, &quoted);
            notes.rows("create a table", &create).map_err(|error| {
                // Long messages lose their end.
                ArchiveError::new(format!(
                    "the batch in flight is noted in the table `{table}` in the source; create it yourself (in \
                     PostgreSQL as this user or a superuser): {create}; {error}"
                ))
            })?;
            there = notes.rows("look for the note of a batch", &look)?;
        }
        let mut cells = there.into_iter().flatten().map(Option::unwrap_or_default);
        let (schema, is_own) = (cells.next().unwrap_or_default(), cells.next());
        let stays = cells.next().as_deref() == Some("0");
        if is_own.as_deref() != Some("1") {
            return refuse(format!(
                "the batch in flight is noted in the table `{table}` in the source, but what has that name there is \
                 not a plain table (InnoDB in MariaDB and MySQL) without triggers and rules, or belongs in \
                 PostgreSQL to another user who is no superuser; drop it, or give it to this user"
            ));
        }
        let quoted = schema + &quoted;
        Ok(Note { table, quoted, destination: options.destination.clone(), stays })
    }

    /// The keys in the note, each in its one text; none if the last batch has ended.
    pub(super) fn read(&self, side: &mut ArchiveSide, kind: Kind) -> Result<Vec<String>> {
        let read = format!("SELECT destination, row_keys FROM {} ORDER BY part", self.quoted);
        let mut keys = Vec::new();
        for row in side.rows("read the note of a batch", &read)? {
            let mut cells = row.into_iter().map(Option::unwrap_or_default);
            let destination = cells.next().unwrap_or_default();
            if destination != self.destination {
                return refuse(format!(
                    "a run to {} was interrupted in a batch, some rows of which may be stored there: give \
                     that destination once more in these words; if it is gone, drop the table `{}` in the \
                     source",
                    dyno_units::clean_text(&destination),
                    self.table
                ));
            }
            for key in cells.next().unwrap_or_default().split(',') {
                if value::canonical(kind, key).as_deref() != Ok(key) {
                    return refuse(format!(
                        "the table `{}` in the source holds something other than keys; drop it if it \
                         is not Dyno's",
                        self.table
                    ));
                }
                keys.push(key.to_owned());
            }
        }
        Ok(keys)
    }

    /// Notes these keys in the empty note.
    pub(super) fn write(&self, notes: &mut ArchiveSide, keys: &[&str]) -> Result<()> {
        let to = text(notes.dialect, &self.destination);
        let doing = "note the batch";
        notes.rows(doing, "BEGIN")?;
        for (part, keys) in parts(keys).iter().enumerate() {
            let insert = format!("INSERT INTO {} VALUES ({part}, {to}, '{keys}')", self.quoted);
            notes.rows(doing, &insert)?;
        }
        notes.rows(doing, "COMMIT")?;
        Ok(())
    }

    pub(super) fn clear(&self) -> String {
        format!("DELETE FROM {}", self.quoted)
    }

    /// Removes the table, when no batch is in flight.
    pub(super) fn close(&self, notes: &mut ArchiveSide) {
        if self.stays {
            return;
        }
        // An empty table does no harm, and a superuser's table stays.
        let _ = notes.send(&format!("DROP TABLE {}", self.quoted));
    }
}

/// Asks for what has the note's name: its schema with a dot, quoted; 1 if nothing that another user made can run when
/// the note is used, nor forge it; and 0 if the user may not make tables there. MariaDB and MySQL do not know who made a
/// table and, without the privilege TRIGGER, do not show their triggers, which run there with the rights of who made
/// them; who may not make tables there may not drop them either, as a rule.
fn found(dialect: Dialect, table: &str) -> String {
    match dialect {
        Dialect::PostgreSql => format!(
            "SELECT pg_catalog.concat(pg_catalog.quote_ident(n.nspname), '.'), \
             (c.relkind = 'r' AND NOT c.relhastriggers AND NOT c.relhasrules AND NOT c.relrowsecurity \
             AND (o.rolname = current_user OR o.rolsuper))::int, \
             pg_catalog.has_schema_privilege(n.oid, 'CREATE')::int FROM pg_catalog.pg_class c \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             JOIN pg_catalog.pg_roles o ON o.oid = c.relowner \
             WHERE c.oid = pg_catalog.to_regclass({})::oid",
            text(dialect, &quoted(dialect, table))
        ),
        _ => {
            let name = text(dialect, table);
            format!(
                "SELECT '', TABLE_TYPE = 'BASE TABLE' AND ENGINE = 'InnoDB' AND NOT EXISTS (SELECT 1 FROM \
                 information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = DATABASE() AND \
                 EVENT_OBJECT_TABLE = {name}), 1 FROM information_schema.TABLES \
                 WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {name}"
            )
        }
    }
}

fn create(dialect: Dialect, quoted: &str) -> String {
    let (of_keys, kind) = match dialect {
        Dialect::PostgreSql => ("TEXT", ""),
        _ => ("LONGTEXT", " ENGINE = InnoDB DEFAULT CHARSET = utf8mb4"),
    };
    format!(
        "CREATE TABLE {quoted} (part INT PRIMARY KEY, destination TEXT NOT NULL, \
         row_keys {of_keys} NOT NULL){kind}"
    )
}

/// Keys with commas between them; a key is a number or hexadecimal digits.
fn parts(keys: &[&str]) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for key in keys {
        match parts.last_mut() {
            Some(part) if part.len() < PART_MAX => part.extend([",", key]),
            _ => parts.push((*key).to_owned()),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use dyno_workload::Dialect::{MySql, PostgreSql};

    use super::*;

    /// Opens and closes the note on a server that answers each look for it in turn; returns its name, and what was sent
    /// besides.
    fn opened(dialect: Dialect, looks: &[Option<[&str; 3]>]) -> (Result<String>, Vec<String>) {
        let mut answers: Vec<_> =
            looks.iter().rev().map(|row| row.map(|row| row.map(str::to_owned))).collect();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&sent);
        let ask = move |sql: &str| {
            if sql.starts_with("BEGIN") || sql == "COMMIT" {
                return Ok(Vec::new());
            }
            if sql.starts_with("SELECT") {
                let row = answers.pop().expect("an answer");
                return Ok(row.into_iter().map(|row| row.map(Some).to_vec()).collect());
            }
            noted.lock().unwrap().push(sql.to_owned());
            Ok(Vec::new())
        };
        let options = ArchiveOptions {
            table: "orders".to_owned(),
            condition: String::new(),
            batch: 1,
            limit: None,
            creates: false,
            destination: String::new(),
        };
        let mut side = ArchiveSide::sending(dialect, Box::new(ask));
        let note = Note::open(&mut side, &options).map(|note| {
            note.close(&mut side);
            note.clear()
        });
        let sent = sent.lock().unwrap().clone();
        (note, sent)
    }

    #[test]
    fn a_note_that_another_user_may_have_made_is_neither_used_nor_dropped() {
        let check =
            |dialect, looks: &[Option<[&str; 3]>], expected: Option<&str>, n_sent: usize| {
                let (note, sent) = opened(dialect, looks);
                assert_eq!(sent.len(), n_sent, "{sent:?}");
                match expected {
                    Some(clear) => assert_eq!(note.as_deref(), Ok(clear)),
                    None => {
                        let error = note.unwrap_err().to_string();
                        assert!(error.contains("`dyno_archive_e52ffdee`"), "{error}");
                        assert!(error.contains("not a plain table"), "{error}");
                    }
                }
            };
        let of_postgresql = Some("DELETE FROM \"A b\".\"dyno_archive_e52ffdee\"");
        let of_mysql = Some("DELETE FROM `dyno_archive_e52ffdee`");
        check(PostgreSql, &[Some(["\"A b\".", "1", "1"])], of_postgresql, 1);
        check(PostgreSql, &[None, Some(["\"A b\".", "1", "1"])], of_postgresql, 2);
        // It was made by hand, and cannot be made again.
        check(PostgreSql, &[Some(["\"A b\".", "1", "0"])], of_postgresql, 0);
        check(PostgreSql, &[Some(["public.", "0", "1"])], None, 0);
        // Somebody was quicker.
        check(PostgreSql, &[None, Some(["public.", "0", "1"])], None, 1);
        check(PostgreSql, &[None, None], None, 1);
        check(MySql, &[Some(["", "1", "1"])], of_mysql, 1);
        check(MySql, &[None, Some(["", "1", "1"])], of_mysql, 2);
        check(MySql, &[Some(["", "0", "1"])], None, 0);
    }

    #[test]
    fn keys_are_noted_in_parts() {
        assert_eq!(parts(&[]), Vec::<String>::new());
        assert_eq!(parts(&["-1", "20"]), ["-1,20"]);
        let key = "F".repeat(PART_MAX);
        assert_eq!(parts(&["1", &key, "2"]), [format!("1,{key}"), "2".to_owned()]);
    }
}
