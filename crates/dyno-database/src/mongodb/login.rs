//! Opening a connection: TLS, the greeting, the login by SCRAM-SHA-256.

use std::io;

use bson::raw::{RawBsonRef, RawDocument, RawDocumentBuf};
use bson::spec::BinarySubtype;
use bson::{Binary, rawdoc};
use dyno_workload::{ConnectError, StatementError};

use super::connection::MongoConnection;
use super::reply;
use crate::cleaner::Cleaner;
use crate::scram::{Binding, ScramCache, ScramExchange};
use crate::transport::Transport;
use crate::{Endpoint, TlsMode};

const MECHANISM: &str = "SCRAM-SHA-256";

/// Where a server keeps the users that may use all databases.
const ADMIN: &str = "admin";

/// The code of an error for a wrong user or password.
const NO_LOGIN: &str = "18";

/// Rounds of a login after which it is given up: two are needed, and a third by servers that want an empty one.
const ROUNDS_MAX: usize = 4;

/// Opens a connection; blocks, and gives up if the login takes longer than half a minute.
pub(super) fn open(
    endpoint: &Endpoint,
    cache: &ScramCache,
) -> Result<MongoConnection, ConnectError> {
    let cleaner = Cleaner::new(endpoint.password.as_ref());
    let opened = begin(endpoint, cache, &cleaner);
    opened.map_err(|reason| endpoint.not_opened(cleaner.clean(&reason)))
}

fn begin(
    endpoint: &Endpoint,
    cache: &ScramCache,
    cleaner: &Cleaner,
) -> Result<MongoConnection, String> {
    let source = auth_source(endpoint)?;
    let mut transport = Transport::open(endpoint).map_err(|error| unreached(&error))?;
    if endpoint.tls != TlsMode::Off {
        let started = transport.start_tls(&endpoint.tls, endpoint.tls_name());
        started.map_err(|error| format!("TLS: {error}"))?;
    }
    let mut connection = MongoConnection::new(transport, &endpoint.catalog, cleaner.clone());
    let hello = rawdoc! {
        "hello": 1,
        "client": {
            "application": { "name": "dyno" },
            "driver": { "name": "dyno", "version": env!("CARGO_PKG_VERSION") },
            "os": { "type": "Linux" },
        },
        "$db": ADMIN,
    };
    let hello = connection.command(&hello).map_err(|error| {
        format!(
            "{error}; is a server that speaks MongoDB's protocol (version 4.4 or later) \
            listening there?"
        )
    })?;
    check_primary(&hello)?;
    if endpoint.password.is_some() {
        log_in(&mut connection, endpoint, (&source, cache))?;
    }
    connection.logged_in().map_err(|error| error.to_string())?;
    // Servers greet everybody.
    super::notes::collections(&mut connection).map_err(|error| needs_login(endpoint, &error))?;
    Ok(connection)
}

/// The database that has the user: what the URL's options say, or its own.
fn auth_source(endpoint: &Endpoint) -> Result<String, String> {
    match endpoint.session_options.as_deref() {
        None => Ok(endpoint.catalog.clone()),
        Some(options) => match options.strip_prefix("authSource=") {
            Some(source) if !source.is_empty() && !source.contains(['&', ' ']) => {
                Ok(source.to_owned())
            }
            _ => Err("the URL's `options` can be `authSource%3DDATABASE` and nothing else: the \
                      database to which the user belongs, if it is not the one in the URL"
                .to_owned()),
        },
    }
}

fn unreached(error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::ConnectionRefused => "; nothing is listening there: is the server up?",
        io::ErrorKind::NotFound => "; there is no such socket: is the server up?",
        io::ErrorKind::PermissionDenied => "; this user is not allowed to use that socket",
        _ => "",
    };
    format!("{error}{advice}")
}

/// Refuses a member of a replica set that takes no writes.
fn check_primary(hello: &RawDocument) -> Result<(), String> {
    let is_primary = ["isWritablePrimary", "ismaster"]
        .iter()
        .find_map(|name| reply::number(hello, name))
        .unwrap_or(1);
    if is_primary == 1 {
        return Ok(());
    }
    let primary = reply::text(hello, "primary");
    let advice = primary.map_or_else(
        || "the replica set has no primary at the moment".to_owned(),
        |primary| format!("the primary is {primary}"),
    );
    Err(format!("the server is a secondary and accepts no writes; {advice}"))
}

fn log_in(
    connection: &mut MongoConnection,
    endpoint: &Endpoint,
    (source, cache): (&str, &ScramCache),
) -> Result<(), String> {
    let password = endpoint.password.as_ref().map(|word| word.reveal()).unwrap_or_default();
    // Of the name only these two must be written differently (RFC 5802).
    let user = endpoint.user.replace('=', "=3D").replace(',', "=2C");
    let mut exchange =
        ScramExchange::new(&user, ScramExchange::make_nonce()?, Binding::Unsupported);
    let refused = |error: StatementError| refusal(&error, endpoint, source);
    let start = rawdoc! {
        "saslStart": 1, "mechanism": MECHANISM, "payload": payload(exchange.first_message()),
        "options": { "skipEmptyExchange": true }, "$db": source,
    };
    let challenge = connection.command(&start).map_err(refused)?;
    let proof = exchange.answer(said(&challenge)?, password, cache)?;
    let mut answer = connection.command(&next(&challenge, proof, source)).map_err(refused)?;
    exchange.verify(said(&answer)?)?;
    for _ in 0..ROUNDS_MAX {
        if reply::number(&answer, "done") == Some(1) {
            return Ok(());
        }
        answer = connection.command(&next(&answer, String::new(), source)).map_err(refused)?;
    }
    Err("the server does not complete the login".to_owned())
}

fn payload(text: String) -> Binary {
    Binary { subtype: BinarySubtype::Generic, bytes: text.into_bytes() }
}

fn next(answer: &RawDocument, text: String, source: &str) -> RawDocumentBuf {
    let conversation = reply::number(answer, "conversationId").unwrap_or_default();
    rawdoc! {
        "saslContinue": 1, "conversationId": i32::try_from(conversation).unwrap_or_default(),
        "payload": payload(text), "$db": source,
    }
}

fn said(answer: &RawDocument) -> Result<&[u8], String> {
    match answer.get("payload") {
        Ok(Some(RawBsonRef::Binary(binary))) => Ok(binary.bytes),
        _ => Err("the server's answer to the login has no payload".to_owned()),
    }
}

fn refusal(error: &StatementError, endpoint: &Endpoint, source: &str) -> String {
    match error.code == NO_LOGIN {
        true => format!(
            "{error}; is the password of `{}` right, and does this user belong to the database \
             `{source}`? If it belongs to another one, write `options=authSource%3D{ADMIN}` into \
             the URL",
            endpoint.user
        ),
        false => format!("{error} (login by {MECHANISM})"),
    }
}

fn needs_login(endpoint: &Endpoint, error: &StatementError) -> String {
    match endpoint.password {
        Some(_) => error.to_string(),
        None => format!("{error}; the URL has no password, so Dyno did not log in"),
    }
}
