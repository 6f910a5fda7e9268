//! Reads answers of an HTTP server: with a length, in chunks, or up to the end of the connection.
//! Pure: bytes in, state out. Every part of an answer is bounded, whatever the server sends.

use memchr::{memchr, memchr_iter};

/// Longest line of a head, or of a chunk's size, in bytes.
const LINE_MAX: usize = 8 * 1024;

/// Longest head, trailers included, in bytes.
const HEAD_MAX: usize = 64 * 1024;

/// How much of the text of an error is kept, in bytes.
const ERROR_MAX: usize = 16 * 1024;

const OK: u16 = 200;

/// An answer that is none, in words that fit after "connection lost:".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct HttpError(pub(super) String);

fn wrong<T>(why: impl Into<String>) -> Result<T, HttpError> {
    Err(HttpError(format!(
        "the server's response is not HTTP that Dyno understands: {}",
        why.into()
    )))
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    Status,
    Headers,
    Sized(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailers,
    /// The rest of the connection is the body.
    ToEnd,
    #[default]
    Done,
}

#[derive(Debug, Default)]
pub(super) struct Answer {
    stage: Stage,
    pub(super) status: u16,
    n_head: usize,
    length: Option<u64>,
    is_chunked: bool,
    /// Whether the server ends the connection after this answer.
    pub(super) closes: bool,
    /// The code that a header gives of an error; newer servers have one.
    pub(super) exception: Option<u32>,
    keeps_body: bool,
    /// The body, if it is kept or the text of an error.
    pub(super) body: Vec<u8>,
    body_max: usize,
    /// Lines of a body that is not kept.
    pub(super) n_lines: u64,
    has_any: bool,
}

impl Answer {
    pub(super) fn new(body_max: usize) -> Answer {
        Answer { body: Vec::with_capacity(ERROR_MAX), body_max, ..Answer::default() }
    }

    /// Begins another answer. Its body is kept, or its lines are only counted.
    pub(super) fn begin(&mut self, keeps_body: bool) {
        let (mut body, body_max) = (std::mem::take(&mut self.body), self.body_max);
        body.clear();
        *self = Answer { stage: Stage::Status, keeps_body, body, body_max, ..Answer::default() };
    }

    /// Reads as much as it can; returns how many bytes it took. It may be called again with the rest.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<usize, HttpError> {
        let mut n_taken = 0;
        self.has_any |= !bytes.is_empty();
        while self.stage != Stage::Done {
            let rest = &bytes[n_taken..];
            let n_now = match self.stage {
                Stage::Sized(left) | Stage::Chunk(left) => self.take_body(rest, left)?,
                Stage::ToEnd => self.take_body(rest, u64::MAX)?,
                _ => self.take_line(rest)?,
            };
            n_taken += n_now;
            if n_now == 0 {
                break;
            }
        }
        Ok(n_taken)
    }

    /// At the end of the connection. Fails if the answer is incomplete.
    pub(super) fn end(&mut self) -> Result<(), HttpError> {
        match self.stage {
            Stage::Done => Ok(()),
            Stage::ToEnd => {
                self.stage = Stage::Done;
                Ok(())
            }
            _ if !self.has_any => {
                Err(HttpError("the server closed the connection without a response".to_owned()))
            }
            _ => Err(HttpError(
                "the server closed the connection in the middle of its response".to_owned(),
            )),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    pub(super) fn is_error(&self) -> bool {
        self.status != OK || self.exception.is_some_and(|code| code != 0)
    }

    /// Takes bytes of the body; `left` of them belong to it or to its chunk.
    fn take_body(&mut self, bytes: &[u8], left: u64) -> Result<usize, HttpError> {
        let n_now = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let part = &bytes[..n_now];
        if self.is_error() {
            let room = ERROR_MAX - self.body.len().min(ERROR_MAX);
            self.body.extend_from_slice(&part[..part.len().min(room)]);
        } else if self.keeps_body {
            if self.body.len() + part.len() > self.body_max {
                return Err(HttpError(crate::transport::too_much()));
            }
            self.body.extend_from_slice(part);
        } else {
            self.n_lines += memchr_iter(b'\n', part).count() as u64;
        }
        let left = left - n_now as u64;
        self.stage = match self.stage {
            Stage::Sized(_) if left == 0 => Stage::Done,
            Stage::Sized(_) => Stage::Sized(left),
            Stage::Chunk(_) if left == 0 => Stage::ChunkEnd,
            Stage::Chunk(_) => Stage::Chunk(left),
            other => other,
        };
        Ok(n_now)
    }

    /// Takes one line of a head or around a chunk; 0 if it is not complete.
    fn take_line(&mut self, bytes: &[u8]) -> Result<usize, HttpError> {
        let Some(end) = memchr(b'\n', &bytes[..bytes.len().min(LINE_MAX)]) else {
            return match bytes.len() >= LINE_MAX {
                true => wrong(format!("a line of its head is longer than {LINE_MAX} bytes")),
                false => Ok(0),
            };
        };
        let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
        match self.stage {
            Stage::Status | Stage::Headers | Stage::Trailers => {
                self.n_head += end + 1;
                if self.n_head > HEAD_MAX {
                    return wrong(format!("its head is longer than {HEAD_MAX} bytes"));
                }
                match self.stage {
                    Stage::Status => self.take_status(line)?,
                    Stage::Headers if line.is_empty() => self.begin_body()?,
                    Stage::Headers => self.take_header(line)?,
                    _ if line.is_empty() => self.stage = Stage::Done,
                    _ => {}
                }
            }
            Stage::ChunkEnd if line.is_empty() => self.stage = Stage::ChunkSize,
            Stage::ChunkEnd => return wrong("a chunk is longer than it says"),
            _ => self.take_chunk_size(line)?,
        }
        Ok(end + 1)
    }

    fn take_status(&mut self, line: &[u8]) -> Result<(), HttpError> {
        let Some((version, rest)) = line.split_at_checked(9) else {
            return wrong("it has no status line");
        };
        let digits = rest.get(..3).filter(|digits| digits.iter().all(u8::is_ascii_digit));
        let ends = rest.get(3).is_none_or(|&byte| byte == b' ');
        let status = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        match (version, status) {
            (b"HTTP/1.1 " | b"HTTP/1.0 ", Some(status)) if ends && status >= OK => {
                self.status = status;
                self.closes = version == b"HTTP/1.0 ";
                self.stage = Stage::Headers;
                Ok(())
            }
            _ => wrong("its status line is not HTTP/1.1"),
        }
    }

    fn take_header(&mut self, line: &[u8]) -> Result<(), HttpError> {
        let Some(colon) = memchr(b':', line) else { return wrong("a header has no colon") };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = number(value, 10);
            match length {
                Some(length) if self.length.is_none_or(|other| other == length) => {
                    self.length = Some(length);
                }
                _ => return wrong("its length is not a number, or is given twice"),
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return wrong("its transfer encoding is not `chunked`");
            }
            self.is_chunked = true;
        } else if name.eq_ignore_ascii_case(b"content-encoding") {
            if !value.eq_ignore_ascii_case(b"identity") {
                return wrong("it is compressed, which Dyno did not ask for");
            }
        } else if name.eq_ignore_ascii_case(b"connection") {
            self.closes = value.eq_ignore_ascii_case(b"close");
        } else if name.eq_ignore_ascii_case(b"x-clickhouse-exception-code") {
            self.exception = number(value, 10).and_then(|code| u32::try_from(code).ok());
        }
        Ok(())
    }

    fn begin_body(&mut self) -> Result<(), HttpError> {
        self.stage = match (self.is_chunked, self.length) {
            (true, Some(_)) => return wrong("it is chunked and also has a length"),
            (true, None) => Stage::ChunkSize,
            (false, Some(0)) => Stage::Done,
            (false, Some(length)) => Stage::Sized(length),
            (false, None) if self.status == 204 || self.status == 304 => Stage::Done,
            (false, None) => {
                self.closes = true;
                Stage::ToEnd
            }
        };
        Ok(())
    }

    fn take_chunk_size(&mut self, line: &[u8]) -> Result<(), HttpError> {
        // What follows a semicolon are extensions, which mean nothing here.
        let size = line.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
        match number(size, 16) {
            Some(0) => self.stage = Stage::Trailers,
            Some(size) => self.stage = Stage::Chunk(size),
            None => return wrong("the size of a chunk is not a number"),
        }
        Ok(())
    }
}

/// A whole number in digits alone, small enough for a length.
fn number(text: &[u8], radix: u32) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(|&byte| char::from(byte).is_digit(radix));
    let digits = std::str::from_utf8(text).ok().filter(|_| is_number)?;
    u64::from_str_radix(digits, radix).ok().filter(|&number| number < 1 << 62)
}

#[cfg(test)]
mod tests {
    use super::super::fuzz::read;
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<(u16, &str, bool), &str>) {
        for piece in [1, 2, 7, 1 << 20] {
            match (read(text.as_bytes(), piece), &expected) {
                (Ok((answer, n_left)), Ok((status, body, closes))) => {
                    assert_eq!(answer.status, *status, "{text}");
                    assert_eq!(answer.body, body.as_bytes(), "{text}");
                    assert_eq!((answer.closes, n_left), (*closes, 0), "{text}");
                }
                (Err(error), Err(part)) => assert!(error.0.contains(part), "{error} {text}"),
                (found, expected) => {
                    panic!("{text}: {:?}, expected {expected:?}", found.map(|(a, _)| a.status));
                }
            }
        }
    }

    #[test]
    fn bodies_have_a_length_or_chunks_or_end_with_the_connection() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n1\t2\n", Ok((200, "1\t2\n", false)));
        check("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Ok((200, "", false)));
        check(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n2\r\n1\n\r\nA;x=y\r\n23456789a\n\r\n0\r\n\r\n",
            Ok((200, "1\n23456789a\n", false)),
        );
        check(
            "HTTP/1.1 500 Oh\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nwhy\r\n0\r\nA: b\r\n\r\n",
            Ok((500, "why", false)),
        );
        check("HTTP/1.0 200 OK\r\n\r\nall of it", Ok((200, "all of it", true)));
        check(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n1",
            Ok((200, "1", true)),
        );
        check("HTTP/1.1 200\nContent-Length: 1\n\n1", Ok((200, "1", false)));
    }

    #[test]
    fn hostile_answers_are_refused() {
        check("", Err("without a response"));
        check("HTTP/1.1 200 OK\r\nContent-Le", Err("in the middle"));
        check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n123", Err("in the middle"));
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n123",
            Err("in the middle"),
        );
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n123\r\n",
            Err("longer than it says"),
        );
        for size in ["", "-1", "+1", "zz", "ffffffffffffffffffff", "0x1"] {
            check(
                &format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{size}\r\n1\r\n"),
                Err("size of a chunk"),
            );
        }
        for length in ["", "-1", "1 1", "99999999999999999999", "1\r\nContent-Length: 2"] {
            check(
                &format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n1"),
                Err("its length"),
            );
        }
        check(
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n",
            Err("chunked and also has a length"),
        );
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", Err("transfer encoding"));
        check("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", Err("compressed"));
        check("HTTP/1.1 100 Continue\r\n\r\n", Err("status line"));
        check("HTTP/2 200\r\n\r\n", Err("status line"));
        check("SSH-2.0-OpenSSH_9\r\n", Err("status line"));
        check("HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", Err("no colon"));
        check(
            &format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(LINE_MAX)),
            Err("a line of its head"),
        );
        let many = "A: b\r\n".repeat(HEAD_MAX / 6 + 1);
        check(&format!("HTTP/1.1 200 OK\r\n{many}"), Err("its head is longer"));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut answer = Answer::new(10);
        answer.begin(true);
        let error = answer.read(b"HTTP/1.0 200 OK\r\n\r\n12345678901").unwrap_err();
        assert!(error.0.contains("larger than"), "{error}");
        answer.begin(true);
        let text = format!("HTTP/1.0 500 No\r\n\r\n{}", "x".repeat(2 * ERROR_MAX));
        assert_eq!(answer.read(text.as_bytes()), Ok(text.len()));
        assert_eq!((answer.body.len(), answer.is_error()), (ERROR_MAX, true));
        answer.begin(false);
        let n = answer.read(
            b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n1\n2\n3\n4\n5\n6\n7\n8\n9\n0\nrest",
        );
        assert_eq!((answer.n_lines, answer.is_done()), (10, true));
        assert_eq!(n, Ok(59));
    }
}
