//! The fuzz target of MongoDB's protocol.

use bson::raw::RawDocument;

use super::reply;
use super::wire::{LOGIN_MAX, read_message, write_message};

/// A message is read, and its document as a reply; so is the document alone, which a changed length would hide.
pub fn mongodb(input: &[u8]) {
    if let Ok(Some(message)) = read_message(input, LOGIN_MAX) {
        assert!(message.length <= input.len());
        let _ = reply::read(message.body);
    }
    for start in [0, 21] {
        let Some(Ok(document)) = input.get(start..).map(RawDocument::from_bytes) else { continue };
        let mut bytes = Vec::new();
        write_message(1, document, &mut bytes);
        let message = read_message(&bytes, LOGIN_MAX).expect("it is a message");
        let message = message.expect("it is complete");
        assert_eq!((message.length, message.body), (bytes.len(), document));
        let _ = reply::read(message.body);
    }
}
