//! Frames delimit messages in a stream of bytes. A frame is `DynA`, the message's length in four bytes, lowest first,
//! and the message as JSON with a line break: relays such as `srun` may pass output on by lines. Input without `DynA`
//! is not an agent's, but that of a login script or another program.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

const MARK: &[u8; 4] = b"DynA";

const MESSAGE_MAX: usize = 16 << 20;

const SHOWN: usize = 200;

#[derive(Debug)]
pub(crate) enum FrameError {
    /// The stream has ended, between two frames.
    Closed,
    /// The stream broke off, or could not be read.
    Broken(io::Error),
    /// What came is no frame: its beginning.
    Foreign(String),
    /// A frame that is too long, or whose message is not understood; says why.
    Wrong(String),
}

pub(crate) fn write_frame(out: &mut dyn Write, message: &impl Serialize) -> io::Result<()> {
    out.write_all(&frame_of(message)?)?;
    out.flush()
}

pub(crate) fn frame_of(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(message).map_err(io::Error::other)?;
    text.push(b'\n');
    let length = u32::try_from(text.len()).ok().filter(|n| *n as usize <= MESSAGE_MAX);
    let length = length.ok_or_else(|| io::Error::other("a message is too long"))?;
    let mut frame = Vec::with_capacity(text.len() + 8);
    frame.extend_from_slice(MARK);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&text);
    Ok(frame)
}

pub(crate) fn read_frame<T: DeserializeOwned>(input: &mut dyn Read) -> Result<T, FrameError> {
    read_counted(input).map(|(message, _)| message)
}

pub(crate) fn read_counted<T: DeserializeOwned>(
    input: &mut dyn Read,
) -> Result<(T, usize), FrameError> {
    let mut head = [0; 8];
    let n = fill(input, &mut head).map_err(FrameError::Broken)?;
    if n == 0 {
        return Err(FrameError::Closed);
    }
    let common = n.min(MARK.len());
    if head[..common] != MARK[..common] {
        return Err(foreign(input, &head[..n]));
    }
    if n < head.len() {
        return Err(FrameError::Broken(io::ErrorKind::UnexpectedEof.into()));
    }
    let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
    if length > MESSAGE_MAX {
        return Err(FrameError::Wrong(format!("a message of {length} bytes is too long")));
    }
    let mut text = Vec::new();
    input.take(length as u64).read_to_end(&mut text).map_err(FrameError::Broken)?;
    if text.len() < length {
        return Err(FrameError::Broken(io::ErrorKind::UnexpectedEof.into()));
    }
    let message = serde_json::from_slice(&text)
        .map_err(|error| FrameError::Wrong(format!("a message cannot be decoded: {error}")))?;
    Ok((message, length))
}

/// The beginning of what came in place of a frame. It waits for no more than one further read.
fn foreign(input: &mut dyn Read, head: &[u8]) -> FrameError {
    let mut more = [0; SHOWN];
    let n = input.read(&mut more).unwrap_or_default();
    let all = [head, &more[..n]].concat();
    FrameError::Foreign(String::from_utf8_lossy(&all[..all.len().min(SHOWN)]).into_owned())
}

/// Reads until the buffer is full or the stream ends; returns how much was read.
fn fill(input: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut n = 0;
    while n < buffer.len() {
        match input.read(&mut buffer[n..]) {
            Ok(0) => break,
            Ok(read) => n += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        // What is foreign may be shorter than a head, and its writer may wait.
        if n < MARK.len() && buffer[..n] != MARK[..n] {
            break;
        }
    }
    Ok(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(message: &impl Serialize) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, message).expect("memory takes it");
        bytes
    }

    #[test]
    fn messages_come_out_as_they_went_in() {
        let bytes = [frame(&"one"), frame(&"two")].concat();
        let mut input = bytes.as_slice();
        assert_eq!(read_frame::<String>(&mut input).expect("it is whole"), "one");
        assert_eq!(read_frame::<String>(&mut input).expect("it is whole"), "two");
        assert!(matches!(read_frame::<String>(&mut input), Err(FrameError::Closed)));
    }

    #[test]
    fn what_is_no_frame_is_shown() {
        let check = |bytes: &[u8], expected: &str| match read_frame::<String>(&mut &bytes[..]) {
            Err(FrameError::Foreign(shown)) => assert_eq!(shown, expected),
            other => panic!("{other:?}"),
        };
        check(b"Welcome to db1!\n", "Welcome to db1!\n");
        check(b"hi", "hi");
        check(b"DYNAMO 1.0 is ready", "DYNAMO 1.0 is ready");
    }

    #[test]
    fn damaged_frames_are_refused() {
        let whole = frame(&"one");
        for n in 1..whole.len() {
            let result = read_frame::<String>(&mut &whole[..n]);
            assert!(matches!(result, Err(FrameError::Broken(_))), "{n}: {result:?}");
        }
        let wrong = |bytes: &[u8]| {
            matches!(read_frame::<String>(&mut &bytes[..]), Err(FrameError::Wrong(_)))
        };
        assert!(wrong(&frame(&7)));
        assert!(wrong(b"DynA\xff\xff\xff\xffrest"));
        // A byte more than 16 MiB, whether it comes or not.
        assert!(wrong(b"DynA\x01\x00\x00\x01rest"));
        let long = "x".repeat(MESSAGE_MAX);
        assert!(write_frame(&mut Vec::new(), &long).is_err());
    }
}
