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
}

impl Note {
    /// Finds the table of the note, or makes it.
    pub(super) fn open(notes: &mut ArchiveSide, options: &ArchiveOptions) -> Result<Note> {
        let dialect = notes.dialect;
        let mut digest = flate2::Crc::new();
        digest.update(options.table.as_bytes());
        let table = format!("dyno_archive_{:08x}", digest.sum());
        let quoted = quoted(dialect, &table);
        if notes.cell("look for the note of a batch", &exists(dialect, &table))?.is_none() {
            let create = create(dialect, &quoted);
            notes.rows("create a table", &create).map_err(|error| {
                ArchiveError::new(format!(
                    "the batch in flight is noted in the table `{table}` in the source: {error}; create it \
                     yourself: {create}"
                ))
            })?;
        }
        Ok(Note { table, quoted, destination: options.destination.clone() })
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
        // An empty table does no harm: who was not allowed to create it may not drop it either.
        let _ = (notes.ask)(&format!("DROP TABLE {}", self.quoted));
    }
}

fn exists(dialect: Dialect, table: &str) -> String {
    match dialect {
        Dialect::PostgreSql => {
            format!("SELECT to_regclass({})::text", text(dialect, &quoted(dialect, table)))
        }
        _ => format!(
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND \
             TABLE_NAME = {}",
            text(dialect, table)
        ),
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
    use super::*;

    #[test]
    fn keys_are_noted_in_parts() {
        assert_eq!(parts(&[]), Vec::<String>::new());
        assert_eq!(parts(&["-1", "20"]), ["-1,20"]);
        let key = "F".repeat(PART_MAX);
        assert_eq!(parts(&["1", &key, "2"]), [format!("1,{key}"), "2".to_owned()]);
    }
}
