//! Names of variables: each has a number, under which clients keep its value.

use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub(crate) u32);

impl Slot {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The names of all variables that scripts refer to.
#[derive(Clone, Debug, Default)]
pub struct Names {
    slots: BTreeMap<String, Slot>,
    names: Vec<String>,
}

impl Names {
    pub fn new() -> Names {
        Names::default()
    }

    /// The number of this name; a new one gets the next.
    pub fn slot(&mut self, name: &str) -> Slot {
        if let Some(slot) = self.slots.get(name) {
            return *slot;
        }
        let slot = Slot(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push(name.to_owned());
        self.slots.insert(name.to_owned(), slot);
        slot
    }

    pub fn find(&self, name: &str) -> Option<Slot> {
        self.slots.get(name).copied()
    }

    pub fn name(&self, slot: Slot) -> &str {
        self.names.get(slot.index()).map_or("", String::as_str)
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

pub(crate) fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

pub(crate) fn continues_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit()
}

/// Whether a variable may have this name: letters, digits, underscores and any characters beyond
/// ASCII, and no digit in front.
pub fn is_valid_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.first().is_some_and(|&byte| begins_name(byte))
        && bytes.iter().all(|&byte| continues_name(byte))
}
