//! MongoDB's OP_MSG, without input or output. All lengths are checked.

use bson::raw::RawDocument;

/// Bytes of a message's header: length, number, number of the message that it answers, operation.
const HEADER: usize = 16;

/// The operation of all messages of Dyno's, and of their answers.
const OP_MSG: i32 = 2013;

/// The flags say that a checksum of four bytes follows.
const CHECKSUM: u32 = 1;

/// The flags say that another message follows unasked.
const MORE_TO_COME: u32 = 2;

/// Longest message that is taken in: a document of 16 MiB, and what servers add to it at most.
pub(super) const MESSAGE_MAX: usize = 48_000_000;

pub(super) const LOGIN_MAX: usize = 1 << 20;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server violated the protocol: {0}")]
pub(super) struct WireError(pub(super) String);

fn violated<T>(what: impl Into<String>) -> Result<T, WireError> {
    Err(WireError(what.into()))
}

#[derive(Debug)]
pub(super) struct Message<'a> {
    /// The number of the message that it answers.
    pub(super) answers: i32,
    pub(super) length: usize,
    pub(super) body: &'a RawDocument,
}

/// Begins a message of this number, to be ended by [`end_message`]; returns where it begins.
pub(super) fn begin_message(number: i32, body: &RawDocument, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&0_i32.to_le_bytes());
    for part in [number, 0, OP_MSG] {
        out.extend_from_slice(&part.to_le_bytes());
    }
    // No flags; a section of the kind with one document.
    out.extend_from_slice(&[0; 5]);
    out.extend_from_slice(body.as_bytes());
    start
}

pub(super) fn end_message(start: usize, out: &mut [u8]) {
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

pub(super) fn renumber(message: &mut [u8], number: i32) {
    message[4..8].copy_from_slice(&number.to_le_bytes());
}

pub(super) fn write_message(number: i32, body: &RawDocument, out: &mut Vec<u8>) {
    let start = begin_message(number, body, out);
    end_message(start, out);
}

fn number_at(bytes: &[u8], at: usize) -> Option<i32> {
    let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(i32::from_le_bytes(four))
}

/// The length of the message at the front; none if too little has arrived.
pub(super) fn length_of(bytes: &[u8], length_max: usize) -> Result<Option<usize>, WireError> {
    let Some(length) = number_at(bytes, 0) else { return Ok(None) };
    match usize::try_from(length) {
        // The shortest has an empty document.
        Ok(length) if (HEADER + 10..=length_max).contains(&length) => Ok(Some(length)),
        _ => violated(format!(
            "a message of {length} bytes, where at most {length_max} are expected"
        )),
    }
}

/// The message at the front; none if it has not arrived whole.
pub(super) fn read_message(
    bytes: &[u8],
    length_max: usize,
) -> Result<Option<Message<'_>>, WireError> {
    let Some(length) = length_of(bytes, length_max)? else { return Ok(None) };
    let Some(bytes) = bytes.get(..length) else { return Ok(None) };
    let (answers, operation) = (number_at(bytes, 8), number_at(bytes, 12));
    if operation != Some(OP_MSG) {
        return violated(format!("a reply of type {}", operation.unwrap_or_default()));
    }
    let flags = number_at(bytes, HEADER).unwrap_or_default() as u32;
    if flags & 0xffff & !CHECKSUM != 0 {
        let what = if flags & MORE_TO_COME != 0 { "several replies" } else { "unknown flags" };
        return violated(what);
    }
    let end = if flags & CHECKSUM == 0 { length } else { length - 4 };
    match bytes.get(HEADER + 4..end).and_then(<[u8]>::split_first) {
        Some((0, body)) => {
            let body = RawDocument::from_bytes(body)
                .map_err(|error| WireError(format!("a reply that is not a document ({error})")))?;
            Ok(Some(Message { answers: answers.unwrap_or_default(), length, body }))
        }
        _ => violated("a reply that does not begin with a document"),
    }
}
