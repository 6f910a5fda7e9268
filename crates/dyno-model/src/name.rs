//! Names that may be constants of the program or come from a study.

use std::borrow::Cow;

/// Borrowed if it is built in, owned if it comes from a study.
pub type Name = Cow<'static, str>;

pub const fn name(text: &'static str) -> Name {
    Cow::Borrowed(text)
}

pub fn names(texts: &[&'static str]) -> Vec<Name> {
    texts.iter().copied().map(name).collect()
}
