//! The fuzz target of the servers that answer at once.

use super::{Conversation, Wire};

/// Whatever a client sends, in either protocol: nothing is taken twice, and nothing is lost.
pub fn null(input: &[u8]) {
    for wire in [Wire::MySql, Wire::PostgreSql] {
        for piece in [input.len().max(1), 7] {
            let mut out = Vec::new();
            let mut conversation = Conversation::begin(wire, &mut out);
            let mut pending = Vec::new();
            for part in input.chunks(piece) {
                pending.extend_from_slice(part);
                let taken = conversation.take(&pending, &mut out);
                assert!(taken.n_bytes <= pending.len());
                pending.drain(..taken.n_bytes);
                if taken.is_over {
                    break;
                }
                assert_eq!(conversation.take(&pending, &mut out).n_bytes, 0);
            }
        }
    }
}
