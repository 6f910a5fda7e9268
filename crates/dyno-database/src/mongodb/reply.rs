//! Reads answers: documents and counts, or an error. Allocates only for errors.

use bson::raw::{RawArray, RawBsonRef, RawDocument};
use dyno_workload::{ErrorClass, Reply, StatementError};

/// The server is going down or no longer primary; whether a write was kept is unknown.
const GONE: [i32; 7] = [91, 189, 10107, 11600, 11602, 13435, 13436];

/// A number of any of the types that servers answer with.
pub(super) fn whole(value: RawBsonRef<'_>) -> Option<i64> {
    match value {
        RawBsonRef::Int32(number) => Some(number.into()),
        RawBsonRef::Int64(number) => Some(number),
        RawBsonRef::Double(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
            Some(number as i64)
        }
        RawBsonRef::Boolean(is_so) => Some(is_so.into()),
        _ => None,
    }
}

pub(super) fn number(document: &RawDocument, name: &str) -> Option<i64> {
    document.get(name).ok().flatten().and_then(whole)
}

pub(super) fn text<'a>(document: &'a RawDocument, name: &str) -> Option<&'a str> {
    document.get(name).ok().flatten().and_then(RawBsonRef::as_str)
}

/// Fails with the server's error, or if the answer is unreadable.
pub(super) fn read(body: &RawDocument) -> Result<Reply, StatementError> {
    let mut reply = Reply::default();
    let (mut is_good, mut has_failed, mut modified) = (false, false, None);
    for element in body.iter() {
        let (name, value) = element.map_err(malformed)?;
        match name.as_str() {
            "ok" => is_good = whole(value) == Some(1),
            "n" => reply.affected = count(value),
            "nModified" => modified = Some(count(value)),
            "cursor" => reply.rows = documents(value)?,
            "writeErrors" | "writeConcernError" => has_failed = true,
            _ => {}
        }
    }
    if !is_good || has_failed {
        return Err(error_in(body));
    }
    if let Some(modified) = modified {
        reply.affected = modified;
    }
    Ok(reply)
}

fn count(value: RawBsonRef<'_>) -> u64 {
    whole(value).and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
}

fn documents(cursor: RawBsonRef<'_>) -> Result<u64, StatementError> {
    let batch = cursor.as_document().and_then(first_batch);
    let mut n = 0;
    for document in batch.into_iter().flat_map(RawArray::iter_elements) {
        document.map_err(malformed)?;
        n += 1;
    }
    Ok(n)
}

pub(super) fn first_batch(cursor: &RawDocument) -> Option<&RawArray> {
    cursor.get("firstBatch").ok().flatten().and_then(RawBsonRef::as_array)
}

#[cold]
fn malformed(error: impl std::fmt::Display) -> StatementError {
    let message = format!("the server's reply cannot be read: {error}");
    StatementError::new(ErrorClass::Disconnected, "bson", message)
}

/// The error that an answer reports: of the command, of its first write, or of the write concern.
#[cold]
fn error_in(body: &RawDocument) -> StatementError {
    let part = |name: &str| body.get(name).ok().flatten();
    let first_write = part("writeErrors")
        .and_then(RawBsonRef::as_array)
        .and_then(|errors| errors.get(0).ok().flatten())
        .and_then(RawBsonRef::as_document);
    if let Some(error) = first_write {
        return of_document(error);
    }
    match part("writeConcernError").and_then(RawBsonRef::as_document) {
        Some(error) if number(body, "ok") == Some(1) => {
            // It is there, and may be rolled back: nobody knows.
            StatementError { class: ErrorClass::Disconnected, ..of_document(error) }
        }
        _ => of_document(body),
    }
}

fn of_document(error: &RawDocument) -> StatementError {
    let code = number(error, "code").and_then(|code| i32::try_from(code).ok()).unwrap_or_default();
    let message = text(error, "errmsg").unwrap_or("the server gives no reason");
    StatementError::new(class_of(code, message), code.to_string(), message)
}

/// The class of an error. FerretDB passes the errors of its back end on as internal ones.
fn class_of(code: i32, message: &str) -> ErrorClass {
    match code {
        11000 | 11001 => ErrorClass::DuplicateKey,
        112 => ErrorClass::Serialization,
        24 => ErrorClass::LockTimeout,
        code if GONE.contains(&code) => ErrorClass::Disconnected,
        _ if message.contains("SQLITE_BUSY") => ErrorClass::LockTimeout,
        _ if message.contains("SQLSTATE 40001") => ErrorClass::Serialization,
        _ if message.contains("SQLSTATE 40P01") => ErrorClass::Deadlock,
        _ => ErrorClass::Refused,
    }
}
