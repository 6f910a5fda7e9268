//! The fuzz target of MySQL's protocol.

use super::Negotiated;
use super::greeting::Greeting;
use super::keep::{Column, RowKeeper};
use super::packets::{ColumnCount, Prepared, read_column_name, read_error, read_text_row};
use super::reply::{Progress, ReplyReader};

/// Reads a stream offered in pieces of `n` bytes, as a connection does. Returns what is left over.
pub(super) fn read(reader: &mut ReplyReader, bytes: &[u8], n: usize) -> (Progress, usize) {
    let (mut start, mut end) = (0, 0);
    while end < bytes.len() {
        end = (end + n).min(bytes.len());
        loop {
            let (n_used, progress) = reader.advance(&bytes[start..end]);
            start += n_used;
            assert!(start <= end);
            match progress {
                Progress::Partial => {
                    assert!(reader.is_waiting());
                    break;
                }
                Progress::Complete(_) => {
                    assert!(!reader.is_waiting());
                    return (progress, bytes.len() - start);
                }
                // The refusal is on its way, and the reply goes on.
                Progress::FileWanted(_) => {}
            }
        }
    }
    (Progress::Partial, 0)
}

/// A stream is read as a reply, and does not depend on how its bytes arrive; the bytes are read as packets of all kinds.
pub fn mysql(input: &[u8]) {
    for (deprecates_eof, caches_metadata) in [(false, false), (true, false), (true, true)] {
        let negotiated = Negotiated { deprecates_eof, caches_metadata };
        let seen = |piece: usize, keeps: bool| {
            let mut reader = ReplyReader::new(negotiated);
            if keeps {
                reader.begin_text(1)
            } else {
                reader.begin(1, None)
            }
            read(&mut reader, input, piece).0
        };
        for keeps in [false, true] {
            let whole = seen(input.len().max(1), keeps);
            assert_eq!(seen(1, keeps), whole);
            assert_eq!(seen(7, keeps), whole);
        }
        let _ = ColumnCount::read(input, negotiated);
    }
    let _ = (Greeting::read(input), Prepared::read(input), read_column_name(input));
    let _ = (read_error(input), read_text_row(input, 2), Column::read(input));
    let Some((&code, row)) = input.split_first() else { return };
    let columns = [(code, false), (code, true), (0xfd, false)];
    let columns = columns.map(|(code, is_unsigned)| Column { code, is_unsigned });
    let mut keeper = RowKeeper::default();
    keeper.begin(Some(&columns));
    if keeper.result_begins(columns.len() as u64, false).is_ok() && keeper.row(row).is_ok() {
        for column in 0..columns.len() {
            keeper.rows.write_text(0, column, &mut Vec::new());
        }
    }
}
