//! `dyno products`: installed programs of database servers, and those that can be fetched.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{anyhow, bail};
use dyno_database::{FetchRequest, Installation, Product, Products};
use dyno_host::{Build, BuildStore, Keeper, ListedBuild, LocalImage, SourceInfo, package_sources};
use dyno_lab::Lab;
use dyno_study::Plan;
use dyno_units::{ByteCount, Clock};

use super::{each, table};
use crate::clock::SystemClock;
use crate::{End, lab, terminal};

/// Options of `dyno products`.
#[derive(clap::Args)]
pub(crate) struct ProductsOptions {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Fetch the programs of a product into Dyno's own folder; nothing is installed
    Fetch {
        /// The product, with the beginning of a version: `postgresql@17`; without a version, the
        /// newest
        #[arg(required = true, value_name = "PRODUCT@VERSION")]
        products: Vec<String>,
        /// The only source of packages to look in: debian, maven, python
        #[arg(long, value_name = "SOURCE")]
        from: Option<String>,
    },
    /// Remove programs that were fetched
    Remove {
        /// Their names, as `dyno products` lists them, or PRODUCT@VERSION
        #[arg(value_name = "NAME", required_unless_present = "all")]
        names: Vec<String>,
        /// Remove all, and the package lists downloaded to find them
        #[arg(long, conflicts_with = "names")]
        all: bool,
    },
    /// Verify fetched programs against the checksums recorded when they were fetched
    Check {
        /// Names, as `dyno products` lists them [default: all]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
}

pub(crate) fn run(options: &ProductsOptions) -> anyhow::Result<End> {
    let store = lab::builds()?;
    match &options.action {
        None => list(&store),
        Some(Action::Fetch { products, from }) => fetch(&store, products, from.as_deref()),
        Some(Action::Remove { names, all }) => remove(&store, names, *all),
        Some(Action::Check { names }) => check(&store, names),
    }
}

/// Finds all programs that a run would find.
fn keeper(store: &BuildStore) -> anyhow::Result<Keeper> {
    Ok(lab::keeper(&lab::data_root(None)?)?.with_builds(store.clone()))
}

fn list(store: &BuildStore) -> anyhow::Result<End> {
    let keeper = keeper(store)?;
    let products = dyno_lab::products();
    let mut rows = vec![["PRODUCT", "VERSION", "FROM", "BUILDER", "PROGRAMS"].map(str::to_owned)];
    // Includes products that cannot be fetched.
    for product in products.names().into_iter().filter_map(|name| products.find(name)) {
        let installed = (product.installations)(&keeper);
        rows.extend(installed.iter().map(|one| cells(&product.spec.name, one)));
    }
    let mut parts = vec![match rows.len() {
        1 => "no database server programs were found on this machine\n".to_owned(),
        _ => table(&rows, &[]),
    }];
    let listed = store.list()?;
    parts.extend((!listed.is_empty()).then(|| fetched(store, &listed)));
    parts.extend(keeper.local_images().ok().map(|found| images(&products, &found)));
    parts.extend([by_recipe(&products, &keeper), offers(&products, &package_sources(&keeper))]);
    terminal::out(&parts.join("\n"));
    Ok(End::Good)
}

fn all(products: &Products) -> impl Iterator<Item = &Product> {
    let found = products.names().into_iter().filter_map(|name| products.find(name));
    found.filter(|product| !product.spec.offers.is_empty())
}

fn cells(product: &str, one: &Installation) -> [String; 5] {
    [
        product.to_owned(),
        one.version.split([' ', '-']).next().unwrap_or_default().to_owned(),
        one.origin.source.clone(),
        if one.origin.builder.is_empty() { "?".to_owned() } else { one.origin.builder.clone() },
        one.programs.display().to_string(),
    ]
}

fn by_recipe(products: &Products, keeper: &Keeper) -> String {
    let mut rows = vec![["BY RECIPE", "HERE", "WHAT"].map(str::to_owned)];
    let known = products.names().into_iter().filter(|name| crate::recipes::is_shipped(name));
    for product in known.filter_map(|name| products.find(name)) {
        let here = if (product.installations)(keeper).is_empty() { "no" } else { "yes" };
        let spec = &product.spec;
        rows.push([spec.name.clone(), here.to_owned(), spec.summary.clone()]);
    }
    if rows.len() == 1 { String::new() } else { table(&rows, &[]) }
}

fn fetched(store: &BuildStore, listed: &[ListedBuild]) -> String {
    let mut rows = vec![["FETCHED", "SIZE", "WHEN"].map(str::to_owned)];
    let mut total = 0;
    for one in listed {
        let (bytes, when) = match &one.build {
            Ok(build) => (build.bytes, dyno_units::utc_date_time(build.fetched_unix_ms)),
            Err(why) => {
                let bytes = dyno_host::folder_bytes(&store.folder().join(&one.name)).unwrap_or(0);
                (bytes, format!("not usable: {why}"))
            }
        };
        total += bytes;
        rows.push([one.name.clone(), ByteCount(bytes).to_string(), when]);
    }
    let folder = store.folder().display();
    table(&rows, &[1]) + &format!("{} in {folder}\n", ByteCount(total))
}

fn images(products: &Products, found: &[LocalImage]) -> String {
    let mut rows = vec![["IMAGE", "PRODUCT", "SIZE", "ID"].map(str::to_owned)];
    for image in found {
        let holds = |name: &&str| {
            products.find(name).is_some_and(|one| one.spec.image_names.contains(&image.name()))
        };
        if let Some(product) = products.names().into_iter().find(holds) {
            let LocalImage { reference, size, id, .. } = image.clone();
            rows.push([reference, product.to_owned(), size, id]);
        }
    }
    let end = "`image = \"NAME\"` in a study, or --image, starts a server from an image, whatever its name\n";
    match rows.len() {
        1 => format!("the container engine has no image with the name of a product\n{end}"),
        _ => table(&rows, &[2]) + end,
    }
}

fn offers(products: &Products, sources: &[SourceInfo]) -> String {
    let mut rows = vec![["CAN BE FETCHED", "FROM", "VERSIONS"].map(str::to_owned)];
    for product in all(products) {
        for offer in product.spec.offers {
            let source = sources.iter().find(|source| source.name == offer.source);
            let problem = source.and_then(|source| source.problem.clone());
            let problem = problem.map(|why| format!(" (not on this machine: {why})"));
            let what = format!("{}{}", offer.what, problem.unwrap_or_default());
            rows.push([product.spec.name.clone(), offer.source.to_owned(), what]);
        }
    }
    table(&rows, &[])
        + "`dyno products fetch PRODUCT@VERSION` fetches one into Dyno's own folder; nothing is installed system-wide\n"
}

fn fetch(store: &BuildStore, wanted: &[String], from: Option<&str>) -> anyhow::Result<End> {
    let keeper = keeper(store)?;
    let products = dyno_lab::products();
    let mut end = End::Good;
    let mut fetched: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for wanted in wanted {
        let (name, version) = named(wanted);
        let product = products.find(name).filter(|product| !product.spec.offers.is_empty());
        let product = product.ok_or_else(|| {
            let known: Vec<&str> = all(&products).map(|one| one.spec.name.as_str()).collect();
            let known = known.join(", ");
            crate::usage_error(anyhow!(
                "`{}` cannot be fetched; choose one of {known}",
                shown(wanted)
            ))
        })?;
        match fetch_one(product, (version, from), store, &keeper) {
            Ok(build) => {
                fetched.entry(name).or_default().insert(build.origin.builder);
            }
            Err(error) => {
                terminal::error(&error);
                end = End::Bad;
            }
        }
    }
    for builders in fetched.values() {
        if let Some(text) = several_builders(builders) {
            terminal::say(&text);
        }
    }
    Ok(end)
}

/// Warns where several builders made versions of one product.
fn several_builders(builders: &BTreeSet<String>) -> Option<String> {
    let all: Vec<&str> = builders.iter().map(String::as_str).collect();
    (all.len() > 1).then(|| {
        format!(
            "note: these versions come from several builders ({}), who compile differently: a comparison of them is also \
             one of the builders; --from names one source for all (docs/versions.md)",
            all.join(", ")
        )
    })
}

pub(crate) fn named(wanted: &str) -> (&str, Option<&str>) {
    match wanted.split_once('@') {
        Some((name, version)) if !version.is_empty() => (name, Some(version)),
        Some((name, _)) => (name, None),
        None => (wanted, None),
    }
}

/// For messages: `wanted` may be a mistyped URL, whose password may contain an `@`.
pub(crate) fn shown(wanted: &str) -> String {
    named(&dyno_units::redact_url(wanted)).0.to_owned()
}

pub(super) fn fetch_one(
    product: &Product,
    (version, from): (Option<&str>, Option<&str>),
    store: &BuildStore,
    keeper: &Keeper,
) -> anyhow::Result<Build> {
    let request = FetchRequest {
        version,
        from,
        now_unix_ms: SystemClock::start().unix_millis(),
        say: &terminal::say,
    };
    let build = dyno_database::fetch(product, &request, store, keeper)?;
    terminal::say(&format!(
        "{} {} from {} is in {} ({})",
        product.spec.title,
        build.version,
        build.origin.builder,
        build.programs.display(),
        ByteCount(build.bytes)
    ));
    Ok(build)
}

fn remove(store: &BuildStore, names: &[String], all: bool) -> anyhow::Result<End> {
    let listed = || -> anyhow::Result<Vec<String>> {
        Ok(store.list()?.into_iter().map(|one| one.name).collect())
    };
    let names = if all { listed()? } else { names.to_vec() };
    let end = each(&names, |name| {
        let name = fetched_name(store, name)?;
        Ok(format!("removed {name} ({})", ByteCount(store.remove(&name)?)))
    });
    if all {
        store.remove_lists()?;
    }
    Ok(end)
}

/// Accepts the name itself or `postgresql@17`.
fn fetched_name(store: &BuildStore, wanted: &str) -> anyhow::Result<String> {
    let (product, version) = named(wanted);
    let is_meant = |build: &Build| {
        let fits = |version| dyno_database::version_fits(&build.version, version);
        build.product == product && version.is_none_or(fits)
    };
    let listed = store.list()?;
    if listed.iter().any(|one| one.name == wanted) {
        return Ok(wanted.to_owned());
    }
    let meant = listed.iter().filter(|one| one.build.as_ref().is_ok_and(is_meant));
    let meant: Vec<&str> = meant.map(|one| one.name.as_str()).collect();
    match meant[..] {
        [only] => Ok(only.to_owned()),
        [] => Ok(wanted.to_owned()),
        _ => bail!("`{wanted}` matches {}; name one of them", meant.join(", ")),
    }
}

fn check(store: &BuildStore, names: &[String]) -> anyhow::Result<End> {
    let listed: Vec<String> = store.list()?.into_iter().map(|one| one.name).collect();
    let names = if names.is_empty() { &listed } else { names };
    if names.is_empty() {
        terminal::out("nothing was fetched");
    }
    Ok(each(names, |name| {
        store.check(name)?;
        Ok(format!("{name} is unchanged since it was fetched"))
    }))
}

/// Fetches missing versions and sources of the plan if the command line or study allows it.
pub(crate) fn provide(lab: &Lab, plan: &Plan, may_fetch: bool) -> anyhow::Result<()> {
    let mut missing: Vec<String> = Vec::new();
    let mut asked = std::collections::BTreeSet::new();
    let mut images = std::collections::BTreeSet::new();
    let databases = plan.variants.iter().flat_map(|variant| {
        let other = variant.other_database.iter();
        [&variant.database].into_iter().chain(other).map(move |database| (variant, database))
    });
    for (variant, database) in databases {
        let dyno_study::Product::Private(name) = &database.product else { continue };
        if let Some(image) = &database.image {
            if images.insert(image) && lab.keeper.image(image).is_err() {
                if !may_fetch && !database.fetch {
                    let error = lab.keeper.image(image).err().map(|error| error.0);
                    missing.extend(error.map(|why| format!("{}: {why}", variant.name)));
                    continue;
                }
                terminal::say(&format!("fetching the image {image}"));
                lab.keeper.pull_image(image)?;
            }
            continue;
        }
        let is_any = database.version.is_none() && database.from.is_none();
        let key = (name.clone(), database.version.clone(), database.from.clone());
        let Some(product) = lab.products.find(name) else { continue };
        // A server on a host has its own programs.
        let is_elsewhere = database.programs.is_some() || database.on.is_some();
        if is_elsewhere || product.spec.offers.is_empty() || !asked.insert(key) {
            continue;
        }
        let wanted = (database.version.as_deref(), database.from.as_deref());
        let Err(error) = dyno_database::find_programs(product, wanted, &lab.keeper) else {
            continue;
        };
        if may_fetch || database.fetch {
            let store = lab::builds()?;
            let from = wanted.1.filter(|from| *from != dyno_database::MACHINE);
            if wanted.1.is_some() && from.is_none() {
                bail!("{error}");
            }
            fetch_one(product, (wanted.0, from), &store, &lab.keeper)?;
        } else if !is_any {
            missing.push(format!("{}: {error}", variant.name));
        }
    }
    match missing.as_slice() {
        [] => Ok(()),
        all => Err(crate::usage_error(anyhow!("{}\nnothing was run", all.join("\n")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_follows_the_product() {
        assert_eq!(named("postgresql@17.2"), ("postgresql", Some("17.2")));
        assert_eq!(named("mariadb"), ("mariadb", None));
        assert_eq!(named("mariadb@"), ("mariadb", None));
    }

    #[test]
    fn several_builders_are_told() {
        let said = |names: &[&str]| {
            several_builders(&names.iter().map(|name| (*name).to_owned()).collect())
        };
        assert_eq!(said(&["Debian trixie"]), None);
        let text = said(&["Debian trixie", "Maven"]).unwrap();
        assert!(text.contains("(Debian trixie, Maven)"), "{text}");
    }

    #[test]
    fn what_can_be_fetched_is_said_with_what_hinders_it() {
        let sources = [
            SourceInfo { name: "debian", summary: "", problem: None },
            SourceInfo { name: "maven", summary: "", problem: Some("no `mvn`".to_owned()) },
        ];
        let text = offers(&dyno_lab::products(), &sources);
        let line = |words: [&str; 2]| {
            let is_it = |line: &&str| words.iter().all(|word| line.contains(word));
            text.lines().find(is_it).unwrap_or_else(|| panic!("{text}")).to_owned()
        };
        assert!(line(["postgresql", "maven"]).ends_with("(not on this machine: no `mvn`)"));
        assert!(!line(["mariadb", "debian"]).contains("not on this machine"));
    }
}
