//! Prepares statements: named, or parsed for each execution.

use bytes::BytesMut;
use dyno_workload::{Statement, StatementError};
use postgres_protocol::message::frontend;

use super::PgConnection;
use crate::postgresql::prepared::{check_text, refused};
use crate::postgresql::protocol::{ExecuteTemplate, column_types, parameter_types};

impl PgConnection {
    pub(super) fn deallocate_all(&mut self) -> Result<(), StatementError> {
        match self.parses_each {
            // There are none, and a pooler would ask any of its servers.
            true => Ok(()),
            false => self.simple("DEALLOCATE ALL", &mut |_, _| Ok(())),
        }
    }

    /// The same connection, which gives no statement a name: each is parsed again for each execution.
    pub(in crate::postgresql) fn parsing_each(mut self) -> PgConnection {
        self.parses_each = true;
        self
    }

    /// One parsed each time is prepared unnamed, for its types. May replace its namesake.
    pub(super) fn prepare_one(
        &mut self,
        name: &str,
        statement: &Statement,
        replaces: bool,
    ) -> Result<ExecuteTemplate, StatementError> {
        let name = if statement.is_unnamed { "" } else { name };
        let sql = statement.sql.as_str();
        check_text(sql)?;
        let mut out = BytesMut::new();
        let too_long = |_| refused("54000", "the statement is too long");
        if replaces && !name.is_empty() {
            frontend::close(b'S', name, &mut out).map_err(too_long)?;
        }
        frontend::parse(name, sql, [], &mut out).map_err(too_long)?;
        frontend::describe(b'S', name, &mut out).map_err(too_long)?;
        frontend::sync(&mut out);
        self.wire.send(&out)?;
        let (mut types, mut columns) = (Vec::new(), Vec::new());
        self.converse(b'Z', &mut |tag, body| {
            match tag {
                b't' => types = parameter_types(body)?,
                b'T' => columns = column_types(body)?,
                _ => {}
            }
            Ok(())
        })?;
        let columns = statement.keeps_rows.then_some(columns.as_slice());
        Ok(match statement.is_unnamed {
            true => ExecuteTemplate::unnamed(sql, &types, columns),
            false => ExecuteTemplate::new(name, &types, columns),
        })
    }
}
