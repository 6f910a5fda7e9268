//! `dyno sysbench` in a build without Lua.

use crate::End;

/// None is read here.
pub(crate) const PASSWORDS: [&str; 0] = [];

pub(crate) fn run(_: &[String]) -> anyhow::Result<End> {
    anyhow::bail!(
        "this build of Dyno has no Lua (it was made without the feature `lua`); build it with the \
         default features: cargo build --release"
    )
}
