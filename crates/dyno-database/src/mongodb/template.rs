//! Commands written once, with fixed places for their values. Fields are those of
//! [`dyno_workload::documents::FIELDS`]; a test compares them.

use bson::oid::ObjectId;
use bson::raw::RawDocumentBuf;
use bson::rawdoc;
use dyno_workload::Value;
use dyno_workload::documents::DocumentCommand;

use super::wire::{renumber, write_message};

/// Stand for values until they are known: no text and no length has these bytes.
const FIRST: i64 = 0x7e11_fa15_c0de_f001;
const SECOND: i64 = 0x7e11_fa15_c0de_f002;
const KEY: u64 = 0x7e11_fa15_c0de_f003;

const CONTENT_MAX: u64 = 16 << 20;

/// A place for a value, in bytes from the message's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A key: the last eight bytes of an ObjectId.
    Key(usize),
    Integer(usize),
    Text {
        at: usize,
        length: usize,
    },
}

#[derive(Clone, Copy, Debug)]
enum Mark {
    Key,
    First,
    Second,
}

/// Most documents have an ObjectId as key. FerretDB 1 looks it up in SQLite, but not whole numbers.
pub(super) fn object_id(key: u64) -> ObjectId {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&key.to_be_bytes());
    ObjectId::from_bytes(bytes)
}

/// A message with places for the values of a command, in their order.
#[derive(Clone, Debug)]
pub(super) struct Template {
    message: Vec<u8>,
    places: Vec<Place>,
}

impl Template {
    /// Fails if the command is no client's operation, or too large.
    pub(super) fn new(command: &DocumentCommand, database: &str) -> Result<Template, String> {
        let refuse = || format!("`{command}` is not a client operation");
        let content = |length: &u64| match *length {
            0..=CONTENT_MAX => Ok("\u{1}".repeat(*length as usize)),
            _ => Err(refuse()),
        };
        let (key, first, second) = (Mark::Key, Mark::First, Mark::Second);
        let (document, marks, n_text) = match command {
            DocumentCommand::Find(collection) => {
                let filter = rawdoc! { "_id": object_id(KEY) };
                (find(collection, filter, 1, database), vec![key], 0)
            }
            DocumentCommand::Range(collection, limit) => {
                let limit = i32::try_from(*limit).map_err(|_| refuse())?;
                let filter = rawdoc! { "number": { "$gte": FIRST, "$lt": SECOND } };
                (find(collection, filter, limit, database), vec![first, second], 0)
            }
            DocumentCommand::Insert(collection, length) => {
                let document = rawdoc! {
                    "_id": object_id(KEY), "number": FIRST, "version": 0_i64, "content": content(length)?,
                };
                let document = rawdoc! {
                    "insert": collection.as_str(), "documents": [document], "ordered": true, "$db": database,
                };
                (document, vec![key, first], *length)
            }
            DocumentCommand::Update(collection, length) => {
                let update = rawdoc! {
                    "q": { "_id": object_id(KEY) },
                    "u": { "$set": { "content": content(length)? }, "$inc": { "version": 1_i64 } },
                };
                let document = rawdoc! {
                    "update": collection.as_str(), "updates": [update], "ordered": true, "$db": database,
                };
                (document, vec![key], *length)
            }
            DocumentCommand::Make(_) | DocumentCommand::Index(_) | DocumentCommand::Sums(_) => {
                return Err(refuse());
            }
        };
        Template::of(&document, &marks, n_text as usize).ok_or_else(refuse)
    }

    /// Finds the places of the marks, and of a content of so many bytes; 0 for none.
    fn of(document: &RawDocumentBuf, marks: &[Mark], n_text: usize) -> Option<Template> {
        let mut message = Vec::new();
        write_message(0, document, &mut message);
        let mut places = Vec::new();
        for mark in marks {
            let (bytes, place): (_, fn(usize) -> Place) = match mark {
                Mark::Key => (KEY.to_be_bytes(), Place::Key),
                Mark::First => (FIRST.to_le_bytes(), Place::Integer),
                Mark::Second => (SECOND.to_le_bytes(), Place::Integer),
            };
            let mut found = memchr::memmem::find_iter(&message, &bytes);
            places.push(place(found.next()?));
            if found.next().is_some() {
                return None;
            }
        }
        if n_text > 0 {
            // A text is its length with the zero behind it, the text, and the zero.
            let mut text = (n_text as u32 + 1).to_le_bytes().to_vec();
            text.resize(4 + n_text, 1);
            text.push(0);
            let mut found = memchr::memmem::find_iter(&message, &text);
            places.push(Place::Text { at: found.next()? + 4, length: n_text });
            if found.next().is_some() {
                return None;
            }
        }
        Some(Template { message, places })
    }

    /// Writes the message of this number with these values over what is in `out`; false if they do not fit.
    pub(super) fn write(&self, number: i32, values: &[Value<'_>], out: &mut Vec<u8>) -> bool {
        out.clear();
        out.extend_from_slice(&self.message);
        renumber(out, number);
        if values.len() != self.places.len() {
            return false;
        }
        for (place, value) in self.places.iter().zip(values) {
            match (*place, value) {
                (Place::Key(at), Value::Integer(key)) => {
                    out[at..at + 8].copy_from_slice(&key.to_be_bytes());
                }
                (Place::Integer(at), Value::Integer(number)) => {
                    out[at..at + 8].copy_from_slice(&number.to_le_bytes());
                }
                (Place::Text { at, length }, Value::Text(text)) if text.len() == length => {
                    // A text must be UTF-8; letters of ASCII are.
                    if !text.is_ascii() {
                        return false;
                    }
                    out[at..at + length].copy_from_slice(text);
                }
                _ => return false,
            }
        }
        true
    }
}

/// Finds at most so many documents, all in one answer.
fn find(collection: &str, filter: RawDocumentBuf, limit: i32, database: &str) -> RawDocumentBuf {
    rawdoc! {
        "find": collection, "filter": filter, "limit": limit, "batchSize": limit, "singleBatch": true,
        "$db": database,
    }
}
