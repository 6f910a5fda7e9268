//! Keeps the rows of a prepared statement's reply, decoded into [`KeptRows`]: numbers and plain
//! bytes in binary, others as text. Once warm, nothing is allocated.

use dyno_workload::{KeptRows, LastRows};

use super::bind::Encoding;
use super::frame::{ProtocolError, cut, cut_text};

/// The type ids of the columns in a `RowDescription`.
pub(in crate::postgresql) fn column_types(mut body: &[u8]) -> Result<Vec<u32>, ProtocolError> {
    let what = "a row description";
    let n_columns = u16::from_be_bytes(cut(&mut body, what)?);
    let mut types = Vec::with_capacity(usize::from(n_columns));
    for _ in 0..n_columns {
        cut_text(&mut body, what)?;
        // Table, number of the column in it; after the type its length, modifier and format.
        let _: [u8; 6] = cut(&mut body, what)?;
        types.push(u32::from_be_bytes(cut(&mut body, what)?));
        let _: [u8; 8] = cut(&mut body, what)?;
    }
    Ok(types)
}

/// The names of the columns in a `RowDescription`.
pub(in crate::postgresql) fn column_names(mut body: &[u8]) -> Result<Vec<String>, ProtocolError> {
    let what = "a row description";
    let n_columns = u16::from_be_bytes(cut(&mut body, what)?);
    let mut names = Vec::new();
    for _ in 0..n_columns {
        names.push(String::from_utf8_lossy(cut_text(&mut body, what)?).into_owned());
        let _: [u8; 18] = cut(&mut body, what)?;
    }
    Ok(names)
}

/// In bytes, for the kept rows of a reply, and for one of its messages: transactions need few rows.
pub(super) const KEPT_MAX: usize = 64 << 20;

/// Keeps the rows of one reply at a time.
#[derive(Debug, Default)]
pub(in crate::postgresql) struct RowKeeper {
    wants: bool,
    encodings: Vec<Encoding>,
    pub(in crate::postgresql) rows: KeptRows,
    // Instead of them, the last row of each result, with the names of its columns.
    keeps_last: bool,
    pub(in crate::postgresql) last: LastRows,
    // The columns are those that the server describes, as texts.
    learns: bool,
}

impl RowKeeper {
    /// `encodings` are of the columns; none if rows are not kept.
    #[inline]
    pub(in crate::postgresql) fn begin(&mut self, encodings: Option<&[Encoding]>) {
        self.wants = encodings.is_some();
        self.keeps_last = false;
        self.learns = false;
        if let Some(encodings) = encodings {
            self.encodings.clear();
            self.encodings.extend_from_slice(encodings);
            self.rows.clear(encodings.len());
        }
    }

    pub(in crate::postgresql) fn begin_last(&mut self) {
        self.wants = true;
        self.keeps_last = true;
        self.last.clear();
    }

    /// The rows of the reply that was begun are kept as texts, whatever columns the server describes.
    pub(in crate::postgresql) fn begin_learning(&mut self) {
        self.begin(Some(&[]));
        self.learns = true;
    }

    #[inline]
    pub(in crate::postgresql) fn wants_message(&self, tag: u8) -> bool {
        self.wants && (tag == b'D' || self.keeps_last || self.learns)
    }

    /// Reads a `DataRow`, or a `RowDescription` where last rows are kept.
    pub(super) fn take(&mut self, tag: u8, body: &[u8]) -> Result<(), ProtocolError> {
        match (self.keeps_last, tag) {
            (false, b'T') => self.learn(body),
            (false, _) => self.row(body),
            (true, b'T') => self.describe(body),
            (true, _) => self.last_row(body),
        }?;
        self.check_room()
    }

    #[inline]
    pub(super) fn end_result(&mut self) -> Result<(), ProtocolError> {
        if self.keeps_last {
            self.last.end_result();
            return self.check_room();
        }
        Ok(())
    }

    /// By what is kept and not by what was sent: a NULL takes less in a message than in memory.
    fn check_room(&self) -> Result<(), ProtocolError> {
        let room = if self.keeps_last { self.last.room() } else { self.rows.room() };
        if room > KEPT_MAX {
            return Err(ProtocolError(format!("more than {} MiB of rows to keep", KEPT_MAX >> 20)));
        }
        Ok(())
    }

    fn learn(&mut self, mut body: &[u8]) -> Result<(), ProtocolError> {
        let n_columns = usize::from(u16::from_be_bytes(cut(&mut body, "a row description")?));
        self.encodings.clear();
        self.encodings.resize(n_columns, Encoding::Text);
        self.rows.clear(n_columns);
        Ok(())
    }

    fn describe(&mut self, mut body: &[u8]) -> Result<(), ProtocolError> {
        let what = "a row description";
        let n_columns = u16::from_be_bytes(cut(&mut body, what)?);
        self.last.begin_columns();
        for _ in 0..n_columns {
            self.last.push_column(cut_text(&mut body, what)?);
            let _: [u8; 18] = cut(&mut body, what)?;
        }
        Ok(())
    }

    fn last_row(&mut self, mut body: &[u8]) -> Result<(), ProtocolError> {
        let what = "a row";
        let n_columns = usize::from(u16::from_be_bytes(cut(&mut body, what)?));
        let n_described = self.last.begin_row();
        if n_columns != n_described {
            return Err(wrong_columns(n_columns, n_described));
        }
        for _ in 0..n_columns {
            let value = cut_value(&mut body)?;
            self.last.push_value(value);
        }
        Ok(())
    }

    pub(super) fn row(&mut self, mut body: &[u8]) -> Result<(), ProtocolError> {
        let what = "a row";
        let n_columns = usize::from(u16::from_be_bytes(cut(&mut body, what)?));
        if n_columns != self.encodings.len() {
            return Err(wrong_columns(n_columns, self.encodings.len()));
        }
        for &encoding in &self.encodings {
            let Some(value) = cut_value(&mut body)? else {
                self.rows.push_null();
                continue;
            };
            if !push(encoding, value, &mut self.rows) {
                return Err(ProtocolError(format!("a {} of the wrong length", encoding.name())));
            }
        }
        Ok(())
    }
}

/// Removes a value from the front of a row; none for NULL.
fn cut_value<'a>(body: &mut &'a [u8]) -> Result<Option<&'a [u8]>, ProtocolError> {
    let what = "a row";
    let length = i32::from_be_bytes(cut(body, what)?);
    if length == -1 {
        return Ok(None);
    }
    let length = usize::try_from(length).ok().filter(|&length| length <= body.len());
    let (value, rest) = body.split_at(length.ok_or_else(|| ProtocolError::cut_off(what))?);
    *body = rest;
    Ok(Some(value))
}

fn wrong_columns(n_columns: usize, n_described: usize) -> ProtocolError {
    ProtocolError(format!("a row of {n_columns} columns where {n_described} were described"))
}

/// Appends a value; false if its length is not that of its type.
fn push(encoding: Encoding, value: &[u8], rows: &mut KeptRows) -> bool {
    let integer = match (encoding, value) {
        (Encoding::Raw | Encoding::Text, _) => {
            rows.push_text(value);
            return true;
        }
        (Encoding::Float4, &[a, b, c, d]) => {
            rows.push_real(f32::from_be_bytes([a, b, c, d]).into());
            return true;
        }
        (Encoding::Float8, _) => {
            let bytes = value.try_into().map(f64::from_be_bytes);
            return bytes.map(|number| rows.push_real(number)).is_ok();
        }
        (Encoding::Bool, &[byte]) => i64::from(byte != 0),
        (Encoding::Int2, &[a, b]) => i16::from_be_bytes([a, b]).into(),
        (Encoding::Int4, &[a, b, c, d]) => i32::from_be_bytes([a, b, c, d]).into(),
        (Encoding::Oid, &[a, b, c, d]) => u32::from_be_bytes([a, b, c, d]).into(),
        (Encoding::Int8, _) => match value.try_into() {
            Ok(bytes) => i64::from_be_bytes(bytes),
            Err(_) => return false,
        },
        _ => return false,
    };
    rows.push_integer(integer);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_described_by_type() {
        let field = |name: &[u8], id: u32| {
            [name, &[0, 0, 0, 0, 0, 0, 1], &id.to_be_bytes(), &[0; 8]].concat()
        };
        let body = [&[0, 2][..], &field(b"a", 23), &field(b"bc", 1700)].concat();
        assert_eq!(column_types(&body).unwrap(), [23, 1700]);
        for n in 0..body.len() {
            assert!(column_types(&body[..n]).is_err(), "{n}");
        }
    }

    #[test]
    fn rows_are_kept_by_type() {
        let mut keeper = RowKeeper::default();
        keeper.begin(Some(&[Encoding::Int4, Encoding::Text, Encoding::Int8, Encoding::Raw]));
        let row = [
            &[0, 4][..],
            &[0, 0, 0, 4, 0xff, 0xff, 0xff, 0xfe],
            &[0, 0, 0, 4],
            b"1.50",
            &[0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 1, 0],
            &[0xff; 4],
        ]
        .concat();
        keeper.row(&row).unwrap();
        let rows = &keeper.rows;
        assert_eq!((rows.n_rows(), rows.integer(0, 0)), (1, Some(-2)));
        assert_eq!((rows.fixed(0, 1, 2), rows.integer(0, 2)), (Some(150), Some(256)));
        assert!(rows.is_null(0, 3));
        assert!(keeper.row(&[0, 1, 0xff, 0xff, 0xff, 0xff]).is_err());
    }

    /// A reply that has these messages again and again, far more than may be kept, ends in words.
    #[track_caller]
    fn check_bounded(mut keeper: RowKeeper, messages: &[(u8, Vec<u8>)]) {
        let mut take = |tag: u8, body: &[u8]| match tag {
            b'C' => keeper.end_result(),
            _ => keeper.take(tag, body),
        };
        let longest = messages.iter().map(|(_, body)| body.len()).max().unwrap_or(0);
        let n = messages.len() * (4 * KEPT_MAX / longest.max(100));
        let mut messages = messages.iter().cycle().take(n);
        let error = messages.find_map(|(tag, body)| take(*tag, body).err()).expect("it gives up");
        assert!(error.to_string().contains("more than 64 MiB of rows to keep"), "{error}");
        let room = keeper.rows.room() + keeper.last.room();
        assert!(room < KEPT_MAX + (2 << 20), "{room}");
    }

    #[test]
    fn rows_without_end_are_not_kept() {
        let long = vec![b'x'; 1 << 20];
        let text = (b'D', [&[0, 1, 0, 0x10, 0, 0], &long[..]].concat());
        let null = (b'D', [&[0, 200][..], &[0xff; 800]].concat());
        let column = [b"a\0".as_slice(), &[0; 18]].concat();
        let described = (b'T', [&[0, 1], &column[..]].concat());
        let long_name = (b'T', [&[0, 1], &long[..], &[0; 19]].concat());
        let end = (b'C', Vec::new());
        let of = |begin: fn(&mut RowKeeper)| {
            let mut keeper = RowKeeper::default();
            begin(&mut keeper);
            keeper
        };
        let kept = || of(|keeper| keeper.begin(Some(&[Encoding::Text])));
        check_bounded(kept(), std::slice::from_ref(&text));
        let nulls = of(|keeper| keeper.begin(Some(&[Encoding::Int4; 200])));
        check_bounded(nulls, &[null]);
        let learning = of(RowKeeper::begin_learning);
        check_bounded(learning, &[&[described.clone()][..], &vec![text.clone(); 100]].concat());
        // Of one result the last row alone is kept, so results without end are what takes memory.
        let last = || of(RowKeeper::begin_last);
        check_bounded(last(), &[described.clone(), text.clone(), end.clone()]);
        check_bounded(last(), &[long_name]);
        check_bounded(last(), &[end]);
        let mut keeper = last();
        keeper.take(b'T', &described.1).unwrap();
        (0..100).for_each(|_| keeper.take(b'D', &text.1).expect("each replaces the one before it"));
    }
}
