//! The fuzz target of ClickHouse's interface.

use super::http::{Answer, HttpError};

/// Reads an answer in pieces of this size, as from a slow socket; returns the number of bytes left.
pub(super) fn read(text: &[u8], piece: usize) -> Result<(Answer, usize), HttpError> {
    let mut answer = Answer::new(1 << 20);
    answer.begin(true);
    let (mut start, mut end) = (0, 0);
    while !answer.is_done() && end < text.len() {
        end = (end + piece).min(text.len());
        start += answer.read(&text[start..end])?;
    }
    if !answer.is_done() {
        answer.end()?;
    }
    Ok((answer, text.len() - start))
}

/// An answer is read, and does not depend on how its bytes arrive.
pub fn clickhouse(input: &[u8]) {
    let seen = |piece: usize| {
        read(input, piece).map(|(answer, n_left)| {
            (answer.status, answer.exception, answer.closes, answer.body.clone(), n_left)
        })
    };
    let whole = seen(input.len().max(1));
    for piece in [1, 7] {
        assert_eq!(seen(piece), whole, "in pieces of {piece}");
    }
}
