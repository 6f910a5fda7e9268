//! Framing: a byte for a message's kind, four for its length, then its body (PostgreSQL
//! documentation, "Message Formats").

pub(in crate::postgresql) const HEADER_BYTES: usize = 5;

/// In bytes, PostgreSQL's own (`MaxAllocSize`). Rows that are only counted may be so long; messages
/// needed whole have smaller limits.
const LENGTH_MAX: usize = 1 << 30;

/// Bytes that are not the PostgreSQL protocol, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server violated the protocol: {0}")]
pub(in crate::postgresql) struct ProtocolError(pub(in crate::postgresql) String);

impl ProtocolError {
    pub(super) fn cut_off(what: &str) -> ProtocolError {
        ProtocolError(format!("{what} is truncated"))
    }

    pub(in crate::postgresql) fn unexpected(tag: u8) -> ProtocolError {
        ProtocolError(format!("unexpected message `{}`", char::from(tag).escape_default()))
    }
}

/// Kind and body length of the first message; none if its header is incomplete.
pub(in crate::postgresql) fn header(bytes: &[u8]) -> Result<Option<(u8, usize)>, ProtocolError> {
    let [tag, a, b, c, d, ..] = *bytes else { return Ok(None) };
    // The length counts itself.
    match usize::try_from(i32::from_be_bytes([a, b, c, d])) {
        Ok(length @ 4..=LENGTH_MAX) => Ok(Some((tag, length - 4))),
        _ => Err(ProtocolError(format!(
            "message `{}` has an impossible length",
            char::from(tag).escape_default()
        ))),
    }
}

/// Removes a zero-terminated text from the front of `body`.
pub(in crate::postgresql) fn cut_text<'a>(
    body: &mut &'a [u8],
    what: &str,
) -> Result<&'a [u8], ProtocolError> {
    let end =
        body.iter().position(|&byte| byte == 0).ok_or_else(|| ProtocolError::cut_off(what))?;
    let text = &body[..end];
    *body = &body[end + 1..];
    Ok(text)
}

pub(super) fn cut<const N: usize>(body: &mut &[u8], what: &str) -> Result<[u8; N], ProtocolError> {
    let (first, rest) =
        body.split_first_chunk::<N>().ok_or_else(|| ProtocolError::cut_off(what))?;
    *body = rest;
    Ok(*first)
}

/// Appends a simple query (`Query`). `sql` holds no zero byte.
pub(in crate::postgresql) fn write_query(sql: &str, out: &mut Vec<u8>) {
    let length = u32::try_from(sql.len() + 5).unwrap_or(u32::MAX);
    out.push(b'Q');
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(sql.as_bytes());
    out.push(0);
}

pub(in crate::postgresql) fn parameter_types(mut body: &[u8]) -> Result<Vec<u32>, ProtocolError> {
    let what = "a parameter description";
    let n_types = usize::from(u16::from_be_bytes(cut(&mut body, what)?));
    if body.len() != n_types * 4 {
        return Err(ProtocolError::cut_off(what));
    }
    Ok(body.chunks_exact(4).map(|id| u32::from_be_bytes([id[0], id[1], id[2], id[3]])).collect())
}

/// The columns of a `DataRow` in text format. Bytes that are no UTF-8 are replaced.
pub(in crate::postgresql) fn row_texts(
    mut body: &[u8],
) -> Result<Vec<Option<String>>, ProtocolError> {
    let what = "a row";
    let n_columns = u16::from_be_bytes(cut(&mut body, what)?);
    let mut columns = Vec::with_capacity(usize::from(n_columns));
    for _ in 0..n_columns {
        let length = i32::from_be_bytes(cut(&mut body, what)?);
        if length == -1 {
            columns.push(None);
            continue;
        }
        let length = usize::try_from(length).ok().filter(|&length| length <= body.len());
        let (text, rest) = body.split_at(length.ok_or_else(|| ProtocolError::cut_off(what))?);
        columns.push(Some(String::from_utf8_lossy(text).into_owned()));
        body = rest;
    }
    Ok(columns)
}
