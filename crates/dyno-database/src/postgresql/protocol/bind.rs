//! Bind, Execute and Sync of a prepared statement from a template; with Parse and Describe for one
//! that is parsed each time.

use std::io::Write;

use dyno_workload::{ErrorClass, StatementError, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::postgresql) enum Encoding {
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Bool,
    /// Types whose binary form is their bytes.
    Raw,
    /// All others, as text: the server reads it like a literal.
    Text,
}

impl Encoding {
    pub(super) fn of_type(id: u32) -> Encoding {
        match id {
            16 => Encoding::Bool,
            20 => Encoding::Int8,
            21 => Encoding::Int2,
            23 => Encoding::Int4,
            26 => Encoding::Oid,
            700 => Encoding::Float4,
            701 => Encoding::Float8,
            // bytea, name, text, json, unknown, bpchar, varchar.
            17 | 19 | 25 | 114 | 705 | 1042 | 1043 => Encoding::Raw,
            _ => Encoding::Text,
        }
    }

    fn format_code(self) -> u16 {
        u16::from(self != Encoding::Text)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Encoding::Int2 => "smallint",
            Encoding::Int4 => "integer",
            Encoding::Int8 => "bigint",
            Encoding::Oid => "oid",
            Encoding::Float4 => "real",
            Encoding::Float8 => "double precision",
            Encoding::Bool => "boolean",
            Encoding::Raw | Encoding::Text => "text",
        }
    }
}

/// The bytes of a prepared statement's execution, except its values.
#[derive(Debug)]
pub(in crate::postgresql) struct ExecuteTemplate {
    // Parse, if there is one; Bind up to the number of values.
    head: Box<[u8]>,
    // Where Bind begins in it.
    bind_at: usize,
    encodings: Box<[Encoding]>,
    // The end of Bind (the formats of the results); Describe, if there is one; Execute, Sync.
    tail: Box<[u8]>,
    // How much of it belongs to Bind.
    n_bind_tail: usize,
    // Of the columns, if the rows are kept.
    columns: Option<Box<[Encoding]>>,
}

/// The formats of results that come as texts: all do.
const ALL_TEXTS: [u8; 2] = [0, 0];

/// The formats of results whose rows are not kept: all in binary.
const ALL_BINARY: [u8; 4] = [0, 1, 0, 1];

/// Execute of the portal without a name: all rows.
const EXECUTE: [u8; 10] = [b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];

/// Describe of the portal without a name.
const DESCRIBE: [u8; 7] = [b'D', 0, 0, 0, 6, b'P', 0];

/// Bind of the statement without a name to the portal without a name, without values.
const BIND_NOTHING: [u8; 13] = [b'B', 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0];

/// Sync: the end of a statement's messages, or of a pipeline's.
pub(in crate::postgresql) const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];

/// A type id whose values go as texts: no type has it.
const UNKNOWN_TYPE: u32 = 0;

/// `name` may be empty; the server finds the types. The texts must not contain zero bytes.
fn write_parse(name: &str, sql: &str, out: &mut Vec<u8>) {
    let length = u32::try_from(name.len() + sql.len() + 8).unwrap_or(u32::MAX);
    out.push(b'P');
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    out.extend_from_slice(sql.as_bytes());
    out.extend_from_slice(&[0, 0, 0]);
}

/// Up to Sync, for an unprepared statement without values. `sql` must not contain zero bytes.
pub(in crate::postgresql) fn write_unprepared(sql: &str, out: &mut Vec<u8>) {
    write_parse("", sql, out);
    out.extend_from_slice(&BIND_NOTHING);
    out.extend_from_slice(&EXECUTE);
    out.extend_from_slice(&SYNC);
}

/// Close and Parse: a failed attempt may have left the name, and closing a missing one is no error.
pub(in crate::postgresql) fn write_parse_named(name: &str, sql: &str, out: &mut Vec<u8>) {
    let length = u32::try_from(name.len() + 6).unwrap_or(u32::MAX);
    out.push(b'C');
    out.extend_from_slice(&length.to_be_bytes());
    out.push(b'S');
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    write_parse(name, sql, out);
}

impl ExecuteTemplate {
    /// `name` must not contain zero bytes. `columns` are types, if rows are kept.
    pub(in crate::postgresql) fn new(
        name: &str,
        types: &[u32],
        columns: Option<&[u32]>,
    ) -> ExecuteTemplate {
        ExecuteTemplate::made(Vec::new(), name, types, columns)
    }

    /// Parsed and described each time. `types` and `columns` are from an earlier description.
    pub(in crate::postgresql) fn unnamed(
        sql: &str,
        types: &[u32],
        columns: Option<&[u32]>,
    ) -> ExecuteTemplate {
        let mut head = Vec::with_capacity(sql.len() + 16);
        write_parse("", sql, &mut head);
        ExecuteTemplate::made(head, "", types, columns)
    }

    /// Values and columns go as texts. Unnamed, the server parses it each time; named,
    /// [`write_parse_named`] parses it before. It is described for each execution if its columns'
    /// names matter.
    pub(in crate::postgresql) fn of_texts(
        sql: &str,
        name: &str,
        n_values: usize,
        is_described: bool,
    ) -> ExecuteTemplate {
        let mut head = Vec::new();
        if name.is_empty() {
            write_parse("", sql, &mut head);
        }
        let types = vec![UNKNOWN_TYPE; n_values.min(usize::from(u16::MAX))];
        let mut template = ExecuteTemplate::made(head, name, &types, None);
        let mut tail = ALL_TEXTS.to_vec();
        if is_described || name.is_empty() {
            tail.extend_from_slice(&DESCRIBE);
        }
        tail.extend_from_slice(&EXECUTE);
        tail.extend_from_slice(&SYNC);
        template.tail = tail.into_boxed_slice();
        template.n_bind_tail = ALL_TEXTS.len();
        template
    }

    /// `head` is Parse, or nothing.
    fn made(
        mut head: Vec<u8>,
        name: &str,
        types: &[u32],
        columns: Option<&[u32]>,
    ) -> ExecuteTemplate {
        let encodings: Box<[Encoding]> = types.iter().map(|&id| Encoding::of_type(id)).collect();
        let n_values = u16::try_from(types.len()).expect("the server counts them in 16 bits");
        let bind_at = head.len();
        // The length is patched later; the portal has no name.
        head.extend_from_slice(&[b'B', 0, 0, 0, 0, 0]);
        head.extend_from_slice(name.as_bytes());
        head.push(0);
        head.extend_from_slice(&n_values.to_be_bytes());
        for encoding in &encodings {
            head.extend_from_slice(&encoding.format_code().to_be_bytes());
        }
        head.extend_from_slice(&n_values.to_be_bytes());
        let columns: Option<Box<[Encoding]>> =
            columns.map(|types| types.iter().map(|&id| Encoding::of_type(id)).collect());
        let mut tail = match &columns {
            None => ALL_BINARY.to_vec(),
            Some(columns) => {
                let n_columns = u16::try_from(columns.len()).expect("they are counted in 16 bits");
                let codes = columns.iter().map(|encoding| encoding.format_code());
                [n_columns].into_iter().chain(codes).flat_map(u16::to_be_bytes).collect()
            }
        };
        let n_bind_tail = tail.len();
        if bind_at > 0 {
            tail.extend_from_slice(&DESCRIBE);
        }
        tail.extend_from_slice(&EXECUTE);
        tail.extend_from_slice(&SYNC);
        let (head, tail) = (head.into_boxed_slice(), tail.into_boxed_slice());
        ExecuteTemplate { head, bind_at, encodings, tail, n_bind_tail, columns }
    }

    /// How its columns come, if its rows are kept.
    pub(in crate::postgresql) fn columns(&self) -> Option<&[Encoding]> {
        self.columns.as_deref()
    }

    /// Appends the execution with these values to `out`; it ends with [`SYNC`].
    pub(in crate::postgresql) fn encode(
        &self,
        values: &[Value<'_>],
        out: &mut Vec<u8>,
    ) -> Result<(), StatementError> {
        if values.len() != self.encodings.len() {
            return Err(wrong_count(values.len(), self.encodings.len()));
        }
        let bind_at = out.len() + self.bind_at;
        out.extend_from_slice(&self.head);
        for (idx, (value, encoding)) in values.iter().zip(&self.encodings).enumerate() {
            if !push_value(*value, *encoding, out) {
                return Err(misfit(idx, value, *encoding));
            }
        }
        // Bind ends within the tail.
        let length = out.len() - bind_at - 1 + self.n_bind_tail;
        let length = u32::try_from(length).ok().filter(|&length| length < 1 << 30);
        let length = length.ok_or_else(too_long)?;
        out[bind_at + 1..bind_at + 5].copy_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&self.tail);
        Ok(())
    }
}

/// Appends a value with its length; false if the type cannot hold it.
fn push_value(value: Value<'_>, encoding: Encoding, out: &mut Vec<u8>) -> bool {
    match (value, encoding) {
        (Value::Null, _) => {
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            true
        }
        (Value::Integer(number), _) => push_integer(number, encoding, out),
        (Value::Real(number), _) => push_real(number, encoding, out),
        (Value::Text(text), Encoding::Raw | Encoding::Text) => push_bytes(text, out),
        (Value::Text(text), _) => push_parsed(text, encoding, out),
    }
}

fn push_integer(number: i64, encoding: Encoding, out: &mut Vec<u8>) -> bool {
    match encoding {
        Encoding::Int4 => match i32::try_from(number) {
            Ok(number) => push_bytes(&number.to_be_bytes(), out),
            Err(_) => false,
        },
        Encoding::Int8 => push_bytes(&number.to_be_bytes(), out),
        Encoding::Int2 => match i16::try_from(number) {
            Ok(number) => push_bytes(&number.to_be_bytes(), out),
            Err(_) => false,
        },
        Encoding::Oid => match u32::try_from(number) {
            Ok(number) => push_bytes(&number.to_be_bytes(), out),
            Err(_) => false,
        },
        Encoding::Bool => matches!(number, 0 | 1) && push_bytes(&[u8::from(number == 1)], out),
        Encoding::Float4 | Encoding::Float8 => push_real(number as f64, encoding, out),
        Encoding::Raw | Encoding::Text => push_decimal(number, out),
    }
}

/// Appends a whole number in decimal, without the machinery of formatting.
fn push_decimal(number: i64, out: &mut Vec<u8>) -> bool {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    push_bytes(&digits[at..], out)
}

fn push_real(number: f64, encoding: Encoding, out: &mut Vec<u8>) -> bool {
    match encoding {
        Encoding::Float8 => push_bytes(&number.to_be_bytes(), out),
        Encoding::Float4 => push_bytes(&(number as f32).to_be_bytes(), out),
        Encoding::Raw | Encoding::Text => push_written(format_args!("{number}"), out),
        // Nothing is rounded silently. The bounds are powers of two, hence exact.
        _ if number.fract() == 0.0
            && (-9.223372036854776e18..9.223372036854776e18).contains(&number) =>
        {
            push_integer(number as i64, encoding, out)
        }
        _ => false,
    }
}

/// A text for a type that goes over in binary.
fn push_parsed(text: &[u8], encoding: Encoding, out: &mut Vec<u8>) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let text = text.trim();
    match encoding {
        Encoding::Bool => match text {
            "t" | "true" | "on" | "yes" | "1" => push_bytes(&[1], out),
            "f" | "false" | "off" | "no" | "0" => push_bytes(&[0], out),
            _ => false,
        },
        Encoding::Float4 | Encoding::Float8 => {
            text.parse().is_ok_and(|number| push_real(number, encoding, out))
        }
        _ => text.parse().is_ok_and(|number| push_integer(number, encoding, out)),
    }
}

fn push_bytes(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    let Ok(length) = i32::try_from(bytes.len()) else { return false };
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
    true
}

fn push_written(text: std::fmt::Arguments<'_>, out: &mut Vec<u8>) -> bool {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    out.write_fmt(text).expect("a vector takes all bytes");
    let length = u32::try_from(out.len() - at - 4).expect("a number is short");
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    true
}

#[cold]
fn wrong_count(n_given: usize, n_wanted: usize) -> StatementError {
    StatementError::new(
        ErrorClass::Refused,
        "08P01",
        format!("the statement takes {n_wanted} values and was given {n_given}"),
    )
}

#[cold]
fn too_long() -> StatementError {
    StatementError::new(ErrorClass::Refused, "54000", "the values are longer than 1 GiB in total")
}

#[cold]
fn misfit(idx: usize, value: &Value<'_>, encoding: Encoding) -> StatementError {
    let position = idx + 1;
    let message = match value {
        Value::Text(text) if text.len() > 40 => {
            format!("a text of {} bytes does not fit ${position}", text.len())
        }
        Value::Text(text) => {
            format!("the text `{}` does not fit ${position}", String::from_utf8_lossy(text))
        }
        Value::Integer(number) => format!("{number} does not fit ${position}"),
        Value::Real(number) => format!("{number} does not fit ${position}"),
        Value::Null => format!("NULL does not fit ${position}"),
    };
    StatementError::new(
        ErrorClass::Refused,
        "22003",
        format!("{message} of type {}", encoding.name()),
    )
}
