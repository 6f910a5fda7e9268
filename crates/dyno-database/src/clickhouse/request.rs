//! Writes requests: heads, and statements with values; reads errors.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dyno_workload::{ErrorClass, StatementError, Value};
use zeroize::Zeroizing;

use crate::{Address, Endpoint};

/// The beginnings of requests to one server. They hold the password.
pub(super) struct Heads {
    /// Of a statement whose rows are counted; its length follows.
    pub(super) counting: Zeroizing<Vec<u8>>,
    /// Of a statement whose rows are kept with the names of their columns; its length follows.
    pub(super) naming: Zeroizing<Vec<u8>>,
    // What comes after the line of a request.
    fields: Zeroizing<Vec<u8>>,
    database: String,
}

impl Heads {
    /// Fails, with the reason, if HTTP cannot carry a name.
    pub(super) fn new(endpoint: &Endpoint) -> Result<Heads, String> {
        if endpoint.user.contains(':') {
            return Err("a user whose name contains a colon cannot log in over HTTP".to_owned());
        }
        let login = login(endpoint);
        let host = match &endpoint.address {
            Address::Unix(_) => "localhost".to_owned(),
            Address::Tcp { host, port } if host.contains(':') => format!("[{host}]:{port}"),
            Address::Tcp { host, port } => format!("{host}:{port}"),
        };
        if host.contains(|c: char| c.is_control() || c == ' ') {
            return Err("the name of the host cannot be sent over HTTP".to_owned());
        }
        let mut fields = Zeroizing::new(Vec::with_capacity(256 + host.len() + login.len()));
        let text = [
            " HTTP/1.1\r\nHost: ",
            &host,
            "\r\nUser-Agent: dyno\r\nAuthorization: Basic ",
            &login,
            "\r\n",
        ];
        text.iter().for_each(|part| fields.extend_from_slice(part.as_bytes()));
        let database = percent_encoded(&endpoint.catalog);
        let head = |format: &str| {
            let line =
                format!("POST /?database={database}&wait_end_of_query=1&default_format={format}");
            let mut head = Zeroizing::new(Vec::with_capacity(line.len() + fields.len() + 16));
            head.extend_from_slice(line.as_bytes());
            head.extend_from_slice(&fields);
            head.extend_from_slice(b"Content-Length: ");
            head
        };
        let (counting, naming) = (head("TabSeparated"), head("TabSeparatedWithNames"));
        Ok(Heads { counting, naming, fields, database })
    }

    /// The head of a statement whose rows follow in chunks.
    pub(super) fn of_rows(&self, insert: &str) -> Zeroizing<Vec<u8>> {
        let line = format!(
            "POST /?database={}&wait_end_of_query=1&query={}",
            self.database,
            percent_encoded(insert)
        );
        let mut head = Zeroizing::new(line.into_bytes());
        head.extend_from_slice(&self.fields);
        head.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
        head
    }
}

pub(super) fn login(endpoint: &Endpoint) -> Zeroizing<String> {
    let password = endpoint.password.as_ref().map_or("", |word| word.reveal());
    let login = Zeroizing::new(format!("{}:{password}", endpoint.user));
    Zeroizing::new(STANDARD.encode(login.as_bytes()))
}

fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(3 * text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                out.push(char::from(byte));
            }
            _ => out += &format!("%{byte:02X}"),
        }
    }
    out
}

pub(super) fn write_request(head: &[u8], body: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(head);
    // Writing into memory cannot fail.
    let _ = write!(out, "{}\r\n\r\n", body.len());
    out.extend_from_slice(body);
}

#[derive(Debug)]
pub(super) struct Template {
    parts: Vec<Box<[u8]>>,
}

impl Template {
    /// From a text with `?` where values go; none stands in a literal.
    pub(super) fn new(sql: &str) -> Template {
        Template { parts: sql.split('?').map(|part| part.as_bytes().into()).collect() }
    }

    /// Writes the statement with these values; false if it has another number of places.
    pub(super) fn write(&self, values: &[Value<'_>], out: &mut Vec<u8>) -> bool {
        if values.len() + 1 != self.parts.len() {
            return false;
        }
        for (idx, part) in self.parts.iter().enumerate() {
            out.extend_from_slice(part);
            if let Some(value) = values.get(idx) {
                write_value(value, out);
            }
        }
        true
    }
}

fn write_value(value: &Value<'_>, out: &mut Vec<u8>) {
    // Writing into memory cannot fail.
    let _ = match value {
        Value::Null => write!(out, "NULL"),
        Value::Integer(number) => write!(out, "{number}"),
        Value::Real(number) if number.is_nan() => write!(out, "nan"),
        Value::Real(number) => write!(out, "{number:?}"),
        Value::Text(text) => {
            out.push(b'\'');
            for &byte in *text {
                if matches!(byte, b'\'' | b'\\') {
                    out.push(b'\\');
                }
                out.push(byte);
            }
            out.push(b'\'');
            Ok(())
        }
    };
}

/// A cell as the server writes it with tabs between: none for NULL.
pub(super) fn cell(bytes: &[u8]) -> Option<String> {
    if bytes == b"\\N" {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter();
    while let Some(&byte) = rest.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match rest.next() {
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'0') => 0,
            Some(&other) => other,
            None => b'\\',
        });
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

/// From `Code: 62, e.displayText() = DB::Exception: Syntax error: …, e.what() = DB::Exception`, in
/// newer servers `Code: 62. DB::Exception: …`.
pub(super) fn error_in(status: u16, exception: Option<u32>, body: &[u8]) -> StatementError {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    let digits = text.strip_prefix("Code: ").and_then(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest.get(..end).filter(|digits| !digits.is_empty())
    });
    let code = digits.and_then(|digits| digits.parse().ok()).or(exception);
    let Some(code) = code else {
        let message = if text.is_empty() { "the server gives no reason" } else { text };
        return StatementError::new(ErrorClass::Refused, format!("HTTP {status}"), message);
    };
    let message = text.split_once("DB::Exception: ").map_or(text, |(_, message)| message);
    let message = message.rsplit_once(", e.what() =").map_or(message, |(message, _)| message);
    let class = match code {
        DEADLOCK_AVOIDED => ErrorClass::Deadlock,
        _ => ErrorClass::Refused,
    };
    StatementError::new(class, code.to_string(), message)
}

/// The server's code for a statement that waited for a lock as in a deadlock.
const DEADLOCK_AVOIDED: u32 = 473;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_the_server_reads_them() {
        let check = |sql: &str, values: &[Value<'_>], expected: Option<&str>| {
            let mut out = Vec::new();
            let is_written = Template::new(sql).write(values, &mut out);
            assert_eq!(is_written.then(|| String::from_utf8(out).unwrap()).as_deref(), expected);
        };
        check("SELECT 1", &[], Some("SELECT 1"));
        check("SELECT ?", &[], None);
        check("SELECT ?", &[Value::Null, Value::Null], None);
        check(
            "INSERT INTO t VALUES (?, ?, ?, ?)",
            &[Value::Integer(-5), Value::Real(1.0), Value::Null, Value::Text(b"it's \\ a\n")],
            Some("INSERT INTO t VALUES (-5, 1.0, NULL, 'it\\'s \\\\ a\n')"),
        );
    }

    #[test]
    fn cells_are_read_as_the_server_writes_them() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(cell(text.as_bytes()).as_deref(), expected, "{text}");
        };
        check("\\N", None);
        check("", Some(""));
        check("x\\'y\\\\z\\t\\n", Some("x'y\\z\t\n"));
        check("\\", Some("\\"));
    }

    #[test]
    fn errors_have_a_code_and_a_message() {
        let check = |body: &str, code: &str, message: &str| {
            let error = error_in(500, None, body.as_bytes());
            assert_eq!((error.code.as_ref(), error.message.as_ref()), (code, message));
        };
        check(
            "Code: 81, e.displayText() = DB::Exception: Database nodb doesn't exist, e.what() = DB::Exception\n",
            "81",
            "Database nodb doesn't exist",
        );
        check(
            "Code: 62. DB::Exception: Syntax error. (SYNTAX_ERROR)",
            "62",
            "Syntax error. (SYNTAX_ERROR)",
        );
        check("<html>Bad gateway</html>", "HTTP 500", "<html>Bad gateway</html>");
        check("", "HTTP 500", "the server gives no reason");
        check("Code: 99999999999", "HTTP 500", "Code: 99999999999");
        assert_eq!(error_in(200, Some(241), b"").code, "241");
    }

    #[test]
    fn a_request_holds_the_login_and_the_database() {
        let endpoint = Endpoint::from_url("clickhouse://me:p%40ss@h:8123/a%20b").unwrap();
        let heads = Heads::new(&endpoint).unwrap();
        let mut out = Vec::new();
        write_request(&heads.counting, b"SELECT 1", &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "POST /?database=a%20b&wait_end_of_query=1&default_format=TabSeparated HTTP/1.1\r\n\
             Host: h:8123\r\nUser-Agent: dyno\r\nAuthorization: Basic bWU6cEBzcw==\r\n\
             Content-Length: 8\r\n\r\nSELECT 1"
        );
        let rows = String::from_utf8(heads.of_rows("INSERT INTO t (a, b)").to_vec()).unwrap();
        assert!(rows.contains("&query=INSERT%20INTO%20t%20%28a%2C%20b%29 HTTP/1.1\r\n"), "{rows}");
        assert!(rows.ends_with("Transfer-Encoding: chunked\r\n\r\n"), "{rows}");
        let endpoint = Endpoint { user: "a:b".to_owned(), ..endpoint };
        assert!(Heads::new(&endpoint).is_err());
    }
}
