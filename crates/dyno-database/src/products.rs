//! The registry of products: all folders, and queries over them.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use dyno_host::ThreadGroup;
use dyno_units::{Clock, Registry};

use crate::error::{Result, fail};
use crate::product::Family;
use crate::settings::GivenSettings;
use crate::{
    DataShape, DeployError, Launch, Place, Product, ProductSpec, Protocol, Router, Server,
    ServerSpec,
};

/// All product folders, in the order in which help texts list their products: one line each.
const FAMILIES: &[&Family] = &[
    &crate::sqlite::FAMILY,
    #[cfg(feature = "servers")]
    &crate::mysql::FAMILY,
    #[cfg(feature = "servers")]
    &crate::postgresql::FAMILY,
    #[cfg(feature = "servers")]
    &crate::clickhouse::FAMILY,
    #[cfg(feature = "servers")]
    &crate::mongodb::FAMILY,
    #[cfg(feature = "servers")]
    &crate::recipe::FAMILY,
    #[cfg(feature = "servers")]
    &crate::pgbouncer::FAMILY,
    &crate::haproxy::FAMILY,
    #[cfg(feature = "servers")]
    &crate::null::FAMILY,
    &crate::files::FAMILY,
];

#[derive(Clone)]
pub struct Products {
    all: Vec<Arc<Product>>,
    routers: Vec<Arc<dyn Router>>,
}

impl Products {
    pub fn built_in() -> Products {
        // Recipes are parsed, and each help text of the command line asks for the products.
        static BUILT_IN: LazyLock<Products> = LazyLock::new(|| Products {
            all: FAMILIES.iter().flat_map(|family| (family.products)()).map(Arc::new).collect(),
            routers: FAMILIES.iter().flat_map(|family| (family.routers)()).collect(),
        });
        BUILT_IN.clone()
    }

    /// All routers, in the order in which help texts list them.
    pub fn routers(&self) -> impl Iterator<Item = &dyn Router> {
        self.routers.iter().map(Arc::as_ref)
    }

    /// Fails if there is none of this name.
    pub fn router(&self, name: &str) -> Result<&dyn Router> {
        let specs: Vec<_> = self.routers().map(Router::spec).collect();
        let found = self.routers().find(|router| router.spec().name == name);
        found.ok_or_else(|| {
            let mut confused = specs.iter().flat_map(|spec| spec.confused_names);
            let known: Vec<&str> = specs.iter().map(|spec| spec.name).collect();
            DeployError::new(match confused.find(|(word, _)| *word == name) {
                Some((_, hint)) => (*hint).to_owned(),
                None => format!("there is no router `{name}`; choose {}", known.join(", ")),
            })
        })
    }

    /// Adds a product at the end; it replaces one of the same name.
    pub fn with(mut self, product: Product) -> Products {
        self.all.retain(|other| other.spec.name != product.spec.name);
        self.all.push(Arc::new(product));
        self
    }

    /// Adds the product of a recipe at the end; it replaces one of the same name.
    #[cfg(feature = "servers")]
    pub fn with_recipe(self, recipe: crate::Recipe) -> Products {
        self.with(crate::recipe::product(recipe))
    }

    /// The description of each, in the order in which help texts list them.
    pub fn specs(&self) -> impl Iterator<Item = &ProductSpec> {
        self.all.iter().map(|product| &product.spec)
    }

    pub fn names(&self) -> Vec<&str> {
        self.specs().map(|spec| spec.name.as_str()).collect()
    }

    pub fn find(&self, name: &str) -> Option<&Product> {
        self.all.iter().map(Arc::as_ref).find(|product| product.spec.name == name)
    }

    pub fn spec(&self, name: &str) -> Option<&ProductSpec> {
        self.find(name).map(|product| &product.spec)
    }

    /// Fails if there is none of this name.
    pub fn get(&self, name: &str) -> Result<&Product> {
        self.find(name).ok_or_else(|| DeployError::new(format!("there is no product `{name}`")))
    }

    /// For clients on other machines. Fails if there is no such product, or it has no protocol.
    pub fn protocol(&self, name: &str) -> Result<&'static Protocol> {
        self.get(name)?;
        let is_its =
            |family: &&&Family| (family.products)().iter().any(|product| product.spec.name == name);
        FAMILIES.iter().find(is_its).and_then(|family| family.protocol).ok_or_else(|| {
            DeployError::new(format!("clients on other machines cannot reach a server of {name}"))
        })
    }

    /// Returns when it answers or, as a primary, can be followed. Fails if that does not happen.
    pub fn start(
        &self,
        spec: &ServerSpec,
        place: &Place,
        clock: &Arc<dyn Clock>,
    ) -> Result<Box<dyn Server>> {
        self.launch(&Launch { spec, data: None, place, clock })
    }

    /// On kept data of a server of the same shape: see [`Launch`]. Fails as [`Products::start`].
    pub fn start_on(
        &self,
        data: &Path,
        spec: &ServerSpec,
        place: &Place,
        clock: &Arc<dyn Clock>,
    ) -> Result<Box<dyn Server>> {
        self.launch(&Launch { spec, data: Some(data), place, clock })
    }

    /// Starts a server; one that is a primary is ready to be followed then.
    fn launch(&self, launch: &Launch<'_>) -> Result<Box<dyn Server>> {
        let product = self.with_image(launch.spec)?;
        let server = (product.start)(launch)?;
        let crate::Part::Primary(replication) = &launch.spec.part else { return Ok(server) };
        match crate::members::lead(product, &*server, replication) {
            Ok(()) => Ok(server),
            Err(error) => {
                let log = server.log_tail(30);
                // The first error is the one to report.
                let _ = server.stop();
                Err(DeployError { log, ..error })
            }
        }
    }

    /// The product of a server, which can run from the image that is asked for.
    fn with_image(&self, spec: &ServerSpec) -> Result<&Product> {
        let product = self.get(&spec.product)?;
        let Some(image) = &spec.image else { return Ok(product) };
        if product.spec.image_names.is_empty() {
            let title = &product.spec.title;
            return fail(format!(
                "{title} cannot be started from an image ({image}); leave `image` out"
            ));
        }
        if spec.part != crate::Part::Alone || spec.open.is_some() {
            return fail(format!(
                "a server from an image ({image}) has no network, so it cannot have replicas, be in a cluster or be a \
                 shard; leave `image` out, or start one server"
            ));
        }
        Ok(product)
    }

    pub fn data_shape(&self, spec: &ServerSpec, place: &Place) -> Result<DataShape> {
        (self.get(&spec.product)?.data_shape)(spec, place)
    }

    /// Asks the server's programs. Fails with the server's message and the nearest known name.
    pub fn check_settings(&self, spec: &ServerSpec, place: &Place) -> Result<()> {
        match self.find(&spec.product) {
            Some(product)
                if !spec.settings.is_empty()
                    || matches!(spec.part, crate::Part::Node(_) | crate::Part::Router) =>
            {
                let refusal = || (product.settings_refusal)(&spec.settings).map_or(Ok(()), fail);
                product.check_settings.map_or_else(refusal, |check| check(spec, place))
            }
            _ => Ok(()),
        }
    }

    /// Fails, with advice, if the programs have no vectors with indexes.
    pub fn check_vectors(&self, spec: &ServerSpec, place: &Place) -> Result<()> {
        self.find(&spec.product).map_or(Ok(()), |product| (product.check_vectors)(spec, place))
    }

    /// Why a private server would refuse these settings, as far as known without its programs.
    pub fn settings_refusal(&self, product: &str, settings: &GivenSettings) -> Option<String> {
        (self.find(product)?.settings_refusal)(settings)
    }

    /// Why a private server of this product must not have this setting; none if it may.
    pub fn refused_setting(&self, product: &str, name: &str) -> Option<String> {
        (self.find(product)?.refused_setting)(name)
    }

    pub fn says_disk_full(&self, line: &str) -> bool {
        self.specs().flat_map(|spec| &spec.disk_full).any(|words| line.contains(words))
    }

    /// Whether it is a refusal that will happen again.
    pub fn says_refused(&self, line: &str) -> bool {
        self.specs().flat_map(|spec| &spec.refusals).any(|words| line.contains(words))
    }
}

impl fmt::Debug for Products {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.names()).finish()
    }
}

pub fn protocols() -> impl Iterator<Item = &'static Protocol> {
    FAMILIES.iter().filter_map(|family| family.protocol)
}

/// Names of all products' probes: each can be turned off.
pub fn probe_names() -> Vec<&'static str> {
    let own = FAMILIES.iter().flat_map(|family| family.probes).copied();
    own.chain([crate::probe::DEBT]).collect()
}

/// The readings of all server probes, in the order of relevance.
pub fn server_readings() -> Registry {
    let own = crate::probe::DEBT_READINGS.iter().chain(crate::part::READINGS);
    let products = FAMILIES.iter().flat_map(|family| family.readings).flat_map(|table| table());
    Registry::new(own.cloned().chain(products))
}

/// What a thread of any server that Dyno knows is for, by the title of its process and its name.
pub fn thread_group(process: &str, thread: &str) -> Option<ThreadGroup> {
    let all = FAMILIES.iter().filter_map(|family| family.protocol);
    let groups = all.filter_map(|protocol| protocol.thread_group);
    groups.filter_map(|group| group(process, thread)).next()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use dyno_workload::{Dialect, Target};

    use super::*;
    use crate::dialects;

    #[test]
    fn every_dialect_and_scheme_belongs_to_one_folder() {
        for dialect in Dialect::ALL {
            let of_it = dialects::ALL.iter().filter(|sql| sql.dialect == dialect);
            assert_eq!(of_it.count(), 1, "{dialect:?}");
        }
        let schemes: Vec<&str> =
            protocols().flat_map(|protocol| protocol.schemes).copied().collect();
        assert_eq!(schemes.iter().collect::<BTreeSet<_>>().len(), schemes.len(), "{schemes:?}");
        for spec in protocols() {
            assert!(spec.schemes.contains(&spec.name), "{}", spec.name);
            if let Some(dialect) = spec.dialect {
                assert_eq!(dialects::sql_of(dialect).dialect, dialect);
            }
            assert_eq!(spec.dialect.is_some(), spec.target() == Target::Sql, "{}", spec.name);
            assert!(crate::Endpoint::from_url(spec.example).is_ok(), "{}", spec.example);
        }
    }

    #[test]
    fn a_product_can_be_added_at_run_time() {
        let built_in = Products::built_in();
        let n = built_in.names().len();
        assert_eq!(built_in.names().iter().collect::<BTreeSet<_>>().len(), n);
        let name = built_in.names()[0].to_owned();
        for (name, expected) in [(name.as_str(), n), ("made", n + 1)] {
            let made =
                Product::new(ProductSpec::new(name, "Made", "a test", None), |_| fail("a test"));
            let all = built_in.clone().with(made);
            assert_eq!(all.names().len(), expected);
            assert_eq!(all.spec(name).expect("it is there").title, "Made");
            assert_eq!(all.names().last(), Some(&name));
        }
        assert!(built_in.find("made").is_none());
        let error = built_in.get("made").err().expect("there is none");
        assert_eq!(error.message, "there is no product `made`");
    }

    #[test]
    fn what_servers_say_is_known_by_parts_of_it() {
        let products = Products::built_in();
        assert!(products.says_disk_full("populating t: The table 't' is full (1114)"));
        assert!(products.says_disk_full("database or disk is full (SQLITE_FULL)"));
        assert!(!products.says_disk_full("disk usage is fine"));
        assert!(products.says_refused("[ERROR] mariadbd: unknown variable 'no_such=1'"));
        assert!(!products.says_refused("ready for connections"));
    }
}
