//! Names that may be constants of the program or come from a study.

use std::borrow::Cow;

/// The name of a workload, an option, a role or a kind of transaction: a constant where the program
/// brings it, owned where a study does.
pub type Name = Cow<'static, str>;

/// A name that is a constant.
pub const fn name(text: &'static str) -> Name {
    Cow::Borrowed(text)
}

/// Names that are constants.
pub fn names(texts: &[&'static str]) -> Vec<Name> {
    texts.iter().copied().map(name).collect()
}
