//! Finds the programs of a product on this machine, or fetches them.

use std::path::Path;

use dyno_host::{Build, BuildStore, FetchOrder, Keeper};
use dyno_units::version_fits;

use crate::error::{Result, fail};
use crate::installation::{choose, missing};
use crate::{Installation, Product, ProductSpec, ServerSpec};

pub struct FetchRequest<'a> {
    /// What the version must begin with; none for the newest that a source has.
    pub version: Option<&'a str>,
    /// The only source that is asked; none for all, in their order.
    pub from: Option<&'a str>,
    pub now_unix_ms: u64,
    pub say: &'a dyn Fn(&str),
}

/// The programs that a server of this product would be started with.
/// Fails if there are none; the message says what to do.
pub fn find_programs(
    product: &Product,
    (version, from): (Option<&str>, Option<&str>),
    keeper: &Keeper,
) -> Result<Installation> {
    let ProductSpec { name, title, .. } = &product.spec;
    let spec = ServerSpec {
        version: version.map(str::to_owned),
        from: from.map(str::to_owned),
        ..ServerSpec::new(name)
    };
    let found = (product.installations)(keeper);
    choose(&found, &spec).cloned().ok_or_else(|| {
        let no_programs = format!("there are no programs of {title} on this machine");
        missing((name, title), &found, &spec, &no_programs)
    })
}

/// Fetches a product from the first source that has what is asked for.
/// Fails if none has it; the message says why of each.
pub fn fetch(
    product: &Product,
    request: &FetchRequest<'_>,
    store: &BuildStore,
    keeper: &Keeper,
) -> Result<Build> {
    let title = &product.spec.title;
    let at = request.version.map(|version| format!(" {version}")).unwrap_or_default();
    let mut specs = (product.packages)(request.version);
    if specs.is_empty() {
        return fail(format!(
            "Dyno does not know of any packages for {title}{at}; `dyno products` lists what can be fetched"
        ));
    }
    specs.retain(|spec| request.from.is_none_or(|from| spec.source == from));
    if specs.is_empty() {
        let from = request.from.unwrap_or_default();
        return fail(format!(
            "Dyno does not know of any packages for {title}{at} from {from}; leave `--from` out to look in all \
             sources"
        ));
    }
    let accept = |programs: &Path| {
        let version = (product.version_in)(programs, keeper).map_err(|error| error.message)?;
        match request.version {
            Some(wanted) if !version_fits(&version, wanted) => {
                Err(format!("its server is version {version}, not {wanted}"))
            }
            _ => Ok(version),
        }
    };
    let mut failed = Vec::new();
    for spec in &specs {
        let order = FetchOrder {
            product: &product.spec.name,
            spec,
            accept: &accept,
            now_unix_ms: request.now_unix_ms,
            say: request.say,
        };
        match store.fetch(keeper, &order) {
            Ok(build) => return Ok(build),
            Err(error) => failed.push(format!("{}: {error}", spec.source)),
        }
    }
    fail(format!("{title}{at} cannot be fetched: {}", failed.join("\n  ")))
}
