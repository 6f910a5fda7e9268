//! The PostgreSQL protocol, version 3, without input or output. The measured part (statements and
//! replies) is hand-written; messages of connecting are from `postgres-protocol`. All lengths are
//! checked: whatever a server sends is parsed, or becomes a [`ProtocolError`].

mod bind;
mod frame;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod keep;
mod message;
mod reply;
#[cfg(test)]
mod tests;

pub(super) use crate::scram::{Binding, ScramCache, ScramExchange, endpoint_hash};
pub(super) use bind::{Encoding, ExecuteTemplate, SYNC, write_parse_named, write_unprepared};
pub(super) use frame::{
    HEADER_BYTES, ProtocolError, cut_text, header, parameter_types, row_texts, write_query,
};
pub(super) use keep::{column_names, column_types};
pub(super) use message::ServerMessage;
pub(super) use reply::{NOTICES_MOST, ReplyScanner, Scan, command_rows};
