//! Checks settings with the server's program, without data and without starting it.

use std::fmt::Write as _;

use dyno_host::{Keeper, Program};
use dyno_units::version_numbers;

use super::install::{Brand, MARIADB, find_install};
use super::option_file::{normal, quoted, spelled};
use crate::error::{Result, fail};
use crate::settings::{refusal, unknown_name};
use crate::{Part, ServerSpec};

const FIRST_WITH_VECTORS: [u32; 2] = [11, 7];

pub(crate) fn check_vectors(spec: &ServerSpec, keeper: &Keeper) -> Result<()> {
    let Ok(install) = find_install(spec, keeper) else { return Ok(()) };
    let brand = Brand::of(spec);
    let is_new_enough = version_numbers(&install.version)[..] >= FIRST_WITH_VECTORS[..];
    if *brand == MARIADB && is_new_enough {
        return Ok(());
    }
    fail(format!(
        "{} {} has no vector indexes; use MariaDB 11.7 or later: `dyno products fetch \
         mariadb@11.8`, with `product = \"mariadb\"` and `version = \"11.8\"` in the study",
        brand.title, install.version
    ))
}

pub(crate) fn check_settings(spec: &ServerSpec, keeper: &Keeper) -> Result<()> {
    // Missing programs are reported where they are needed.
    let Ok(install) = find_install(spec, keeper) else { return Ok(()) };
    if matches!(spec.part, Part::Node(_)) {
        match install.is_mariadb() {
            true => {
                super::galera::check(&install, spec.engine.as_deref(), &spec.settings)?;
            }
            false => super::group::check(&install, spec.engine.as_deref())?,
        }
    }
    let is_router = spec.part == Part::Router;
    if is_router {
        super::spider::check(&install)?;
    }
    let program = install.program(&install.server);
    let mut settings = spec.settings.clone();
    // A plug-in's settings are known when it has been loaded.
    let is_rocksdb = spec.engine.as_ref().is_some_and(|one| one.eq_ignore_ascii_case("rocksdb"));
    settings.retain(|name, _| !(is_rocksdb && normal(name).starts_with("rocksdb_")));
    let is_node = matches!(spec.part, Part::Node(_));
    settings.retain(|name, _| !(is_node && super::group::is_own_setting(name)));
    settings.retain(|name, _| !(is_router && normal(name).starts_with("spider_")));
    let known = known(keeper, program);
    if !known.is_empty()
        && let Some(unknown) = unknown_name(&settings, &known, without_prefix, "the server")
    {
        return fail(unknown);
    }
    let mut text = "[mysqld]\n".to_owned();
    for (name, value) in &settings {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name} = {}", quoted(&spelled(name, value)?));
    }
    let arguments = |file: &std::path::Path| {
        vec![format!("--defaults-file={}", file.display()), "--help".into(), "--verbose".into()]
    };
    let refused = |why: String| fail(format!("the server refuses its settings: {why}"));
    refusal(keeper, program, arguments, &text)?.map_or(Ok(()), refused)
}

/// The name of the variable that an option sets: `skip_`, `loose_` and the like say how.
fn without_prefix(name: &str) -> String {
    let name = normal(name);
    let bare = ["skip_", "loose_", "disable_", "enable_", "maximum_"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix));
    bare.map_or_else(|| name.clone(), str::to_owned)
}

/// Variables that the program lists, spelled as [`without_prefix`] does; none if it lists none.
fn known(keeper: &Keeper, program: Program<'_>) -> Vec<String> {
    let answer = keeper.output(program, &["--no-defaults", "--help", "--verbose"]);
    let Ok(answer) = answer else { return Vec::new() };
    let lines = answer.out.lines().skip_while(|line| !line.starts_with("-----")).skip(1);
    let table = lines.take_while(|line| !line.trim().is_empty());
    table.filter_map(|line| line.split_whitespace().next()).map(without_prefix).collect()
}
