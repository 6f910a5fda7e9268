//! COPY: sends rows, and refuses statements that want some.

use dyno_workload::{COPY_REFUSED, Row, StatementError};

use super::PgConnection;
use crate::postgresql::prepared::check_text;
use crate::postgresql::protocol::{SYNC, command_rows, write_query};
use crate::postgresql::wire::WireError;

/// Rows of a COPY go out in pieces of about this size, in bytes.
const COPY_PIECE: usize = 128 * 1024;

impl PgConnection {
    /// Of an ordinary statement. Fails within a pipeline, where the server ends the connection.
    #[cold]
    pub(super) fn refuse_copy(&mut self) -> Result<(), WireError> {
        if !self.awaited.is_empty() {
            return Err(WireError(COPY_REFUSED.to_owned()));
        }
        write_copy_fail(&mut self.out);
        // The server has ignored the one behind the statement.
        if self.expected.is_extended {
            self.out.extend_from_slice(&SYNC);
        }
        self.write_out();
        Ok(())
    }

    pub(super) fn copy(
        &mut self,
        sql: &str,
        next_row: &mut dyn FnMut(&mut Row) -> bool,
    ) -> Result<u64, StatementError> {
        check_text(sql)?;
        self.out.clear();
        write_query(sql, &mut self.out);
        self.wire.send(&self.out)?;
        if !self.converse(b'G', &mut |_, _| Ok(()))? {
            return Err(WireError("the server did not start the COPY".to_owned()).into());
        }
        self.wire.finish_message();
        let mut row = Row::new();
        let mut has_rows = true;
        while has_rows && !self.has_failed()? {
            self.out.clear();
            self.out.extend_from_slice(&[b'd', 0, 0, 0, 0]);
            while has_rows && self.out.len() < COPY_PIECE {
                row.clear();
                has_rows = next_row(&mut row);
                if has_rows {
                    row.write_tab_separated(&mut self.out);
                }
            }
            let length = u32::try_from(self.out.len() - 1).ok().filter(|&length| length < 1 << 30);
            let length =
                length.ok_or_else(|| WireError("a row is longer than 1 GiB".to_owned()))?;
            self.out[1..5].copy_from_slice(&length.to_be_bytes());
            if let Err(error) = self.wire.send(&self.out) {
                // The server's own reason, if it gave one before it went away, is better.
                self.converse(b'Z', &mut |_, _| Ok(()))?;
                return Err(error.into());
            }
        }
        // CopyDone; a server that has failed already ignores it.
        self.wire.send(&[b'c', 0, 0, 0, 4])?;
        let mut n_stored = 0;
        self.converse(b'Z', &mut |tag, body| {
            if tag == b'C' {
                n_stored = command_rows(body)?;
            }
            Ok(())
        })?;
        Ok(n_stored)
    }

    /// Whether the server has failed in the middle of a COPY: then sending more rows is useless.
    fn has_failed(&mut self) -> Result<bool, WireError> {
        self.wire.read_now()?;
        Ok(self.take_asides()?.is_some())
    }
}

pub(super) fn write_copy_fail(out: &mut Vec<u8>) {
    out.push(b'f');
    out.extend_from_slice(&(4 + COPY_REFUSED.len() as u32 + 1).to_be_bytes());
    out.extend_from_slice(COPY_REFUSED.as_bytes());
    out.push(0);
}
