//! The words that a study may use.

use std::fmt;
use std::sync::Arc;

use dyno_database::{Endpoint, ProductSpec, Products, RouterSpec};
use dyno_model::{DefinitionProblem, StepRequest, WorkloadStep};
use dyno_study::{
    Options, PlannedWorkload, Product, ProductWord, RouterWord, SettingRules, Vocabulary,
    WorkloadRules, WorkloadWord,
};
use dyno_units::Seed;
use dyno_workload::catalog::{Catalog, WorkloadSpec};
use dyno_workload::{Dialect, Statement, StatementClass, Target, Workload};

pub(crate) fn vocabulary() -> Vocabulary {
    vocabulary_of(&dyno_lab::products(), &Catalog::built_in())
}

/// Probes that can be turned off.
pub(crate) fn probes() -> Vec<&'static str> {
    dyno_host::HOST_PROBES.into_iter().chain(dyno_database::probe_names()).collect()
}

pub(crate) fn vocabulary_of(products: &Products, catalog: &Catalog) -> Vocabulary {
    let product = |spec: &ProductSpec| {
        let product = products.find(&spec.name);
        let cluster = product.and_then(|product| product.clustering);
        ProductWord {
            has_images: !spec.image_names.is_empty(),
            replicates: product.is_some_and(|product| product.replicating.is_some()),
            cluster: cluster.map(|cluster| cluster.kind().to_owned()),
            has_shards: product.is_some_and(|product| product.sharding.is_some()),
            can_be_open: spec.can_be_open,
            name: spec.name.clone(),
            summary: spec.summary.clone(),
            engines: spec.engines.clone(),
            is_embedded: spec.is_embedded,
            has_socket: spec.has_socket,
            confused_names: spec.confused_names.clone(),
        }
    };
    let workloads = catalog.workloads().iter().map(|workload| WorkloadWord {
        name: workload.name.clone().into_owned(),
        summary: workload.summary.clone().into_owned(),
        options: workload.options.clone(),
        rules: Some(Arc::new(Rules { workload: workload.clone(), products: products.clone() })),
    });
    Vocabulary {
        products: products.specs().map(product).collect(),
        routers: products.routers().map(|router| router_word(router.spec())).collect(),
        left_out: dyno_database::LEFT_OUT,
        filesystems: dyno_host::filesystems().map(|(name, _)| name.to_owned()).collect(),
        sources: std::iter::once(dyno_database::MACHINE)
            .chain(dyno_host::package_source_names())
            .map(str::to_owned)
            .collect(),
        probes: probes().into_iter().map(str::to_owned).collect(),
        workloads: workloads.collect(),
        setting_rules: Some(Arc::new(Settings(products.clone()))),
    }
}

fn router_word(router: &RouterSpec) -> RouterWord {
    let confused = router.confused_names.iter();
    RouterWord {
        name: router.name.to_owned(),
        member: router.member.to_owned(),
        fronts: router.fronts.iter().map(|&product| product.to_owned()).collect(),
        options: router.options.clone(),
        confused_names: confused.map(|&(name, hint)| (name.to_owned(), hint.to_owned())).collect(),
    }
}

#[derive(Debug)]
struct Settings(Products);

impl SettingRules for Settings {
    fn refused(&self, product: &str, setting: &str) -> Option<String> {
        self.0.refused_setting(product, setting)
    }

    fn refused_of_kernel(&self, setting: &str, value: &str) -> Option<String> {
        dyno_host::kernel_setting_problem(setting, value)
    }
}

#[derive(Clone)]
struct Rules {
    workload: WorkloadSpec,
    products: Products,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("workload", &self.workload).finish_non_exhaustive()
    }
}

impl Rules {
    /// The answers do not depend on the seed.
    fn planned(&self, options: &Options, asked: StepRequest) -> Result<Arc<dyn Workload>, String> {
        self.workload.plan(options, asked, Seed(0)).map_err(|error| error.to_string())
    }

    fn check_target(&self, product: &Product) -> Result<(), String> {
        let name = &self.workload.name;
        if self.workload.target == Target::Anything {
            let is_simulated = matches!(product, Product::Private(product)
                if self.products.spec(product).is_some_and(|spec| spec.is_simulated));
            return match is_simulated {
                true => Err("a simulated server has nothing to observe".to_owned()),
                false => Ok(()),
            };
        }
        let (offered, product) = match product {
            Product::Url(url) => {
                let protocol = self.endpoint(url).ok().map(|endpoint| endpoint.protocol);
                let target = protocol.map_or(self.workload.target, |it| it.target());
                (target, "a server with a URL")
            }
            Product::Private(product) => match self.products.spec(product) {
                Some(spec) if !spec.is_simulated => (spec.target, product.as_str()),
                _ => return Ok(()),
            },
        };
        match (self.workload.target, offered) {
            (Target::Files, Target::Sql) => Err(format!(
                "`{name}` works on files, but {product} is a database; use the product `files`"
            )),
            (Target::Sql, Target::Files) => Err(format!(
                "`{name}` needs a database, but `{product}` is not one; choose a database, or one \
                 of the workloads file-io and fsync"
            )),
            (Target::Files, Target::Documents) => Err(format!(
                "`{name}` works on files, but {product} stores documents; use the product `files`"
            )),
            (Target::Documents, Target::Sql | Target::Files) => Err(format!(
                "`{name}` works on documents, but {product} stores none; choose {}",
                self.of_documents()
            )),
            (Target::Sql, Target::Documents) => Err(format!(
                "`{name}` sends SQL, but {product} stores documents and accepts none; choose a \
                 database with \
                 SQL, or the workload `documents`"
            )),
            (_, Target::Anything) => Err(format!(
                "`{name}` needs something to work on, but {product} is a machine without a \
                 server; choose a database"
            )),
            _ => Ok(()),
        }
    }

    fn of_documents(&self) -> String {
        let products = self.products.specs().filter(|spec| spec.target == Target::Documents);
        let products = products.map(|spec| format!("the product `{}`", spec.name));
        let protocols =
            dyno_database::protocols().filter(|spec| spec.target() == Target::Documents);
        let urls = protocols.map(|spec| format!("a URL like {}", spec.example));
        products.chain(urls).collect::<Vec<_>>().join(" or ")
    }

    /// An observed server needs no catalog.
    fn endpoint(&self, url: &str) -> Result<Endpoint, String> {
        let endpoint = match self.workload.target {
            Target::Anything => Endpoint::from_url_of_server(url),
            Target::Sql | Target::Files | Target::Documents => Endpoint::from_url(url),
        };
        endpoint.map_err(|error| error.0)
    }

    /// None if it is unknown before the server runs.
    fn dialect(&self, product: &Product) -> Option<Dialect> {
        match product {
            Product::Private(name) => self.products.spec(name)?.dialect,
            Product::Url(url) => self.endpoint(url).ok()?.protocol.dialect,
        }
    }
}

impl WorkloadRules for Rules {
    fn plan(
        &self,
        options: &Options,
        request: StepRequest,
    ) -> Result<Arc<dyn PlannedWorkload>, String> {
        let workload = self.planned(options, request)?;
        let (rules, options) = (self.clone(), options.clone());
        Ok(Arc::new(Planned { rules, options, request, workload }))
    }

    fn problems(&self, options: &Options) -> Vec<DefinitionProblem> {
        self.workload.problems(options)
    }

    fn check_url(&self, url: &str) -> Result<(), String> {
        // What the environment holds is known when the study runs.
        if !url.contains("${") {
            self.endpoint(url)?;
        }
        Ok(())
    }
}

/// A workload with its options.
struct Planned {
    rules: Rules,
    options: Options,
    request: StepRequest,
    workload: Arc<dyn Workload>,
}

impl PlannedWorkload for Planned {
    fn steps(&self) -> &[WorkloadStep] {
        self.workload.steps()
    }

    fn check_load(&self, is_open: bool) -> Result<(), String> {
        self.workload.check_load(is_open)
    }

    fn check_apart(&self) -> Result<(), String> {
        self.workload.check_apart()
    }

    fn check_reads(&self, product: &Product) -> Result<(), String> {
        let Some(dialect) = self.rules.dialect(product) else { return Ok(()) };
        let mut statements = self.workload.statements(dialect);
        if statements.is_empty() {
            // Statements sent as text, or prepared each time, are the same as those prepared once.
            let mut options = self.options.clone();
            options.insert("protocol".to_owned(), "prepared".to_owned());
            let prepared = self.rules.planned(&options, self.request);
            statements = prepared.map(|one| one.statements(dialect)).unwrap_or_default();
        }
        let is_write = |one: &Statement| one.class == StatementClass::Write;
        if !statements.is_empty() && !statements.iter().any(is_write) {
            return Ok(());
        }
        Err(match statements.is_empty() {
            true => "what its statements do is known only once they are sent",
            false => "it writes, and replicas are read-only",
        }
        .to_owned())
    }

    fn check(&self, product: &Product) -> Result<(), String> {
        let Rules { workload: spec, products } = &self.rules;
        self.rules.check_target(product)?;
        // Simulated, or a URL that is partly given by the environment.
        let Some(dialect) = self.rules.dialect(product) else { return Ok(()) };
        if self.workload.outline().needs_rows
            && let Product::Private(name) = product
            && products.spec(name).is_some_and(|product| !product.stores_data)
        {
            return Err(format!(
                "`{}` works on rows that it has read, but `{name}` stores none; choose \
                 another workload or database",
                spec.name
            ));
        }
        self.workload.check(dialect)
    }
}

#[cfg(test)]
mod tests {
    use super::vocabulary;

    /// Lines and messages.
    fn wrong(source: &str) -> Vec<(usize, String)> {
        let Err(found) = dyno_study::parse(source, &vocabulary()) else { return Vec::new() };
        let line = |at: usize| source[..at].lines().count();
        found.into_iter().map(|one| (line(one.span.start + 1), one.label)).collect()
    }

    #[test]
    fn a_script_that_only_reads_may_be_sent_to_replicas() {
        let check = |workload: &str, expected: &str| {
            let source = format!(
                "title = 'x'\n[database.a]\nproduct = 'postgresql'\nreplicas = 1\nreads_on = 'all'\n\
                 [workload.a]\n{workload}\n[design]\nclients = 2\n"
            );
            let said: Vec<String> = wrong(&source).into_iter().map(|(_, why)| why).collect();
            let expected: &[&str] = if expected.is_empty() { &[] } else { &[expected] };
            assert_eq!(said, expected, "{workload}");
        };
        let writes = "it writes, and replicas are read-only";
        for protocol in ["simple", "extended", "prepared"] {
            let of = |script: &str| {
                format!("workload = 'tpcb'\nscript = '{script}'\nprotocol = '{protocol}'")
            };
            check(&of("select-only"), "");
            check(&of("simple-update"), writes);
        }
    }

    #[test]
    fn a_url_that_cannot_be_used_is_told_at_its_line() {
        let check = |databases: &str, design: &str, expected: &[(usize, &str)]| {
            let source = format!(
                "title = 'x'\n{databases}[workload.oltp_read_only]\n[design]\nclients = 2\n{design}"
            );
            let found = wrong(&source);
            let found: Vec<_> =
                found.iter().map(|(line, why)| (*line, why.split(';').next().unwrap())).collect();
            assert_eq!(found, expected, "{source}");
        };
        let nobody = "the URL names no user";
        check("[database.a]\n\nurl = 'mysql://h/x'\n", "", &[(4, nobody)]);
        let further = "[database.a]\nurl = 'mysql://u@h/x'\nmore_urls = ['mysql://g/x']\n";
        check(further, "", &[(4, nobody)]);
        check(
            "[database.a]\nurl = 'mysql://h/x'\n[database.b]\nurl = 'mysql://u@h/x'\n[database.c]\nlike = 'a'\n",
            "vary = { database = ['a', 'b', 'c'] }\n",
            &[(3, nobody), (6, nobody)],
        );
        check("[database.a]\nurl = 'mysql://${WHO}@h/x'\n", "", &[]);
    }
}
