//! Reads the `[database.NAME]` tables.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use dyno_units::SettingValue;

use super::like::{Inherit, resolve};
use super::money;
use super::problems::Problems;
use super::value::{self, Entry, Given, Section, entries, given};
use crate::keys::DATABASE;
use crate::nearest::did_you_mean;
use crate::vocabulary::{ProductWord, SettingRules, Vocabulary};
use crate::{Database, Diagnostic, Price, Product};

/// A database as far as it could be read.
#[derive(Clone, Debug)]
pub(super) struct NamedDatabase {
    /// Its name.
    pub(super) name: String,
    /// The database, unless something about it was wrong.
    pub(super) database: Option<Database>,
    /// Whether Dyno runs it inside its own process.
    pub(super) is_embedded: bool,
    /// Says which settings its product must not have.
    setting_rules: Option<Arc<dyn SettingRules>>,
}

impl NamedDatabase {
    /// Reports a setting that its product must not have.
    pub(super) fn check_setting(&self, problems: &mut Problems, entry: &Entry<'_>) {
        if let Some(Database { product: Product::Private(product), .. }) = &self.database {
            let place = (entry.key_span.clone(), entry.key);
            check_setting(problems, self.setting_rules.as_deref(), product, place);
        }
    }

    /// Whether it is a server that runs already.
    pub(super) fn is_url(&self) -> bool {
        matches!(&self.database, Some(Database { product: Product::Url(_), .. }))
    }
}

/// One table as it was written.
#[derive(Clone, Debug)]
struct RawDatabase {
    name: String,
    name_span: Range<usize>,
    like: Option<Given<String>>,
    product: Option<Given<String>>,
    url: Option<Given<String>>,
    version: Option<Given<String>>,
    engine: Option<Given<String>>,
    programs: Option<Given<String>>,
    settings: BTreeMap<String, Given<SettingValue>>,
    allow_existing_tables: Option<Given<bool>>,
    keep_tables: Option<Given<bool>>,
    price_per_hour: Option<Given<Price>>,
}

impl Inherit for RawDatabase {
    const KIND: &'static str = "database";

    fn name(&self) -> &str {
        &self.name
    }

    fn like(&self) -> Option<&Given<String>> {
        self.like.as_ref()
    }

    fn over(&self, parent: &RawDatabase) -> RawDatabase {
        let own = self.clone();
        // `product` and `url` answer the same question: either overrides both.
        let is_placed = self.product.is_some() || self.url.is_some();
        let parent_unless_placed =
            |inherited: &Option<Given<String>>| inherited.clone().filter(|_| !is_placed);
        let mut settings = parent.settings.clone();
        settings.extend(own.settings);
        RawDatabase {
            name: own.name,
            name_span: own.name_span,
            like: own.like,
            product: own.product.or_else(|| parent_unless_placed(&parent.product)),
            url: own.url.or_else(|| parent_unless_placed(&parent.url)),
            version: own.version.or_else(|| parent.version.clone()),
            engine: own.engine.or_else(|| parent.engine.clone()),
            programs: own.programs.or_else(|| parent.programs.clone()),
            settings,
            allow_existing_tables: own
                .allow_existing_tables
                .or_else(|| parent.allow_existing_tables.clone()),
            keep_tables: own.keep_tables.or_else(|| parent.keep_tables.clone()),
            price_per_hour: own.price_per_hour.or_else(|| parent.price_per_hour.clone()),
        }
    }
}

/// Reads all databases of the file.
pub(super) fn read(
    problems: &mut Problems,
    section: &Section<'_>,
    vocabulary: &Vocabulary,
) -> Vec<NamedDatabase> {
    let Some(entry) = section.entry("database") else {
        let message = "the study names no database";
        problems.add_missing(
            Diagnostic::new(0..0, message)
                .with_help("add a table such as [database.a] with the line: product = \"…\""),
        );
        return Vec::new();
    };
    let Some(table) = value::table(problems, &entry) else { return Vec::new() };
    let raws: Vec<RawDatabase> =
        entries(table).iter().filter_map(|entry| read_one(problems, entry)).collect();
    if table.is_empty() {
        problems.add_missing(
            Diagnostic::new(entry.key_span, "the study names no database")
                .with_label("it has no table"),
        );
    }
    let resolved = resolve(&raws, problems);
    raws.iter()
        .zip(resolved)
        .map(|(raw, resolved)| {
            let word = resolved.as_ref().and_then(|raw| product_word(raw, vocabulary));
            NamedDatabase {
                name: raw.name.clone(),
                is_embedded: word.is_some_and(|word| word.is_embedded),
                setting_rules: vocabulary.setting_rules.clone(),
                database: resolved.and_then(|raw| check(problems, raw, vocabulary)),
            }
        })
        .collect()
}

/// Reports a name that could not stand in a report, a plan or a file name.
pub(super) fn check_name(problems: &mut Problems, entry: &Entry<'_>) {
    const CHARACTERS_MAX: usize = 60;
    let is_odd = |c: char| c.is_control() || matches!(c, '·' | '/' | '\\');
    let name = entry.key;
    if name.trim() != name || name.is_empty() || name.starts_with('.') || name.contains(is_odd) {
        problems.add(
            Diagnostic::new(entry.key_span.clone(), "this name cannot be used")
                .with_label("not a valid name")
                .with_help(
                    "use letters, digits, `_`, `-`, `.` and spaces, with no dot first and no space \
                     at either end",
                ),
        );
    } else if name.chars().count() > CHARACTERS_MAX {
        let message = format!("this name is longer than {CHARACTERS_MAX} characters");
        problems.add(Diagnostic::new(entry.key_span.clone(), message).with_label("too long"));
    }
}

fn read_one(problems: &mut Problems, entry: &Entry<'_>) -> Option<RawDatabase> {
    check_name(problems, entry);
    let table = value::table(problems, entry)?;
    let title = format!("`[database.{}]`", entry.key);
    let section = Section::closed(problems, (&title, entry.key_span.clone()), table, DATABASE);
    Some(RawDatabase {
        name: entry.key.to_owned(),
        name_span: entry.key_span.clone(),
        like: section.read("like", problems, value::text),
        product: section.read("product", problems, value::text),
        url: section.read("url", problems, read_url),
        version: section.read("version", problems, value::text),
        engine: section.read("engine", problems, value::text),
        programs: section.read("programs", problems, value::text),
        settings: section
            .entry("settings")
            .map_or_else(BTreeMap::new, |entry| read_settings(problems, &entry)),
        allow_existing_tables: section.read("allow_existing_tables", problems, value::switch),
        keep_tables: section.read("keep_tables", problems, value::switch),
        price_per_hour: section.read("price_per_hour", problems, money::price),
    })
}

fn read_url(problems: &mut Problems, entry: &Entry<'_>) -> Option<String> {
    let url = value::text(problems, entry)?;
    let is_url = url.split_once("://").is_some_and(|(scheme, rest)| {
        let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+');
        !scheme.is_empty() && is_scheme && !rest.is_empty() && !url.contains(' ')
    });
    if !is_url {
        problems.add(
            Diagnostic::new(entry.span.clone(), "this is not a URL")
                .with_label("it has no scheme or no host, or contains a space")
                .with_help("write it like mysql://user@host:3306/database"),
        );
        return None;
    }
    Some(url)
}

fn read_settings(
    problems: &mut Problems,
    entry: &Entry<'_>,
) -> BTreeMap<String, Given<SettingValue>> {
    let Some(table) = value::table(problems, entry) else { return BTreeMap::new() };
    let mut settings = BTreeMap::new();
    for entry in entries(table) {
        if check_setting_name(problems, &entry) {
            settings.insert(entry.key.to_owned(), given(problems, &entry, value::setting));
        }
    }
    settings
}

/// Whether a setting's name is one; it is written into configuration files as it is.
pub(super) fn check_setting_name(problems: &mut Problems, entry: &Entry<'_>) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_name = !entry.key.is_empty() && entry.key.chars().all(is_part);
    if !is_name {
        problems.add(
            Diagnostic::new(entry.key_span.clone(), "this cannot be the name of a setting")
                .with_label("a setting's name has letters, digits, `_`, `-` and `.`"),
        );
    }
    is_name
}

fn product_word<'v>(raw: &RawDatabase, vocabulary: &'v Vocabulary) -> Option<&'v ProductWord> {
    let name = raw.product.as_ref()?.value.as_ref()?;
    vocabulary.products.iter().find(|word| word.name == *name)
}

/// Checks what a resolved table says as a whole.
fn check(problems: &mut Problems, raw: RawDatabase, vocabulary: &Vocabulary) -> Option<Database> {
    let mut engine = plain(raw.engine.clone());
    let product = match (&raw.product, &raw.url) {
        (Some(product), Some(url)) => {
            let later = if product.key_span.start < url.key_span.start { url } else { product };
            problems.add(
                Diagnostic::new(later.key_span.clone(), "`product` and `url` cannot be combined")
                    .with_label("the second of the two")
                    .with_help(
                        "`product` is a server that Dyno starts, `url` one that is already running",
                    ),
            );
            return None;
        }
        (None, None) => {
            let message = format!("`[database.{}]` names neither a product nor a URL", raw.name);
            let products = vocabulary.products.iter().map(|word| word.name.as_str());
            problems.add_missing(
                Diagnostic::new(raw.name_span, message)
                    .with_label("neither `product` nor `url`")
                    .with_help(format!("add product = \"…\", one of {}", quoted(products))),
            );
            return None;
        }
        (None, Some(url)) => {
            check_url_server(problems, &raw);
            url.value.clone().map(Product::Url)
        }
        (Some(product), None) => {
            let word = check_private(problems, &raw, product, vocabulary);
            if let (Some(word), Some(Some(name))) = (word, &mut engine)
                && let Some(known) = engine_word(word, name)
            {
                *name = known.to_owned();
            }
            word.map(|word| Product::Private(word.name.clone()))
        }
    };
    Some(Database {
        name: raw.name,
        product: product?,
        version: plain(raw.version)?,
        engine: engine?,
        programs: plain(raw.programs)?,
        settings: raw
            .settings
            .into_iter()
            .map(|(name, given)| given.value.map(|value| (name, value)))
            .collect::<Option<_>>()?,
        allow_existing_tables: plain(raw.allow_existing_tables)?.unwrap_or(false),
        keep_tables: plain(raw.keep_tables)?.unwrap_or(false),
        price_per_hour: plain(raw.price_per_hour)?,
    })
}

/// What was given, if anything; nothing at all where it could not be read.
fn plain<T>(given: Option<Given<T>>) -> Option<Option<T>> {
    match given {
        None => Some(None),
        Some(given) => given.value.map(Some),
    }
}

fn quoted<'w>(words: impl Iterator<Item = &'w str>) -> String {
    words.map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}

/// A server that runs already is taken as it is.
fn check_url_server(problems: &mut Problems, raw: &RawDatabase) {
    for (name, given) in [("engine", &raw.engine), ("programs", &raw.programs)] {
        if let Some(given) = given {
            problems.add(
                Diagnostic::new(
                    given.key_span.clone(),
                    format!("`{name}` cannot be combined with `url`"),
                )
                .with_label("only for servers that Dyno starts")
                .with_help("use `product` instead of `url`, or leave this key out"),
            );
        }
    }
    for (name, given) in &raw.settings {
        problems.add(
            Diagnostic::new(
                given.key_span.clone(),
                format!(
                    "setting `{name}` cannot be changed on database `{}`, given by `url`",
                    raw.name
                ),
            )
            .with_label("Dyno does not change a server that it did not start")
            .with_help("set it on the server yourself, or use `product` instead of `url`"),
        );
    }
}

fn check_private<'v>(
    problems: &mut Problems,
    raw: &RawDatabase,
    product: &Given<String>,
    vocabulary: &'v Vocabulary,
) -> Option<&'v ProductWord> {
    let name = product.value.as_ref()?;
    let Some(word) = product_word(raw, vocabulary) else {
        let words = vocabulary.products.iter().map(|word| word.name.as_str());
        problems.add(
            Diagnostic::new(product.span.clone(), format!("unknown product `{name}`"))
                .with_label("Dyno does not know it")
                .with_help(match vocabulary.left_out {
                    Some(why) => why.to_owned(),
                    None => did_you_mean(name, words),
                }),
        );
        return None;
    };
    for (name, given, why) in [
        (
            "allow_existing_tables",
            &raw.allow_existing_tables,
            "a server that Dyno starts has no other tables",
        ),
        (
            "keep_tables",
            &raw.keep_tables,
            "a server that Dyno starts is removed together with its tables",
        ),
    ] {
        if let Some(given) = given.as_ref().filter(|one| one.value == Some(true)) {
            let message = format!("`{name}` works only with `url`");
            problems.add(Diagnostic::new(given.key_span.clone(), message).with_label(why));
        }
    }
    if word.is_embedded {
        check_embedded(problems, raw, name);
    }
    check_engine(problems, raw, word);
    for (setting, given) in &raw.settings {
        let place = (given.key_span.clone(), setting.as_str());
        check_setting(problems, vocabulary.setting_rules.as_deref(), name, place);
    }
    Some(word)
}

/// Reports a setting that a product which Dyno starts must not have.
fn check_setting(
    problems: &mut Problems,
    rules: Option<&dyn SettingRules>,
    product: &str,
    (span, setting): (Range<usize>, &str),
) {
    if let Some(why) = rules.and_then(|rules| rules.refused(product, setting)) {
        let message = format!("setting `{setting}` cannot be set on product `{product}`");
        problems.add(
            Diagnostic::new(span, message)
                .with_label("Dyno sets it itself for a server that it starts")
                .with_help(why),
        );
    }
}

fn check_embedded(problems: &mut Problems, raw: &RawDatabase, product: &str) {
    for (name, given) in [("version", &raw.version), ("programs", &raw.programs)] {
        if let Some(given) = given {
            let message = format!("`{name}` cannot be combined with product `{product}`");
            problems.add(
                Diagnostic::new(given.key_span.clone(), message)
                    .with_label("this product is built into Dyno")
                    .with_help("leave this key out"),
            );
        }
    }
}

/// The vocabulary's spelling of an engine; servers do not distinguish case.
fn engine_word<'v>(word: &'v ProductWord, engine: &str) -> Option<&'v str> {
    let known = word.engines.iter().find(|known| known.eq_ignore_ascii_case(engine));
    known.map(String::as_str)
}

fn check_engine(problems: &mut Problems, raw: &RawDatabase, word: &ProductWord) {
    let Some(given) = &raw.engine else { return };
    let Some(engine) = &given.value else { return };
    if engine_word(word, engine).is_some() {
        return;
    }
    let problem = if word.engines.is_empty() {
        let message = format!("product `{}` has just one storage engine", word.name);
        Diagnostic::new(given.key_span.clone(), message)
            .with_label("nothing to choose")
            .with_help("leave this key out")
    } else {
        let message = format!("product `{}` has no storage engine `{engine}`", word.name);
        Diagnostic::new(given.span.clone(), message)
            .with_label("unknown storage engine")
            .with_help(did_you_mean(engine, word.engines.iter().map(String::as_str)))
    };
    problems.add(problem);
}
