//! The facts that a server reports.

use std::collections::BTreeMap;

use bson::raw::{RawBsonRef, RawDocument};
use bson::rawdoc;

use super::connection::MongoConnection;
use super::reply::text;
use crate::cleaner::Cleaner;
use crate::error::{Context, Result};
use crate::{DeployError, Durability, Endpoint, ServerFacts};

/// Product and version: `FerretDB`, `1.24.0`.
pub(super) fn version(connection: &mut MongoConnection) -> Result<(&'static str, String)> {
    let asked = connection.command(&rawdoc! { "buildInfo": 1, "$db": "admin" });
    let info = asked.context("cannot read the server's version")?;
    let ferretdb = text(&info, "ferretdbVersion").or_else(|| {
        let own = info.get("ferretdb").ok().flatten().and_then(RawBsonRef::as_document)?;
        text(own, "version")
    });
    let (product, version) = match ferretdb {
        Some(version) => ("FerretDB", Some(version)),
        None => ("MongoDB", text(&info, "version")),
    };
    let version =
        version.ok_or_else(|| DeployError::new("the server does not report its version"))?;
    Ok((product, version.trim_start_matches('v').to_owned()))
}

pub(super) fn ask(endpoint: &Endpoint, connection: &mut MongoConnection) -> Result<ServerFacts> {
    let cleaner = Cleaner::new(endpoint.password.as_ref());
    let (product, version) = version(connection)?;
    let hello = connection.command(&rawdoc! { "hello": 1, "$db": "admin" });
    let hello = hello.context("cannot ask the server what it is")?;
    Ok(ServerFacts {
        product: product.to_owned(),
        version: cleaner.clean(&version),
        settings: of_deployment(&hello, connection, &cleaner),
        durability: Durability::unknown(),
        ..ServerFacts::at(endpoint, connection.is_tls())
    })
}

fn of_deployment(
    hello: &RawDocument,
    connection: &mut MongoConnection,
    cleaner: &Cleaner,
) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    if text(hello, "msg") == Some("isdbgrid") {
        found.insert("role".to_owned(), "router of shards (mongos)".to_owned());
    }
    if let Some(name) = text(hello, "setName") {
        found.insert("replica_set".to_owned(), cleaner.clean(name));
    }
    // Not every user may ask for it.
    let status = connection.command(&rawdoc! { "serverStatus": 1, "$db": "admin" }).ok();
    let engine = status.as_deref().and_then(|status| {
        let engine = status.get("storageEngine").ok().flatten()?.as_document()?;
        text(engine, "name")
    });
    if let Some(engine) = engine {
        found.insert("storage_engine".to_owned(), cleaner.clean(engine));
    }
    found
}
