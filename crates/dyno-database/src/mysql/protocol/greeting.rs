//! The server's greeting and the client's answer to it.

use super::{Fields, capability, push_lenenc};

/// utf8mb4_general_ci: known to every server since 5.5.3.
const COLLATION: u8 = 45;

/// The longest packet this client says it takes: the protocol's limit.
const MAX_PACKET: u32 = 1 << 30;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Greeting {
    /// Version of the server, without the compatibility prefix that MariaDB sends.
    pub(crate) version: String,
    pub(crate) connection_id: u32,
    pub(crate) capabilities: u32,
    /// Zero but for MariaDB.
    pub(crate) mariadb_capabilities: u32,
    /// Random bytes that the password is mixed with.
    pub(crate) nonce: Vec<u8>,
    pub(crate) plugin: Vec<u8>,
}

impl Greeting {
    /// Reads a greeting of protocol version 10; none for anything else.
    pub(crate) fn read(payload: &[u8]) -> Option<Greeting> {
        let mut fields = Fields(payload);
        (fields.u8()? == 10).then_some(())?;
        let version = String::from_utf8_lossy(fields.until_zero()?).into_owned();
        let connection_id = fields.u32()?;
        let mut nonce = fields.bytes(8)?.to_vec();
        fields.u8()?;
        let low = fields.u16()?;
        // Servers before 4.1 end here; they cannot be spoken to.
        fields.u8()?; // Collation.
        fields.u16()?; // Status.
        let capabilities = u32::from(low) | u32::from(fields.u16()?) << 16;
        let nonce_len = usize::from(fields.u8()?);
        fields.bytes(6)?;
        let extended = fields.u32()?;
        if capabilities & capability::SECURE_CONNECTION != 0 {
            let second = fields.bytes(nonce_len.saturating_sub(8).max(13))?;
            nonce.extend_from_slice(second.strip_suffix(&[0]).unwrap_or(second));
        }
        let plugin = match capabilities & capability::PLUGIN_AUTH {
            0 => Vec::new(),
            _ => fields.rest().to_vec(),
        };
        let is_mariadb = capabilities & capability::MYSQL == 0;
        Some(Greeting {
            version: version.strip_prefix("5.5.5-").map(str::to_owned).unwrap_or(version),
            connection_id,
            capabilities,
            mariadb_capabilities: if is_mariadb { extended } else { 0 },
            nonce,
            plugin,
        })
    }
}

pub(crate) struct Answer<'a> {
    pub(crate) capabilities: u32,
    pub(crate) mariadb_capabilities: u32,
    pub(crate) user: &'a str,
    pub(crate) catalog: Option<&'a str>,
    pub(crate) plugin: &'a [u8],
    pub(crate) response: &'a [u8],
}

impl Answer<'_> {
    pub(crate) fn tls_request(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        out.extend_from_slice(&self.capabilities.to_le_bytes());
        out.extend_from_slice(&MAX_PACKET.to_le_bytes());
        out.push(COLLATION);
        out.extend_from_slice(&[0; 19]);
        out.extend_from_slice(&self.mariadb_capabilities.to_le_bytes());
        out
    }

    pub(crate) fn payload(&self) -> Vec<u8> {
        let has = |bit: u32| self.capabilities & bit != 0;
        let mut out = self.tls_request();
        push_text(&mut out, self.user.as_bytes());
        if has(capability::PLUGIN_AUTH_LENENC) {
            push_lenenc(&mut out, self.response.len() as u64);
        } else {
            // Only answers to old plug-ins come here; none of them is longer than 255 bytes.
            out.push(self.response.len() as u8);
        }
        out.extend_from_slice(self.response);
        if let Some(catalog) = self.catalog {
            push_text(&mut out, catalog.as_bytes());
        }
        if has(capability::PLUGIN_AUTH) {
            push_text(&mut out, self.plugin);
        }
        if has(capability::CONNECT_ATTRS) {
            let mut attributes = Vec::new();
            for (name, value) in [("_client_name", "dyno"), ("program_name", "dyno")] {
                for text in [name, value] {
                    push_lenenc(&mut attributes, text.len() as u64);
                    attributes.extend_from_slice(text.as_bytes());
                }
            }
            push_lenenc(&mut out, attributes.len() as u64);
            out.extend_from_slice(&attributes);
        }
        out
    }
}

/// Appends a text and the zero byte after it.
fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

pub(crate) fn wanted(greeting: &Greeting, has_catalog: bool, is_encrypted: bool) -> (u32, u32) {
    let mut mine = capability::LONG_FLAG
        | capability::LOCAL_FILES
        | capability::PROTOCOL_41
        | capability::TRANSACTIONS
        | capability::SECURE_CONNECTION
        | capability::MULTI_STATEMENTS
        | capability::MULTI_RESULTS
        | capability::PS_MULTI_RESULTS
        | capability::PLUGIN_AUTH
        | capability::CONNECT_ATTRS
        | capability::PLUGIN_AUTH_LENENC
        | capability::DEPRECATE_EOF
        | capability::MYSQL;
    if has_catalog {
        mine |= capability::CONNECT_WITH_DB;
    }
    if is_encrypted {
        mine |= capability::SSL;
    }
    mine &= greeting.capabilities;
    // Metadata are cached only together with DEPRECATE_EOF: MariaDB's documents and source disagree
    // about the EOF packet after left-out column definitions.
    let extended = match mine & capability::DEPRECATE_EOF {
        0 => 0,
        _ => greeting.mariadb_capabilities & capability::MARIADB_CACHE_METADATA,
    };
    (mine, extended)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARIADB: &[u8] = b"\x0a5.5.5-10.11.19-MariaDB\0\x07\0\0\0abcdefgh\0\xfe\xf7\x2d\x02\0\
        \xff\x81\x15\0\0\0\0\0\0\x1d\0\0\0ijklmnopqrst\0mysql_native_password\0";

    #[test]
    fn greeting_of_mariadb() {
        let greeting = Greeting::read(MARIADB).unwrap();
        assert_eq!(greeting.version, "10.11.19-MariaDB");
        assert_eq!(greeting.connection_id, 7);
        assert_eq!(greeting.nonce, b"abcdefghijklmnopqrst");
        assert_eq!(greeting.plugin, b"mysql_native_password");
        assert_eq!(greeting.capabilities, 0x81ff_f7fe);
        assert_eq!(greeting.mariadb_capabilities, 0x1d);
        let (mine, extended) = wanted(&greeting, true, false);
        assert_eq!(extended, capability::MARIADB_CACHE_METADATA);
        assert_eq!(mine & (capability::MYSQL | capability::SSL), 0);
        assert_ne!(mine & capability::CONNECT_WITH_DB, 0);
    }

    #[test]
    fn answer_is_laid_out_as_documented() {
        let answer = Answer {
            capabilities: capability::PLUGIN_AUTH | capability::PLUGIN_AUTH_LENENC,
            mariadb_capabilities: 0x10,
            user: "me",
            catalog: Some("shop"),
            plugin: b"p",
            response: b"xyz",
        };
        let payload = answer.payload();
        assert_eq!(payload[..32], answer.tls_request());
        assert_eq!(payload[28..32], [0x10, 0, 0, 0]);
        assert_eq!(&payload[32..], b"me\0\x03xyzshop\0p\0");
    }
}
