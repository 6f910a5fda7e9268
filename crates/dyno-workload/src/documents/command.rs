//! Commands to a store of documents, as text.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use DocumentCommand::{Find, Index, Insert, Make, Range, Sums, Update};

/// A document's fields, in order: the key, made by the product from a whole number; an indexed number; the number of
/// updates; the content.
pub const FIELDS: [&str; 4] = ["_id", "number", "version", "content"];

pub const INDEXED: &str = FIELDS[1];

/// An operation on a collection, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentCommand {
    Make(String),
    Index(String),
    /// Finds the document with this key. Its value: the key.
    Find(String),
    /// Inserts a document. Its values: the key, the number, the content, which has so many bytes; the version is 0.
    Insert(String, u64),
    /// New content of this many bytes, and 1 more in the version. Values: key, content.
    Update(String, u64),
    /// At most this many by number, in any order. Values: first number, first after the range.
    Range(String, u64),
    /// One row: number of documents, sum of versions, sum of numbers. They may be of different moments, as each is
    /// compared only with clients' counts.
    Sums(String),
}

impl fmt::Display for DocumentCommand {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Make(name) => write!(out, "make collection={name}"),
            Index(name) => write!(out, "index collection={name}"),
            Find(name) => write!(out, "find collection={name} ?"),
            Insert(name, bytes) => write!(out, "insert collection={name} content={bytes} ? ? ?"),
            Update(name, bytes) => write!(out, "update collection={name} content={bytes} ? ?"),
            Range(name, limit) => write!(out, "range collection={name} limit={limit} ? ?"),
            Sums(name) => write!(out, "sums collection={name}"),
        }
    }
}

impl FromStr for DocumentCommand {
    type Err = String;

    fn from_str(text: &str) -> Result<DocumentCommand, String> {
        let refuse = || format!("`{text}` is not an operation on documents");
        let pairs: BTreeMap<&str, &str> =
            text.split(' ').filter_map(|pair| pair.split_once('=')).collect();
        let number = |name: &str| pairs.get(name).and_then(|number| number.parse().ok());
        let c = || pairs.get("collection").map_or(String::new(), |name| (*name).to_owned());
        let sized = number("content").map(|n| [Insert(c(), n), Update(c(), n)]);
        let limited = number("limit").map(|n| Range(c(), n));
        let mut all = [Make(c()), Index(c()), Find(c()), Sums(c())]
            .into_iter()
            .chain(sized.into_iter().flatten())
            .chain(limited);
        // Nothing but what is written above is read.
        all.find(|command| command.to_string() == text).ok_or_else(refuse)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_command_is_read_as_it_is_written(name in "[a-z_][a-z0-9_]{0,20}", n in any::<u64>()) {
            for command in [
                DocumentCommand::Make(name.clone()),
                DocumentCommand::Index(name.clone()),
                DocumentCommand::Find(name.clone()),
                DocumentCommand::Insert(name.clone(), n),
                DocumentCommand::Update(name.clone(), n),
                DocumentCommand::Range(name.clone(), n),
                DocumentCommand::Sums(name.clone()),
            ] {
                prop_assert_eq!(command.to_string().parse(), Ok(command));
            }
        }
    }

    #[test]
    fn what_is_no_operation_is_refused() {
        for text in [
            "",
            "SELECT 1",
            "find",
            "find collection=a",
            "find collection=a ? ?",
            "make collection=a collection=b",
            "insert collection=a content=x ? ? ?",
            "range limit=1 collection=a ? ?",
            "ROLLBACK",
        ] {
            assert!(text.parse::<DocumentCommand>().is_err(), "{text}");
        }
    }
}
