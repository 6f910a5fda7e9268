//! Notes which collections are Dyno's: only those are ever dropped.
//!
//! Before it makes collections, Dyno notes them in one of its own: `dyno_tables`, a document each. The server does not
//! know who made a collection, and a user who may write into a database may drop its collections as well: the notes are
//! as safe as the database itself.

use bson::raw::{RawBsonRef, RawDocument};
use bson::rawdoc;
use dyno_workload::StatementError;

use super::connection::{MongoConnection, refused};
use super::reply::{first_batch, text};
use crate::catalog::some_of;
use crate::error::StatementResult as Result;

const NOTES: &str = "dyno_tables";

/// What each note says besides a name, so that somebody else's collection is not taken for Dyno's.
const MADE_BY: &str = "Dyno";

/// The prefix of collections of the server itself.
const SYSTEM: &str = "system.";

/// The code of an error for a collection that is not there.
const NO_COLLECTION: &str = "26";

/// The texts of this field in the first batch of an answer.
fn texts(answer: &RawDocument, field: &str) -> Option<Vec<Option<String>>> {
    let cursor = answer.get("cursor").ok()??.as_document()?;
    if super::reply::number(cursor, "id") != Some(0) {
        // More of them than one batch has.
        return None;
    }
    let documents = first_batch(cursor)?.into_iter();
    let of_document = |element: bson::error::Result<RawBsonRef<'_>>| {
        text(element.ok()?.as_document()?, field).map(str::to_owned)
    };
    Some(documents.map(of_document).collect())
}

fn too_many(what: &str) -> StatementError {
    refused(format!("the database has more {what} than Dyno can check"))
}

/// The collections of the database, those of the server itself not included.
pub(super) fn collections(connection: &mut MongoConnection) -> Result<Vec<String>> {
    let list = rawdoc! {
        "listCollections": 1, "nameOnly": true, "cursor": { "batchSize": 10_000 },
        "$db": connection.database(),
    };
    let answer = connection.command(&list)?;
    let names = texts(&answer, "name").ok_or_else(|| too_many("collections"))?;
    let names = names.into_iter().flatten();
    Ok(names.filter(|name| !name.starts_with(SYSTEM)).collect())
}

fn noted(connection: &mut MongoConnection, collections: &[String]) -> Result<Vec<String>> {
    if !collections.iter().any(|name| name == NOTES) {
        return Ok(Vec::new());
    }
    let find = rawdoc! {
        "find": NOTES, "filter": {}, "batchSize": 10_000, "$db": connection.database(),
    };
    let answer = connection.command(&find)?;
    let names = texts(&answer, "_id").ok_or_else(|| too_many("notes"))?;
    let makers = texts(&answer, "made_by").ok_or_else(|| too_many("notes"))?;
    let is_ours = makers.iter().all(|maker| maker.as_deref() == Some(MADE_BY));
    if !is_ours || names.iter().any(Option::is_none) {
        return Err(refused(format!(
            "the database contains a collection `{NOTES}` that Dyno did not create in this form, \
             so Dyno cannot know what it may drop; find out what it is and drop it, or give Dyno \
             its own database"
        )));
    }
    Ok(names.into_iter().flatten().collect())
}

/// Refuses a database with collections that Dyno did not make, unless those are allowed.
pub(super) fn claim(connection: &mut MongoConnection, allow_existing: bool) -> Result<()> {
    let all = collections(connection)?;
    let noted = noted(connection, &all)?;
    let foreign: Vec<&str> = all
        .iter()
        .filter(|name| *name != NOTES && !noted.contains(name))
        .map(String::as_str)
        .collect();
    if foreign.is_empty() || allow_existing {
        return Ok(());
    }
    let named = some_of(&foreign);
    Err(refused(format!(
        "the database contains collections that Dyno did not create ({named}); give Dyno its own \
         database, or allow them with `--allow-existing-tables` (in a study: \
         `allow_existing_tables = true`), and Dyno leaves them alone"
    )))
}

/// Makes an empty collection, in the place of one that is Dyno's, and notes it first.
pub(super) fn make(connection: &mut MongoConnection, collection: &str) -> Result<()> {
    let all = collections(connection)?;
    let noted = noted(connection, &all)?;
    let is_noted = noted.iter().any(|name| name == collection);
    let is_there = all.iter().any(|name| name == collection);
    if collection == NOTES || (is_there && !is_noted) {
        return Err(refused(format!(
            "the database contains a collection `{collection}` that Dyno did not create and will \
             not replace; give Dyno its own database, or rename it"
        )));
    }
    if is_there {
        drop_one(connection, collection)?;
    }
    if !is_noted {
        let database = connection.database().to_owned();
        let note = rawdoc! { "_id": collection, "made_by": MADE_BY };
        let insert = rawdoc! { "insert": NOTES, "documents": [note], "$db": database.as_str() };
        connection.command(&insert)?;
    }
    let create = rawdoc! { "create": collection, "$db": connection.database() };
    let created = connection.command(&create);
    if created.is_err() && !is_noted {
        // Whatever is there now is not Dyno's. The first error is the one to report.
        let database = connection.database().to_owned();
        let one = rawdoc! { "q": { "_id": collection }, "limit": 1 };
        let _ = connection
            .command(&rawdoc! { "delete": NOTES, "deletes": [one], "$db": database.as_str() });
    }
    created.map(drop)
}

fn drop_one(connection: &mut MongoConnection, collection: &str) -> Result<()> {
    let command = rawdoc! { "drop": collection, "$db": connection.database() };
    match connection.command(&command) {
        Err(error) if error.code != NO_COLLECTION => Err(error),
        _ => Ok(()),
    }
}

/// Drops the collections that are noted as Dyno's, and the notes.
pub(super) fn drop_all(connection: &mut MongoConnection) -> Result<()> {
    let all = collections(connection)?;
    let noted = noted(connection, &all)?;
    for collection in noted.iter().filter(|name| all.contains(name)) {
        drop_one(connection, collection)?;
    }
    if all.iter().any(|name| name == NOTES) { drop_one(connection, NOTES) } else { Ok(()) }
}
