//! Execute requests for a prepared statement, from a template. Its fixed parts are laid out once;
//! an execution copies them and appends values. Whole numbers go as 8-byte integers, which need no
//! parsing. Types are sent with the first execution, and again when they change, or the server may
//! not have stored them.

use dyno_workload::Value;

use super::packets::Prepared;
use super::{HEADER_LEN, MAX_PAYLOAD, command, push_lenenc};

/// Command, statement id, flags (no cursor), iteration count.
const FIXED_LEN: usize = 1 + 4 + 1 + 4;

const TYPE_DOUBLE: u8 = 0x05;
const TYPE_LONGLONG: u8 = 0x08;
const TYPE_VAR_STRING: u8 = 0xfd;

#[derive(Clone, Debug)]
pub(crate) struct ExecuteTemplate {
    pub(in crate::mysql) id: u32,
    // The packet up to and including the byte "types follow": 0; the NULL bitmap all clear.
    head: Vec<u8>,
    // One a parameter: the type last sent.
    types: Vec<u8>,
    // Whether the server has `types`.
    is_bound: bool,
}

impl ExecuteTemplate {
    pub(crate) fn new(prepared: Prepared) -> ExecuteTemplate {
        let n_parameters = usize::from(prepared.n_parameters);
        let mut head = vec![0; HEADER_LEN];
        head.push(command::STMT_EXECUTE);
        head.extend_from_slice(&prepared.id.to_le_bytes());
        head.push(0);
        head.extend_from_slice(&1_u32.to_le_bytes());
        if n_parameters > 0 {
            head.resize(head.len() + n_parameters.div_ceil(8) + 1, 0);
        }
        let types = vec![TYPE_VAR_STRING; n_parameters];
        ExecuteTemplate { id: prepared.id, head, types, is_bound: false }
    }

    pub(crate) fn n_parameters(&self) -> usize {
        self.types.len()
    }

    /// Sends the types once more with the next execution: the server may not have stored them.
    pub(crate) fn unbind(&mut self) {
        self.is_bound = false;
    }

    /// Replaces `out` by the packet that executes the statement, with a value for each parameter.
    /// False if they are too long for one packet: then only the payload after the first header is
    /// valid, and must be split.
    pub(crate) fn write(&mut self, values: &[Value<'_>], out: &mut Vec<u8>) -> bool {
        debug_assert_eq!(values.len(), self.types.len(), "one value a parameter");
        out.clear();
        out.extend_from_slice(&self.head);
        if !values.is_empty() {
            self.write_types(values, out);
        }
        for (idx, value) in values.iter().enumerate() {
            match *value {
                Value::Integer(number) => out.extend_from_slice(&number.to_le_bytes()),
                Value::Text(text) => {
                    push_lenenc(out, text.len() as u64);
                    out.extend_from_slice(text);
                }
                Value::Real(number) => out.extend_from_slice(&number.to_le_bytes()),
                Value::Null => out[HEADER_LEN + FIXED_LEN + idx / 8] |= 1 << (idx % 8),
            }
        }
        let len = out.len() - HEADER_LEN;
        out[..3].copy_from_slice(&(len as u32).to_le_bytes()[..3]);
        len < MAX_PAYLOAD
    }

    /// Appends the types if the server does not have them. NULL fits any type.
    fn write_types(&mut self, values: &[Value<'_>], out: &mut Vec<u8>) {
        for (known, value) in self.types.iter_mut().zip(values) {
            let wanted = match value {
                Value::Integer(_) => TYPE_LONGLONG,
                Value::Text(_) => TYPE_VAR_STRING,
                Value::Real(_) => TYPE_DOUBLE,
                Value::Null => continue,
            };
            if *known != wanted {
                *known = wanted;
                self.is_bound = false;
            }
        }
        if self.is_bound {
            return;
        }
        let flag = self.head.len() - 1;
        out[flag] = 1;
        for &code in &self.types {
            out.extend_from_slice(&[code, 0]);
        }
        self.is_bound = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(n_parameters: u16) -> ExecuteTemplate {
        ExecuteTemplate::new(Prepared { id: 0x0102_0304, n_columns: 1, n_parameters })
    }

    /// The payload of an execution with these values.
    #[track_caller]
    fn check(template: &mut ExecuteTemplate, values: &[Value<'_>], expected: &[&[u8]]) {
        let mut out = vec![9; 50];
        assert!(template.write(values, &mut out));
        let fixed: &[u8] = &[0x17, 4, 3, 2, 1, 0, 1, 0, 0, 0];
        let payload = [fixed, &expected.concat()].concat();
        assert_eq!(out[..4], [payload.len() as u8, 0, 0, 0]);
        assert_eq!(out[4..], payload);
    }

    #[test]
    fn types_go_with_the_first_execution_only() {
        let mut select = template(1);
        let seven = 7_i64.to_le_bytes();
        check(&mut select, &[Value::Integer(7)], &[&[0, 1, 8, 0], &seven]);
        check(&mut select, &[Value::Integer(7)], &[&[0, 0], &seven]);
        check(&mut select, &[Value::Null], &[&[1, 0]]);
        check(&mut select, &[Value::Integer(7)], &[&[0, 0], &seven]);
        check(&mut select, &[Value::Text(b"ab")], &[&[0, 1, 0xfd, 0, 2], b"ab"]);
        select.unbind();
        check(&mut select, &[Value::Text(b"ab")], &[&[0, 1, 0xfd, 0, 2], b"ab"]);
    }

    #[test]
    fn many_parameters_have_a_longer_bitmap() {
        let mut insert = template(9);
        let mut values = [Value::Null; 9];
        values[8] = Value::Real(0.5);
        let types = [0xfd, 0].repeat(8);
        let half = 0.5_f64.to_le_bytes();
        check(&mut insert, &values, &[&[0xff, 0, 1], &types, &[5, 0], &half]);
        values[0] = Value::Text(b"");
        check(&mut insert, &values, &[&[0xfe, 0, 0], &[0], &half]);
    }

    #[test]
    fn statements_without_parameters_have_no_bitmap() {
        check(&mut template(0), &[], &[]);
    }

    #[test]
    fn too_long_for_one_packet_is_reported() {
        let text = vec![b'x'; MAX_PAYLOAD];
        let mut out = Vec::new();
        assert!(!template(1).write(&[Value::Text(&text)], &mut out));
    }
}
