//! Unmeasured work: collections are made, indexed, loaded and counted.

use bson::raw::{CString, RawBson, RawDocumentBuf};
use bson::rawdoc;
use dyno_model::Name;
use dyno_workload::documents::{DocumentCommand, FIELDS, INDEXED};
use dyno_workload::{Cell, Row, TextRows};

use super::connection::{MongoConnection, refused};
use super::template::object_id;
use super::{notes, reply};

use crate::error::StatementResult as Result;

/// A batch is sent when it has so many documents or bytes.
const BATCH_DOCUMENTS: u64 = 1000;
const BATCH_BYTES: usize = 1 << 20;

pub(super) fn carry_out(
    connection: &mut MongoConnection,
    command: &DocumentCommand,
) -> Result<TextRows> {
    let database = connection.database().to_owned();
    match command {
        DocumentCommand::Make(collection) => {
            notes::make(connection, collection)?;
            Ok(TextRows::new())
        }
        DocumentCommand::Index(collection) => {
            let index = rawdoc! { "key": { "number": 1 }, "name": INDEXED };
            let command = rawdoc! {
                "createIndexes": collection.as_str(), "indexes": [index], "$db": database.as_str(),
            };
            connection.command(&command)?;
            Ok(TextRows::new())
        }
        DocumentCommand::Sums(collection) => sums(connection, collection, &database),
        _ => Err(refused(format!("`{command}` is a client operation"))),
    }
}

/// Each of a command of its own: FerretDB 1.24 adds up only the first sum of a group, and answers 0 for the others.
fn sums(connection: &mut MongoConnection, collection: &str, database: &str) -> Result<TextRows> {
    let of: [RawBson; 3] = [1_i64.into(), "$version".into(), "$number".into()];
    let sums = of.into_iter().map(|of| {
        let group = rawdoc! { "$group": { "_id": null, "sum": { "$sum": of } } };
        let command = rawdoc! {
            "aggregate": collection, "pipeline": [group], "cursor": {}, "$db": database,
        };
        let answer = connection.command(&command)?;
        let cursor = answer.get("cursor").ok().flatten().and_then(|cursor| cursor.as_document());
        let batch = cursor.and_then(reply::first_batch);
        let found = batch.and_then(|batch| batch.get(0).ok().flatten());
        // An empty collection has no group.
        let sum = found.map_or(Some(0), |found| reply::number(found.as_document()?, "sum"));
        Ok(sum.map(|sum| sum.to_string()))
    });
    Ok(vec![sums.collect::<Result<_>>()?])
}

/// Inserts rows as documents, in batches; columns are the names of fields.
pub(super) fn load(
    connection: &mut MongoConnection,
    collection: &str,
    columns: &[Name],
    next_row: &mut dyn FnMut(&mut Row) -> bool,
) -> Result<u64> {
    let name = |column: &Name| CString::try_from(column.as_ref());
    let names: Result<Vec<CString>, _> = columns.iter().map(name).collect();
    let names = names.map_err(|error| refused(error.to_string()))?;
    let mut row = Row::new();
    let (mut batch, mut n_batch, mut n_stored) = (Vec::new(), 0, 0);
    loop {
        row.clear();
        let has_more = next_row(&mut row);
        if has_more {
            batch.extend_from_slice(document(&names, &row)?.as_bytes());
            n_batch += 1;
        }
        let is_full = n_batch >= BATCH_DOCUMENTS || batch.len() >= BATCH_BYTES;
        if is_full || (!has_more && n_batch > 0) {
            n_stored = connection.insert(collection, &batch)?.saturating_add(n_stored);
            batch.clear();
            n_batch = 0;
        }
        if !has_more {
            return Ok(n_stored);
        }
    }
}

fn document(names: &[CString], row: &Row) -> Result<RawDocumentBuf> {
    let mut document = RawDocumentBuf::new();
    for (name, cell) in names.iter().zip(row.cells()) {
        match *cell {
            Cell::Null => document.append(name, bson::raw::RawBsonRef::Null),
            Cell::Integer(key) if name.as_str() == FIELDS[0] => {
                document.append(name, object_id(key as u64));
            }
            Cell::Integer(number) => document.append(name, number),
            Cell::Text { .. } => {
                let text = std::str::from_utf8(row.text(*cell));
                document.append(name, text.map_err(|error| refused(error.to_string()))?);
            }
        }
    }
    Ok(document)
}
