//! The server's side of the PostgreSQL protocol, with no knowledge of tables. Any user is accepted
//! (trust); nothing is encrypted. Format: PostgreSQL documentation, "Message Formats".

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::sql::{self, Kind, RowCounter};
use super::wire::{COLUMN, Fields, MESSAGE_MAX, Taken, VALUE, Wire};

const HEADER_BYTES: usize = 5;

const CANCEL: u32 = 80_877_102;
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// Longest startup packet, in bytes, as PostgreSQL has it.
const STARTUP_MAX: usize = 10_000;

/// The parameters that a server reports after authentication.
const PARAMETERS: [(&str, &str); 6] = [
    ("server_version", "16.0 (null)"),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
];

/// DataRow and CommandComplete; then the same after the simple protocol's description.
static ROW: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut out = Vec::new();
    let length = (VALUE.len() as u32).to_be_bytes();
    push(&mut out, b'D', &[&[0, 1], &length, VALUE]);
    push(&mut out, b'C', &[b"SELECT 1\0"]);
    out
});
static DESCRIPTION: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut out = Vec::new();
    // One column, of no table, of type text, in text format; its bytes are those of the binary one.
    let about = [0, 0, 0, 0, 0, 0, 0, 0, 0, sql::TEXT as u8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    push(&mut out, b'T', &[&[0, 1], COLUMN, &[0], &about, &[0, 0]]);
    out
});

#[derive(Debug)]
pub(super) struct Conversation {
    stage: Stage,
    prepared: BTreeMap<Box<[u8]>, Prepared>,
    // Of the last Bind, whatever the portal's name.
    bound: Kind,
    // `I` outside, `T` inside a transaction.
    transaction: u8,
}

#[derive(Clone, Debug, Default)]
struct Prepared {
    kind: Kind,
    types: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Starting,
    Ready,
    /// After an error: everything up to Sync is skipped.
    Skipping,
    Copying(CopyIn),
}

#[derive(Clone, Copy, Debug)]
struct CopyIn {
    rows: RowCounter,
    // Whether it came by the simple protocol, where no Sync follows.
    by_query: bool,
}

fn push(out: &mut Vec<u8>, tag: u8, parts: &[&[u8]]) {
    let length = 4 + parts.iter().map(|part| part.len()).sum::<usize>();
    out.push(tag);
    out.extend_from_slice(&(length as u32).to_be_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// Appends a command's end: `INSERT 0 5`.
fn push_complete(out: &mut Vec<u8>, verb: &[u8], n_rows: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = n_rows;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    push(out, b'C', &[verb, &digits[at..], &[0]]);
}

fn push_error(out: &mut Vec<u8>, code: &str, text: &str) {
    let fields = [b"SERROR\0VERROR\0C", code.as_bytes(), b"\0M", text.as_bytes(), b"\0\0"];
    push(out, b'E', &fields);
}

impl Conversation {
    pub(super) fn new() -> Conversation {
        Conversation {
            stage: Stage::Starting,
            prepared: BTreeMap::new(),
            bound: Kind::Other,
            transaction: b'I',
        }
    }

    pub(super) fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Taken {
        let mut taken = Taken::default();
        while !taken.is_over {
            let rest = &bytes[taken.n_bytes..];
            if matches!(self.stage, Stage::Starting) {
                match self.start(rest, out) {
                    Some(0) => break,
                    Some(n_bytes) => taken.n_bytes += n_bytes,
                    None => taken.is_over = true,
                }
                continue;
            }
            let &[tag, a, b, c, d, ref rest @ ..] = rest else { break };
            let length = u32::from_be_bytes([a, b, c, d]) as usize;
            if !(4..=MESSAGE_MAX).contains(&length) {
                taken.is_over = true;
                break;
            }
            let Some(body) = rest.get(..length - 4) else { break };
            taken.n_bytes += HEADER_BYTES + length - 4;
            taken.is_over = self.message(tag, body, out, &mut taken).is_none();
        }
        taken
    }

    /// The startup packet's length, 0 if incomplete, `None` if the session has ended.
    fn start(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let &[a, b, c, d, ref rest @ ..] = bytes else { return Some(0) };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if !(8..=STARTUP_MAX).contains(&length) {
            return None;
        }
        let Some(body) = rest.get(..length - 4) else { return Some(0) };
        match Fields(body).u32_be()? {
            SSL | GSS => out.push(b'N'),
            CANCEL => return None,
            version if version >> 16 == 3 => {
                if version & 0xffff > 0 {
                    // The newest minor version, and no option that is not known.
                    push(out, b'v', &[&[0; 8]]);
                }
                self.let_in(out);
            }
            _ => {
                push_error(out, "0A000", "the null server speaks version 3 of the protocol");
                return None;
            }
        }
        Some(length)
    }

    fn let_in(&mut self, out: &mut Vec<u8>) {
        self.stage = Stage::Ready;
        push(out, b'R', &[&[0; 4]]);
        for (name, value) in PARAMETERS {
            push(out, b'S', &[name.as_bytes(), &[0], value.as_bytes(), &[0]]);
        }
        push(out, b'K', &[&[0; 8]]);
        self.push_ready(out);
    }

    fn push_ready(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[b'Z', 0, 0, 0, 5, self.transaction]);
    }

    /// Answers a message; `None` if the session has ended.
    fn message(
        &mut self,
        tag: u8,
        body: &[u8],
        out: &mut Vec<u8>,
        taken: &mut Taken,
    ) -> Option<()> {
        match (self.stage, tag) {
            (_, b'X') => return None,
            (Stage::Copying(copy), _) => self.copy(copy, tag, body, out)?,
            (_, b'S') => {
                self.stage = Stage::Ready;
                self.push_ready(out);
            }
            (Stage::Skipping, _) => {}
            (_, b'B') => self.bind(body, out)?,
            (_, b'E') => {
                taken.n_statements += 1;
                taken.n_executions += 1;
                self.answer(self.bound, false, out);
            }
            (_, b'Q') => {
                taken.n_statements += 1;
                let kind = sql::kind(body.strip_suffix(&[0])?, Wire::PostgreSql);
                if kind == Kind::Row {
                    out.extend_from_slice(&DESCRIPTION);
                }
                self.answer(kind, true, out);
                if kind != Kind::TakeRows {
                    self.push_ready(out);
                }
            }
            (_, b'P') => self.parse(body, out)?,
            (_, b'D') => self.describe(body, out)?,
            (_, b'C') => {
                let (&what, mut name) =
                    body.split_first().map(|(what, rest)| (what, Fields(rest)))?;
                if what == b'S' {
                    self.prepared.remove(name.text()?);
                }
                push(out, b'3', &[]);
            }
            // Flush: everything is sent at once anyway. The end of a COPY that is over already.
            (_, b'H' | b'd' | b'c' | b'f') => {}
            _ => {
                push_error(out, "08P01", "the null server does not know this message");
                return None;
            }
        }
        Some(())
    }

    fn copy(&mut self, mut copy: CopyIn, tag: u8, body: &[u8], out: &mut Vec<u8>) -> Option<()> {
        match tag {
            b'd' => {
                copy.rows.feed(body);
                self.stage = Stage::Copying(copy);
                return Some(());
            }
            // Flush and Sync mean nothing inside a COPY.
            b'H' | b'S' => return Some(()),
            b'c' => {
                push_complete(out, b"COPY ", copy.rows.n_rows);
                self.stage = Stage::Ready;
            }
            b'f' => {
                push_error(out, "57014", "the client aborted the COPY");
                self.stage = if copy.by_query { Stage::Ready } else { Stage::Skipping };
            }
            _ => return None,
        }
        if copy.by_query {
            self.push_ready(out);
        }
        Some(())
    }

    fn fail(&mut self, out: &mut Vec<u8>, code: &str, text: &str) {
        push_error(out, code, text);
        self.stage = Stage::Skipping;
    }

    fn parse(&mut self, body: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let mut fields = Fields(body);
        let name = fields.text()?;
        let text = fields.text()?;
        let mut types = sql::parameter_types(text);
        for idx in 0..usize::from(fields.u16_be()?) {
            let given = fields.u32_be()?;
            if idx >= types.len() {
                types.push(sql::TEXT);
            }
            if given != 0 {
                types[idx] = given;
            }
        }
        let prepared = Prepared { kind: sql::kind(text, Wire::PostgreSql), types };
        self.prepared.insert(name.into(), prepared);
        push(out, b'1', &[]);
        Some(())
    }

    fn bind(&mut self, body: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let mut fields = Fields(body);
        fields.text()?;
        match self.prepared.get(fields.text()?) {
            Some(prepared) => {
                self.bound = prepared.kind;
                out.extend_from_slice(&[b'2', 0, 0, 0, 4]);
            }
            None => self.fail(out, "26000", "no statement was prepared under this name"),
        }
        Some(())
    }

    fn describe(&mut self, body: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let (&what, rest) = body.split_first()?;
        let name = Fields(rest).text()?;
        let kind = match (what, self.prepared.get(name)) {
            (b'S', None) => {
                self.fail(out, "26000", "no statement was prepared under this name");
                return Some(());
            }
            (b'S', Some(prepared)) => {
                let types: Vec<u8> =
                    prepared.types.iter().flat_map(|id| id.to_be_bytes()).collect();
                push(out, b't', &[&(prepared.types.len() as u16).to_be_bytes(), &types]);
                prepared.kind
            }
            _ => self.bound,
        };
        match kind {
            Kind::Row => out.extend_from_slice(&DESCRIPTION),
            _ => push(out, b'n', &[]),
        }
        Some(())
    }

    fn answer(&mut self, kind: Kind, by_query: bool, out: &mut Vec<u8>) {
        match kind {
            Kind::Row => out.extend_from_slice(&ROW),
            Kind::Insert(n_rows) => push_complete(out, b"INSERT 0 ", n_rows),
            Kind::Update => push_complete(out, b"UPDATE ", 1),
            Kind::Delete => push_complete(out, b"DELETE ", 1),
            Kind::Begin => {
                self.transaction = b'T';
                push(out, b'C', &[b"BEGIN\0"]);
            }
            Kind::End => {
                self.transaction = b'I';
                push(out, b'C', &[b"COMMIT\0"]);
            }
            Kind::TakeRows => {
                self.stage = Stage::Copying(CopyIn { rows: RowCounter::default(), by_query });
                // Text; the columns are not known.
                push(out, b'G', &[&[0, 0, 0]]);
            }
            Kind::Other => push(out, b'C', &[b"OK\0"]),
        }
    }
}
