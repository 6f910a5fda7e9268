//! A recipe as a product.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_host::Keeper;

use super::places::fill;
use super::private;
use super::text::{ListensOn, Recipe};
use crate::data::build_of;
use crate::error::{Result, fail};
use crate::installation::{builder_in, choose, named_folder, on_machine};
use crate::{
    DataShape, DeployError, Installation, Launch, Part, Place, Product, ProductSpec, Server,
    ServerSpec,
};

pub(super) struct FromRecipe {
    recipe: Recipe,
    /// The title, for as long as this process lives: messages of servers that outlive the product have it.
    title: &'static str,
}

pub(crate) fn product(recipe: Recipe) -> Product {
    let title: &'static str = Box::leak(recipe.text.title.clone().into_boxed_str());
    let tried = match &recipe.text.tried {
        Some(with) => format!("tested with {with}"),
        None => "not tested".to_owned(),
    };
    let open = match recipe.text.listens_on {
        ListensOn::PortWithoutPassword => "; every user of this machine can log in",
        ListensOn::Socket | ListensOn::Port => "",
    };
    let server = if title.ends_with("Server") { "" } else { " server" };
    let summary = format!("a private {title}{server}, described by a recipe ({tried}{open})");
    let spec = ProductSpec::new(&recipe.name, title, &summary, recipe.protocol.dialect);
    let one = Arc::new(FromRecipe { recipe, title });
    let [starting, shaping, given, here, asked] = std::array::from_fn(|_| Arc::clone(&one));
    Product {
        data_shape: Box::new(move |spec, place| shaping.data_shape(spec, place)),
        settings_refusal: Box::new(move |settings| {
            private::spelled(&given.recipe, title, settings).err().map(|error| error.message)
        }),
        installations: Box::new(move |keeper| here.in_folders(&here.folders(keeper), keeper)),
        version_in: Box::new(move |programs, keeper| asked.version_in(programs, keeper)),
        ..Product::new(spec, move |launch| starting.start(launch))
    }
}

impl FromRecipe {
    fn folders(&self, keeper: &Keeper) -> Vec<PathBuf> {
        let program = keeper.find_program(&self.recipe.text.program, &self.recipe.text.folders);
        let in_path = program.as_deref().and_then(Path::parent).map(Path::to_owned);
        in_path.into_iter().chain(self.recipe.text.folders.iter().cloned()).collect()
    }

    fn in_folders(&self, folders: &[PathBuf], keeper: &Keeper) -> Vec<Installation> {
        let version_in = |folder: &Path| self.version_in(folder, keeper).ok();
        let builder = |_: &Path, version: &str| builder_in(version);
        on_machine(folders, &self.recipe.text.program, version_in, builder)
    }

    /// The program to start a server with: the one in the folder of the spec, else the best that fits.
    fn find(&self, spec: &ServerSpec, keeper: &Keeper) -> Result<Installation> {
        let folders = match named_folder(spec)? {
            Some(folder) => vec![folder.to_owned(), folder.join("bin"), folder.join("sbin")],
            None => self.folders(keeper),
        };
        let found = self.in_folders(&folders, keeper);
        let name = &self.recipe.text.program;
        if let Some(chosen) = choose(&found, spec) {
            return Ok(chosen.clone());
        }
        let wanted =
            spec.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
        let here: Vec<&str> = found.iter().map(|one| one.version.as_str()).collect();
        let what = match here.as_slice() {
            [] => {
                format!("its program `{name}` is neither in PATH nor in the folders of its recipe")
            }
            here => format!("here is {}", here.join(", ")),
        };
        fail(format!(
            "{}{wanted} is not on this machine: {what}. Install it, or name its folder with `programs`; Dyno \
             cannot fetch it",
            self.title
        ))
    }

    fn start(&self, launch: &Launch<'_>) -> Result<Box<dyn Server>> {
        if !matches!(launch.spec.part, Part::Alone) {
            return fail(format!(
                "{} is described by a recipe, and Dyno starts such products alone: without replicas, cluster \
                 or shards",
                self.title
            ));
        }
        if let Some(engine) = &launch.spec.engine {
            return fail(format!(
                "{} is described by a recipe, which knows no engine `{engine}`; leave `engine` out",
                self.title
            ));
        }
        let installation = self.find(launch.spec, launch.place.keeper())?;
        private::start(&self.recipe, self.title, installation, launch)
    }

    fn data_shape(&self, spec: &ServerSpec, place: &Place) -> Result<DataShape> {
        let installation = self.find(spec, place.keeper())?;
        let program = installation.programs.join(&self.recipe.text.program);
        let settings = private::spelled(&self.recipe, self.title, &spec.settings)?;
        if let Some((name, _)) = settings.iter().find(|(_, value)| value.contains('/')) {
            return fail(format!(
                "the setting `{name}` may point outside the data folder, so a copy of the folder could be \
                 incomplete"
            ));
        }
        Ok(DataShape {
            product: spec.product.clone(),
            build: format!("{}, recipe {}", build_of(&program)?, self.recipe.digest),
            version: installation.version,
            engine: None,
            settings,
        })
    }

    fn version_in(&self, programs: &Path, keeper: &Keeper) -> Result<String> {
        let program = programs.join(&self.recipe.text.program);
        let failed = |why: String| DeployError::new(format!("{}: {why}", program.display()));
        if !program.is_file() {
            return Err(failed("there is no such program".to_owned()));
        }
        let text = &self.recipe.text;
        // Some programs write into a folder of their user's, even when they only tell their version.
        let scratch = if text.environment.is_empty() { None } else { Some(Scratch::make(keeper)?) };
        let path = scratch.as_ref().map_or_else(|| "/".to_owned(), Scratch::path);
        let folders = ["folder", "data", "run", "tmp"].map(|name| (name, path.clone()));
        let folders = BTreeMap::from(folders);
        let environment = text.environment.iter();
        let environment =
            environment.map(|(name, value)| format!("{name}={}", fill(value, &folders)));
        let mut arguments: Vec<String> = environment.collect();
        arguments.push(program.display().to_string());
        arguments.extend(text.version.iter().cloned());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let said = keeper.ask(Path::new("/usr/bin/env"), &arguments)?;
        if let Some(name) = text.version_has.iter().find(|name| !said.contains(*name)) {
            return Err(failed(format!("it does not name {name} in its version: {said}")));
        }
        version_within(&said).ok_or_else(|| failed(format!("it does not tell its version: {said}")))
    }
}

/// A folder for a program that is only asked something; it is removed when this is dropped.
struct Scratch<'a> {
    keeper: &'a Keeper,
    folder: PathBuf,
}

impl Scratch<'_> {
    fn make(keeper: &Keeper) -> Result<Scratch<'_>> {
        let folder = keeper.make_folder("version")?;
        let scratch = Scratch { keeper, folder };
        keeper.make_inner(&scratch.folder, SCRATCH)?;
        Ok(scratch)
    }

    fn path(&self) -> String {
        self.folder.join(SCRATCH).display().to_string()
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        // What remains is found and removed by the next run.
        let _ = self.keeper.remove_folder(&self.folder);
    }
}

/// The part of such a folder that the program may write to.
const SCRATCH: &str = "tmp";

/// The first word with a digit and a full stop in what a program says of itself: `1.43.2`.
fn version_within(text: &str) -> Option<String> {
    let is_version = |word: &&str| {
        let digits = word.trim_start_matches(['v', 'V', '(', '"']);
        digits.starts_with(|c: char| c.is_ascii_digit()) && digits.contains('.')
    };
    let word = text.split([' ', '\t', '\n', ',']).find(is_version)?;
    Some(word.trim_start_matches(['v', 'V', '(', '"']).trim_end_matches([')', '"', '.']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(version_within(text).as_deref(), expected, "{text}");
        };
        check("dolt version 1.43.2", Some("1.43.2"));
        check("mysqld  Ver 8.0.36-28 for Linux on x86_64 (Percona Server)", Some("8.0.36-28"));
        check("Release Version: v8.1.0\nEdition: Community", Some("8.1.0"));
        check("built 2024", None);
    }
}
