//! Checks settings with the server's program, without data and without starting it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use dyno_host::{Image, Keeper, Program};

use super::programs;
use super::settings::spelled;
use crate::error::{Result, fail};
use crate::settings::{refusal, unknown_name};
use crate::{Part, ServerSpec};

/// Whether the extension pgvector lies beside the server's programs.
pub(crate) fn check_vectors(spec: &ServerSpec, keeper: &Keeper) -> Result<()> {
    let Ok(found) = programs::find(spec, keeper) else { return Ok(()) };
    if let Some(image) = &found.image {
        return check_vectors_in(image, &extension_folders(&found.programs), keeper);
    }
    if has_extension(&found.programs, "vector") {
        return Ok(());
    }
    let version = found.version.split_whitespace().next().unwrap_or_default();
    fail(format!(
        "PostgreSQL {version} in {} has no extension `vector` (pgvector); install it (Debian, Ubuntu: package \
         `postgresql-{}-pgvector`), or fetch a server that has it: `dyno products fetch postgresql@16.2 --from \
         python`, with `version = \"16.2\"` and `from = \"python\"` in the study",
        found.programs.display(),
        found.major(),
    ))
}

/// True as well if unknown: a server with another layout reports it itself.
pub(super) fn has_extension(programs: &Path, name: &str) -> bool {
    let folders: Vec<PathBuf> =
        extension_folders(programs).into_iter().filter(|folder| folder.is_dir()).collect();
    let file = format!("{name}.control");
    folders.is_empty() || folders.iter().any(|folder| folder.join(&file).is_file())
}

fn check_vectors_in(image: &Image, folders: &[PathBuf], keeper: &Keeper) -> Result<()> {
    let files = folders.iter().map(|folder| folder.join("vector.control").display().to_string());
    if !keeper.paths_in(image, &files.collect::<Vec<String>>())?.is_empty() {
        return Ok(());
    }
    fail(format!(
        "PostgreSQL in the image {} has no extension `vector` (pgvector); use an image that has it, such as \
         pgvector/pgvector:pg17",
        image.reference()
    ))
}

/// `share` beside the server's `bin`, or, in Debian, `/usr/share/postgresql/17/extension` for
/// `/usr/lib/postgresql/17/bin`.
fn extension_folders(programs: &Path) -> Vec<PathBuf> {
    let Some(base) = programs.parent() else { return Vec::new() };
    let mut all = vec![base.join("share/postgresql/extension"), base.join("share/extension")];
    if let (Some(version), Some(root)) = (base.file_name(), base.ancestors().nth(3)) {
        all.push(root.join("share/postgresql").join(version).join("extension"));
    }
    all
}

pub(crate) fn check_settings(spec: &ServerSpec, keeper: &Keeper) -> Result<()> {
    // Missing programs are reported where they are needed.
    let Ok(found) = programs::find(spec, keeper) else { return Ok(()) };
    if spec.part == Part::Router {
        super::shards::check(&found)?;
    }
    let path = found.programs.join("postgres");
    let program = found.program(&path);
    let mut settings = spec.settings.clone();
    // Names with a dot belong to extensions; any server accepts them.
    settings.retain(|name, _| !name.contains('.'));
    let known = known(keeper, program);
    if !known.is_empty()
        && let Some(unknown) =
            unknown_name(&settings, &known, |name| name.to_ascii_lowercase(), "PostgreSQL")
    {
        return fail(unknown);
    }
    let mut text = String::new();
    for (name, value) in &settings {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name} = {}", spelled(name, value)?);
    }
    let arguments = |file: &Path| {
        let folder = file.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
        let file = format!("--config-file={}", file.display());
        // The first words let it print one setting and end: nothing is started.
        vec!["-C".to_owned(), "data_directory".to_owned(), file, "-D".to_owned(), folder]
    };
    let refused = |why: String| fail(format!("PostgreSQL refuses its settings: {why}"));
    refusal(keeper, program, arguments, &text)?.map_or(Ok(()), refused)
}

/// The settings that the program lists; none if it does not.
fn known(keeper: &Keeper, program: Program<'_>) -> Vec<String> {
    let Ok(answer) = keeper.output(program, &["--describe-config"]) else { return Vec::new() };
    let names = answer.out.lines().filter_map(|line| line.split('\t').next());
    let listed: Vec<String> = names.map(str::to_ascii_lowercase).collect();
    if listed.is_empty() {
        listed
    } else {
        listed.into_iter().chain(UNLISTED.map(str::to_owned)).collect()
    }
}

/// Settings that the list leaves out.
const UNLISTED: [&str; 6] = [
    "allow_system_table_mods",
    "backtrace_functions",
    "ignore_system_indexes",
    "jit_debugging_support",
    "jit_profiling_support",
    "zero_damaged_pages",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_looked_for_beside_the_programs() {
        let check = |programs: &str, expected: &str| {
            let found = extension_folders(Path::new(programs));
            assert!(found.iter().any(|folder| folder == Path::new(expected)), "{found:?}");
        };
        check("/usr/lib/postgresql/17/bin", "/usr/share/postgresql/17/extension");
        check("/b/root/usr/lib/postgresql/17/bin", "/b/root/usr/share/postgresql/17/extension");
        check("/b/pginstall/bin", "/b/pginstall/share/postgresql/extension");
        assert_eq!(extension_folders(Path::new("/")), Vec::<PathBuf>::new());
    }
}
