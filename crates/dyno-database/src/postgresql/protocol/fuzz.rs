//! The fuzz target of PostgreSQL's protocol.

use super::keep::{RowKeeper, column_names, column_types};
use super::message::ServerMessage;
use super::reply::{ReplyScanner, Scan, command_rows};
use super::*;

/// Any bytes end in a reply, an error or waiting, however they are cut; they are also read as messages of all kinds.
pub fn postgresql(input: &[u8]) {
    let whole = scan(input, input.len().max(1));
    for piece in [1, 7] {
        assert_eq!(scan(input, piece), whole, "in pieces of {piece}");
        let _ = scan_pipeline(input, piece);
    }
    if let Ok(message) = ServerMessage::parse(input) {
        let _ = (message.to_error(), message.to_line(), message.is_fatal());
    }
    let _ = (row_texts(input), parameter_types(input), command_rows(input));
    let _ = (column_types(input), column_names(input), endpoint_hash(input));
    let mut exchange = ScramExchange::new("", "n".to_owned(), Binding::Unsupported);
    let _ = exchange.answer(input, "p", &ScramCache::default());
    let _ = exchange.verify(input);
    let Some((id, row)) = input.split_first_chunk() else { return };
    let mut keeper = RowKeeper::default();
    keeper.begin(Some(&[Encoding::of_type(u16::from_be_bytes(*id).into())]));
    let _ = keeper.row(row);
}

/// How a connection fares with these bytes: the reply or error, and how many bytes it took.
fn scan(bytes: &[u8], piece: usize) -> String {
    let mut scanner = ReplyScanner::default();
    scanner.begin(None);
    let mut buffer = Vec::new();
    let mut n_total = 0;
    for piece in bytes.chunks(piece) {
        buffer.extend_from_slice(piece);
        loop {
            match scanner.scan(&buffer) {
                Err(error) => return error.to_string(),
                Ok((n_done, scan)) => {
                    buffer.drain(..n_done);
                    n_total += n_done;
                    match scan {
                        Scan::Done => return format!("{n_total} {:?}", scanner.finish()),
                        Scan::CopyIn => {}
                        Scan::More => break,
                    }
                }
            }
        }
    }
    "waits".to_owned()
}

pub(super) fn scan_pipeline(
    bytes: &[u8],
    piece: usize,
) -> Result<Vec<Result<u64, String>>, ProtocolError> {
    let mut scanner = ReplyScanner::default();
    let mut replies = Vec::new();
    let mut buffer = Vec::new();
    let mut pieces = bytes.chunks(piece);
    'replies: for nth in 0..3 {
        if nth < 2 {
            scanner.begin_amid(None)
        } else {
            scanner.begin(None)
        }
        loop {
            let (n_done, scan) = scanner.scan(&buffer)?;
            buffer.drain(..n_done);
            if scan == Scan::Done {
                break;
            }
            let Some(piece) = pieces.next() else { break 'replies };
            buffer.extend_from_slice(piece);
        }
        let reply = scanner.finish().map(|reply| reply.rows + 10 * reply.affected);
        let is_over = reply.is_err();
        replies.push(reply.map_err(|error| error.code));
        if is_over {
            break;
        }
    }
    Ok(replies)
}
