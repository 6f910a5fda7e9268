//! The server's side of the MySQL protocol, with no knowledge of tables. Greets like MariaDB, so
//! that clients use its features: no packet after column definitions, and no repeated definitions
//! for prepared statements. Any user and password is accepted.

use std::sync::LazyLock;

use super::sql::{self, Kind, RowCounter};
use super::wire::{COLUMN, Fields, Taken, VALUE, Wire};

const HEADER_LEN: usize = 4;
/// A payload of this length goes on in the next packet; no command needs that here.
const MAX_PAYLOAD: usize = 0xff_ffff;

/// Capability bits (MySQL documentation, "Capabilities Flags").
mod capability {
    pub(super) const CONNECT_WITH_DB: u32 = 1 << 3;
    pub(super) const PROTOCOL_41: u32 = 1 << 9;
    pub(super) const SSL: u32 = 1 << 11;
    pub(super) const PLUGIN_AUTH: u32 = 1 << 19;
    pub(super) const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
    pub(super) const DEPRECATE_EOF: u32 = 1 << 24;
    /// Found rows, long flag, catalog, local files, 4.1, transactions, secure connection, multi
    /// statements and results, plug-ins, attributes, no EOF. Not `MYSQL` (1), as it is a MariaDB.
    pub(super) const OFFERED: u32 =
        2 | 4 | 8 | 1 << 7 | 1 << 9 | 1 << 13 | 1 << 15 | 0x3f << 16 | 1 << 24;
    /// MariaDB's own: definitions are not sent again.
    pub(super) const CACHE_METADATA: u32 = 1 << 4;
}

mod command {
    pub(super) const QUIT: u8 = 0x01;
    pub(super) const INIT_DB: u8 = 0x02;
    pub(super) const QUERY: u8 = 0x03;
    pub(super) const PING: u8 = 0x0e;
    pub(super) const STMT_PREPARE: u8 = 0x16;
    pub(super) const STMT_EXECUTE: u8 = 0x17;
    pub(super) const STMT_SEND_LONG_DATA: u8 = 0x18;
    pub(super) const STMT_CLOSE: u8 = 0x19;
    pub(super) const STMT_RESET: u8 = 0x1a;
    pub(super) const RESET_CONNECTION: u8 = 0x1f;
}

const AUTOCOMMIT: u8 = 2;

const PLUGIN: &[u8] = b"mysql_native_password\0";
/// A nonce need not be random if every password is right.
const NONCE: &[u8; 20] = b"null-server-nonce-20";

#[derive(Debug, Default)]
pub(super) struct Conversation {
    stage: Stage,
    // Index into `REPLIES`.
    form: usize,
    // By id less one; none if it was closed.
    prepared: Vec<Option<Kind>>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Stage {
    /// The answer to the greeting comes next.
    #[default]
    Greeted,
    /// The answer of another plug-in comes next.
    Switched,
    Ready,
    /// Rows of a local file come next.
    Loading(RowCounter),
}

struct Replies {
    has_eof: bool,
    text: Vec<u8>,
    prepared: Vec<u8>,
}

/// By form: bit 0 without EOF packets, bit 1 without definitions again.
static REPLIES: LazyLock<[Replies; 4]> = LazyLock::new(|| [0, 1, 2, 3].map(Replies::new));

impl Replies {
    fn new(form: usize) -> Replies {
        let (has_eof, caches) = (form & 1 == 0, form & 2 != 0);
        let reply = |has_definitions: bool, row: &[u8]| {
            let mut packets = Packets { out: Vec::new(), sequence: 1 };
            if caches {
                packets.push(&[1, u8::from(has_definitions)])
            } else {
                packets.push(&[1])
            }
            if has_definitions {
                packets.push(&definition(COLUMN));
                packets.push_eof(has_eof);
            }
            packets.push(row);
            match has_eof {
                true => packets.push_eof(true),
                false => packets.push(&[0xfe, 0, 0, AUTOCOMMIT, 0, 0, 0]),
            }
            packets.out
        };
        let value = [&[VALUE.len() as u8], VALUE.as_slice()].concat();
        let binary = [&[0, 0], value.as_slice()].concat();
        Replies {
            has_eof,
            text: reply(true, &value),
            // Where documents disagree about the EOF packet, definitions are sent.
            prepared: reply(has_eof || !caches, &binary),
        }
    }
}

struct Packets {
    out: Vec<u8>,
    sequence: u8,
}

impl Packets {
    fn push(&mut self, payload: &[u8]) {
        push_packet(&mut self.out, self.sequence, payload);
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// The end of definitions or rows, if the client expects it.
    fn push_eof(&mut self, has_eof: bool) {
        if has_eof {
            self.push(&[0xfe, 0, 0, AUTOCOMMIT, 0]);
        }
    }
}

fn definition(name: &[u8]) -> Vec<u8> {
    let mut out = b"\x03def\0\0\0".to_vec();
    for _ in 0..2 {
        out.push(name.len() as u8);
        out.extend_from_slice(name);
    }
    // Length of what follows, utf8mb4, length in bytes, VAR_STRING, no flags, no decimals.
    out.extend_from_slice(&[0x0c, 45, 0]);
    out.extend_from_slice(&(VALUE.len() as u32 * 4).to_le_bytes());
    out.extend_from_slice(&[0xfd, 0, 0, 0, 0, 0]);
    out
}

fn push_packet(out: &mut Vec<u8>, sequence: u8, payload: &[u8]) {
    let [a, b, c, ..] = (payload.len() as u32).to_le_bytes();
    out.extend_from_slice(&[a, b, c, sequence]);
    out.extend_from_slice(payload);
}

fn push_ok(out: &mut Vec<u8>, sequence: u8, affected: u64) {
    let mut payload = [0; 15];
    let n_head = match affected {
        0..=0xfa => {
            payload[1] = affected as u8;
            2
        }
        _ => {
            payload[1] = 0xfe;
            payload[2..10].copy_from_slice(&affected.to_le_bytes());
            10
        }
    };
    // Last insert id 0, status, no warnings.
    payload[n_head + 1] = AUTOCOMMIT;
    push_packet(out, sequence, &payload[..n_head + 5]);
}

fn push_error(out: &mut Vec<u8>, code: u16, text: &str) {
    let [low, high] = code.to_le_bytes();
    let payload = [&[0xff, low, high], b"#HY000".as_slice(), text.as_bytes()].concat();
    push_packet(out, 1, &payload);
}

impl Conversation {
    pub(super) fn greet(out: &mut Vec<u8>) {
        let [a, b, c, d] = capability::OFFERED.to_le_bytes();
        let mut payload = vec![10];
        // The compatibility prefix of MariaDB.
        payload.extend_from_slice(b"5.5.5-10.11.0-MariaDB-null\0\x01\0\0\0");
        payload.extend_from_slice(&NONCE[..8]);
        payload.extend_from_slice(&[0, a, b, 45, AUTOCOMMIT, 0, c, d, NONCE.len() as u8 + 1]);
        payload.extend_from_slice(&[0; 6]);
        payload.extend_from_slice(&capability::CACHE_METADATA.to_le_bytes());
        payload.extend_from_slice(&NONCE[8..]);
        payload.push(0);
        payload.extend_from_slice(PLUGIN);
        push_packet(out, 0, &payload);
    }

    pub(super) fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Taken {
        let mut taken = Taken::default();
        while !taken.is_over {
            let &[a, b, c, sequence, ref rest @ ..] = &bytes[taken.n_bytes..] else { break };
            let len = u32::from_le_bytes([a, b, c, 0]) as usize;
            let Some(payload) = rest.get(..len) else { break };
            taken.n_bytes += HEADER_LEN + len;
            let is_understood = match &mut self.stage {
                Stage::Ready => self.command(payload, out, &mut taken),
                Stage::Loading(counter) if !payload.is_empty() => {
                    counter.feed(payload);
                    Some(())
                }
                Stage::Loading(counter) => {
                    push_ok(out, sequence.wrapping_add(1), counter.n_rows);
                    self.stage = Stage::Ready;
                    Some(())
                }
                Stage::Greeted => self.log_in(payload, sequence, out),
                Stage::Switched => {
                    self.stage = Stage::Ready;
                    push_ok(out, sequence.wrapping_add(1), 0);
                    Some(())
                }
            };
            taken.is_over |= is_understood.is_none();
        }
        taken
    }

    /// Reads the answer to the greeting: only what was negotiated counts.
    fn log_in(&mut self, payload: &[u8], sequence: u8, out: &mut Vec<u8>) -> Option<()> {
        let mut fields = Fields(payload);
        let capabilities = fields.u32_le()?;
        let has = |bit: u32| capabilities & bit != 0;
        if !has(capability::PROTOCOL_41) || has(capability::SSL) {
            return None;
        }
        fields.bytes(24)?;
        let extended = fields.u32_le()?;
        fields.text()?;
        let response_len = fields.u8()?;
        if response_len > 0xfa && has(capability::PLUGIN_AUTH_LENENC) {
            return None;
        }
        fields.bytes(usize::from(response_len))?;
        if has(capability::CONNECT_WITH_DB) {
            fields.text()?;
        }
        let caches = capabilities & 1 == 0 && extended & capability::CACHE_METADATA != 0;
        self.form = usize::from(has(capability::DEPRECATE_EOF)) | usize::from(caches) << 1;
        let plugin = if has(capability::PLUGIN_AUTH) { fields.text() } else { None };
        let sequence = sequence.wrapping_add(1);
        if plugin.is_some_and(|plugin| plugin != &PLUGIN[..PLUGIN.len() - 1]) {
            self.stage = Stage::Switched;
            push_packet(out, sequence, &[b"\xfe", PLUGIN, NONCE, b"\0"].concat());
        } else {
            self.stage = Stage::Ready;
            push_ok(out, sequence, 0);
        }
        Some(())
    }

    /// Answers a command; `None` if the session has ended.
    fn command(&mut self, payload: &[u8], out: &mut Vec<u8>, taken: &mut Taken) -> Option<()> {
        let (&command, body) = payload.split_first()?;
        if payload.len() == MAX_PAYLOAD {
            push_error(out, 1153, "the null server accepts no command of 16 MiB or more");
            return None;
        }
        match command {
            command::STMT_EXECUTE => {
                taken.n_statements += 1;
                taken.n_executions += 1;
                let id = Fields(body).u32_le()?;
                match self.find(id) {
                    Some(kind) => self.answer(kind, &REPLIES[self.form].prepared, out),
                    None => push_error(out, 1243, "no statement was prepared under this id"),
                }
            }
            command::QUERY => {
                taken.n_statements += 1;
                let kind = sql::kind(body, Wire::MySql);
                self.answer(kind, &REPLIES[self.form].text, out);
            }
            command::STMT_PREPARE => self.prepare(body, out),
            command::STMT_CLOSE => {
                let id = Fields(body).u32_le()?;
                if let Some(kind) = self.prepared.get_mut((id as usize).wrapping_sub(1)) {
                    *kind = None;
                }
            }
            command::STMT_SEND_LONG_DATA => {}
            command::PING | command::INIT_DB | command::STMT_RESET => push_ok(out, 1, 0),
            command::RESET_CONNECTION => {
                self.prepared.clear();
                push_ok(out, 1, 0);
            }
            command::QUIT => return None,
            _ => push_error(out, 1047, "the null server does not know this command"),
        }
        Some(())
    }

    fn find(&self, id: u32) -> Option<Kind> {
        *self.prepared.get((id as usize).wrapping_sub(1))?
    }

    fn answer(&mut self, kind: Kind, row: &[u8], out: &mut Vec<u8>) {
        match kind {
            Kind::Row => out.extend_from_slice(row),
            Kind::Insert(n_rows) => push_ok(out, 1, n_rows),
            Kind::Update | Kind::Delete => push_ok(out, 1, 1),
            Kind::TakeRows => {
                self.stage = Stage::Loading(RowCounter::default());
                push_packet(out, 1, b"\xfbnull");
            }
            Kind::Begin | Kind::End | Kind::Other => push_ok(out, 1, 0),
        }
    }

    fn prepare(&mut self, sql: &[u8], out: &mut Vec<u8>) {
        let kind = sql::kind(sql, Wire::MySql);
        if kind == Kind::TakeRows {
            return push_error(out, 1295, "this statement cannot be prepared");
        }
        let free = self.prepared.iter().position(Option::is_none).unwrap_or(self.prepared.len());
        self.prepared.resize(self.prepared.len().max(free + 1), None);
        self.prepared[free] = Some(kind);
        let id = free as u32 + 1;
        let n_columns = u16::from(kind == Kind::Row);
        let n_parameters = sql::count_placeholders(sql);
        let mut payload = vec![0];
        payload.extend_from_slice(&id.to_le_bytes());
        payload.extend_from_slice(&n_columns.to_le_bytes());
        payload.extend_from_slice(&n_parameters.to_le_bytes());
        payload.extend_from_slice(&[0, 0, 0]);
        let mut packets = Packets { out: std::mem::take(out), sequence: 1 };
        packets.push(&payload);
        let has_eof = REPLIES[self.form].has_eof;
        for (n, name) in [(n_parameters, b"?".as_slice()), (n_columns, COLUMN)] {
            let definition = definition(name);
            for _ in 0..n {
                packets.push(&definition);
            }
            packets.push_eof(has_eof && n > 0);
        }
        *out = packets.out;
    }
}
