//! Asks the workloads of all variants what only they know: whether they can run with their options,
//! on their product, with so many clients; and which steps they define themselves.
//!
//! Done when the study has been read, because options may be a factor.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use dyno_model::{StepRequest, WorkloadStep};
use dyno_units::Nanoseconds;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Lowered;
use super::problems::Problems;
use crate::nearest::list;
use crate::vocabulary::{Vocabulary, WorkloadRules};
use crate::{Diagnostic, LoadLevel, OwnLoad, Product, Study, Variant, WorkloadChoice};

/// Asks all workloads. Steps that they define take the place of the design's load.
pub(super) fn resolve(
    problems: &mut Problems,
    tree: &DeTable<'_>,
    lowered: &mut Lowered,
    vocabulary: &Vocabulary,
) {
    let Lowered { study: Study { design, variants, .. }, factor_spans, generators_span } = lowered;
    let places = Places { tree, factor_spans };
    let mut asking = Asking {
        problems,
        places: &places,
        vocabulary,
        checked: HashMap::new(),
        loaded: HashMap::new(),
        apart: HashMap::new(),
        reads: HashMap::new(),
        told_urls: BTreeSet::new(),
        planned: HashMap::new(),
        first: None,
    };
    let mut found: Vec<(&Variant, Steps)> = Vec::new();
    let mut is_refused = false;
    let kinds: BTreeSet<bool> = design.loads.iter().map(LoadLevel::is_open).collect();
    let duration = design.duration;
    let requests: Vec<StepRequest> = clients_asked(&design.loads)
        .into_iter()
        .map(|clients| StepRequest { clients, duration })
        .collect();
    for variant in &*variants {
        for &request in &requests {
            match asking.steps(variant, request) {
                Some(steps) => found.push((variant, steps)),
                None => is_refused = true,
            }
        }
        // What is wrong besides the number of clients is reported as well.
        let least = StepRequest { clients: 1, duration };
        let possible = requests.iter().copied().chain([least]);
        let mut possible = possible.filter(|request| asking.can_plan(variant, *request));
        let Some(request) = possible.next() else { continue };
        is_refused |= !(asking.check_urls(variant) && asking.check(variant, request));
        if design.generators.is_some() {
            is_refused |= !asking.check_apart(variant, request);
        }
        if variant.database.reads_elsewhere() {
            is_refused |= !asking.check_reads(variant, request);
        }
        for &is_open in &kinds {
            is_refused |= !asking.check_load(variant, request, is_open);
        }
    }
    if is_refused || found.iter().all(|(_, steps)| steps.is_empty()) {
        return;
    }
    let is_sending = found.iter().any(|(_, steps)| steps.is_empty() || sends_something(steps));
    let is_right = match is_sending {
        true => is_one_load(problems, &places, &found, &design.loads),
        false => is_no_load(problems, &places, &found[0].0.workload.name),
    };
    if !is_right || !is_alike(problems, &places, &found) {
        return;
    }
    design.loads = own_loads(&found, requests[0]);
    if design.generators.is_some() {
        super::host::check_own(problems, generators_span.clone(), &design.loads);
    }
    if places.of_design("warm_up").is_none() {
        design.warm_up = Nanoseconds::ZERO;
    }
}

fn clients_asked(loads: &[LoadLevel]) -> BTreeSet<usize> {
    loads.iter().map(LoadLevel::clients_least).collect()
}

/// The steps of a variant, shared by variants that have the same ones.
type Steps = Arc<[WorkloadStep]>;

/// Asks each question once, however many variants it is asked for.
struct Asking<'a, 't> {
    problems: &'a mut Problems,
    places: &'a Places<'t>,
    vocabulary: &'a Vocabulary,
    /// Whether a workload with these options can run on a database.
    checked: HashMap<(Arc<WorkloadChoice>, String), bool>,
    /// Whether a workload with these options can run under an open load, or a closed one.
    loaded: HashMap<(Arc<WorkloadChoice>, bool), bool>,
    /// Whether the clients of a workload with these options can run on several generators.
    apart: HashMap<Arc<WorkloadChoice>, bool>,
    reads: HashMap<(Arc<WorkloadChoice>, String), bool>,
    /// The databases with a wrong URL, and what was said of it.
    told_urls: BTreeSet<(String, String)>,
    /// The steps of a workload with these options and so many clients; none where it cannot run.
    planned: HashMap<(Arc<WorkloadChoice>, usize), Option<Steps>>,
    first: Option<Steps>,
}

impl<'a> Asking<'a, '_> {
    fn rules(&self, variant: &Variant) -> Option<&'a dyn WorkloadRules> {
        let words = &self.vocabulary.workloads;
        let word = words.iter().find(|word| word.name == variant.workload.workload)?;
        word.rules.as_deref()
    }

    fn can_plan(&self, variant: &Variant, request: StepRequest) -> bool {
        match (
            self.planned.get(&(Arc::clone(&variant.workload), request.clients)),
            self.rules(variant),
        ) {
            (Some(known), _) => known.is_some(),
            (None, Some(rules)) => rules.steps(&variant.workload.options, request).is_ok(),
            (None, None) => true,
        }
    }

    /// Whether the URLs of a variant's database name servers that its workload can use.
    fn check_urls(&mut self, variant: &Variant) -> bool {
        let Some(rules) = self.rules(variant) else { return true };
        let database = &variant.database;
        let first = [("url", &database.product)].into_iter();
        let urls = first.chain(database.more_urls.iter().map(|url| ("more_urls", url)));
        let mut are_right = true;
        for (key, product) in urls {
            let Product::Url(url) = product else { continue };
            let Err(why) = rules.check_url(url) else { continue };
            are_right = false;
            if self.told_urls.insert((database.name.clone(), why.clone())) {
                let message = format!("`{key}` of database `{}` cannot be used", database.name);
                let span = self.places.of_database(&database.name, key);
                self.problems.add(Diagnostic::new(span, message).with_label(why));
            }
        }
        are_right
    }

    fn check(&mut self, variant: &Variant, request: StepRequest) -> bool {
        let Some(rules) = self.rules(variant) else { return true };
        let (workload, database) = (&variant.workload, &variant.database);
        let key = (Arc::clone(workload), database.name.clone());
        if let Some(known) = self.checked.get(&key) {
            return *known;
        }
        let result = rules.check(&workload.options, request, &database.product);
        self.checked.insert(key, result.is_ok());
        let Err(why) = result else { return true };
        let (workload, database) = (&workload.name, &database.name);
        let message = format!("workload `{workload}` cannot run on database `{database}`");
        self.refuse(variant, message, why);
        false
    }

    fn check_apart(&mut self, variant: &Variant, request: StepRequest) -> bool {
        let Some(rules) = self.rules(variant) else { return true };
        let workload = &variant.workload;
        if let Some(known) = self.apart.get(workload) {
            return *known;
        }
        let result = rules.check_apart(&workload.options, request);
        self.apart.insert(Arc::clone(workload), result.is_ok());
        let Err(why) = result else { return true };
        let message = format!("workload `{}` cannot be combined with `generators`", workload.name);
        self.refuse(variant, message, why);
        false
    }

    /// Whether the workload of a variant only reads, so that replicas can take it.
    fn check_reads(&mut self, variant: &Variant, request: StepRequest) -> bool {
        let Some(rules) = self.rules(variant) else { return true };
        let (workload, database) = (&variant.workload, &variant.database);
        let key = (Arc::clone(workload), database.name.clone());
        if let Some(known) = self.reads.get(&key) {
            return *known;
        }
        let result = rules.check_reads(&workload.options, request, &database.product);
        self.reads.insert(key, result.is_ok());
        let Err(why) = result else { return true };
        let message = format!(
            "workload `{}` cannot be combined with reads_on = \"{}\" of database `{}`",
            workload.name, database.reads_on, database.name
        );
        self.refuse(variant, message, why);
        false
    }

    fn check_load(&mut self, variant: &Variant, request: StepRequest, is_open: bool) -> bool {
        let Some(rules) = self.rules(variant) else { return true };
        let workload = &variant.workload;
        let key = (Arc::clone(workload), is_open);
        if let Some(known) = self.loaded.get(&key) {
            return *known;
        }
        let result = rules.check_load(&workload.options, request, is_open);
        self.loaded.insert(key, result.is_ok());
        let Err(why) = result else { return true };
        let load = if is_open { "at a rate" } else { "without a rate" };
        let message = format!("workload `{}` cannot run {load}", workload.name);
        self.refuse(variant, message, why);
        false
    }

    /// The steps of a variant; none where it cannot run so, which has been reported then.
    fn steps(&mut self, variant: &Variant, request: StepRequest) -> Option<Steps> {
        let Some(rules) = self.rules(variant) else { return Some(Arc::from([])) };
        let workload = &variant.workload;
        let key = (Arc::clone(workload), request.clients);
        if let Some(known) = self.planned.get(&key) {
            return known.clone();
        }
        let result = rules.steps(&workload.options, request).map(|steps| self.shared(steps));
        self.planned.insert(key, result.as_ref().ok().cloned());
        result
            .map_err(|why| {
                let message = format!("workload `{}` cannot run with these options", workload.name);
                self.refuse(variant, message, why);
            })
            .ok()
    }

    /// These steps; the very first ones where they are the same.
    fn shared(&mut self, steps: Vec<WorkloadStep>) -> Steps {
        match &self.first {
            Some(first) if first[..] == steps[..] => Arc::clone(first),
            _ => {
                let steps: Steps = steps.into();
                self.first.get_or_insert_with(|| Arc::clone(&steps));
                steps
            }
        }
    }

    fn refuse(&mut self, variant: &Variant, message: String, why: String) {
        let span = self.places.of_workload(&variant.workload.name);
        let mut diagnostic = Diagnostic::new(span, message).with_label(why);
        if !variant.levels.is_empty() {
            diagnostic = diagnostic.with_help(format!("in variant `{}`", variant.name));
        }
        self.problems.add(diagnostic);
    }
}

fn sends_something(steps: &[WorkloadStep]) -> bool {
    steps.iter().any(|step| step.connections() > 0)
}

const OF_A_LOAD: [&str; 12] = [
    "clients",
    "rate",
    "arrivals",
    "find_rate",
    "find_clients",
    "find_precision",
    "until_steady",
    "statement_timeout",
    "retries",
    "workers",
    "generators",
    "generator_cpus",
];

/// Refuses what says something of a load where nothing is sent.
fn is_no_load(problems: &mut Problems, places: &Places<'_>, workload: &str) -> bool {
    let mut is_none = true;
    for key in OF_A_LOAD {
        let Some(span) = places.of_design(key).or_else(|| places.of_varied(key)) else { continue };
        is_none = false;
        problems.add(
            Diagnostic::new(span, format!("`{key}` has no effect here"))
                .with_label(format!("workload `{workload}` sends no load"))
                .with_help("leave this key out"),
        );
    }
    is_none
}

/// Refuses load levels, rates and searches beside steps that the workload defines.
fn is_one_load(
    problems: &mut Problems,
    places: &Places<'_>,
    found: &[(&Variant, Steps)],
    loads: &[LoadLevel],
) -> bool {
    let Some((variant, steps)) = found.iter().find(|(_, steps)| !steps.is_empty()) else {
        return true;
    };
    let mut keys = vec![
        ("rate", places.of_design("rate").or_else(|| places.of_varied("rate"))),
        ("find_rate", places.of_design("find_rate")),
        ("find_clients", places.of_design("find_clients")),
    ];
    if loads.len() > 1 {
        keys.push(("clients", places.of_varied("clients")));
    }
    let mut is_one = true;
    for (key, span) in keys {
        let Some(span) = span else { continue };
        is_one = false;
        let names: Vec<&str> = steps.iter().map(|step| step.name.as_ref()).collect();
        let name = &variant.workload.name;
        problems.add(
            Diagnostic::new(span, format!("`{key}` cannot be combined with workload `{name}`"))
                .with_label(format!("it defines its own steps: {}", list(&names)))
                .with_help("give one number of clients: clients = 4"),
        );
    }
    is_one
}

/// Refuses variants whose steps have other names than those of the first one.
fn is_alike(problems: &mut Problems, places: &Places<'_>, found: &[(&Variant, Steps)]) -> bool {
    let names = |steps: &[WorkloadStep]| -> Vec<String> {
        steps.iter().map(|step| step.name.clone().into_owned()).collect()
    };
    let Some((first, steps)) = found.first() else { return true };
    let expected = names(steps);
    let is_other = |own: &[WorkloadStep]| {
        own.len() != expected.len()
            || own.iter().zip(&expected).any(|(step, expected)| step.name != **expected)
    };
    let Some((other, steps)) = found.iter().find(|(_, steps)| is_other(steps)) else {
        return true;
    };
    let words = |steps: &[String]| -> String {
        if steps.is_empty() {
            return "the load levels of the study".to_owned();
        }
        steps.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    problems.add(
        Diagnostic::new(
            places.of_difference(first, other),
            "the variants have different steps, so they cannot be compared",
        )
        .with_label(format!("`{}` and `{}` have different steps", other.name, first.name))
        .with_help(format!(
            "one has {}; the other {}",
            words(&expected),
            words(&names(steps))
        )),
    );
    false
}

/// The steps of all variants as loads; those of the first variant, connections of the largest.
fn own_loads(found: &[(&Variant, Steps)], request: StepRequest) -> Vec<LoadLevel> {
    let connections = |step: usize| {
        found.iter().map(|(_, steps)| steps[step].connections()).max().unwrap_or(request.clients)
    };
    let steps = found[0].1.iter().enumerate();
    steps
        .map(|(idx, step)| {
            let connections = connections(idx);
            LoadLevel::Own(OwnLoad { request, step: longest(found, idx, step), connections })
        })
        .collect()
}

fn longest(found: &[(&Variant, Steps)], idx: usize, first: &WorkloadStep) -> WorkloadStep {
    let mut longest = first.clone();
    for (_, steps) in found {
        longest.limit = longest.limit.max(steps[idx].limit);
        longest.settle = longest.settle.max(steps[idx].settle);
    }
    longest
}

struct Places<'t> {
    tree: &'t DeTable<'t>,
    factor_spans: &'t [Range<usize>],
}

impl<'t> Places<'t> {
    fn table(table: &'t DeTable<'t>, key: &str) -> Option<&'t DeTable<'t>> {
        match table.get(key)?.get_ref() {
            DeValue::Table(inner) => Some(inner),
            _ => None,
        }
    }

    fn key(table: &DeTable<'_>, key: &str) -> Option<Range<usize>> {
        table.get_key_value(key).map(|(key, _)| key.span())
    }

    fn of_design(&self, key: &str) -> Option<Range<usize>> {
        Self::key(Self::table(self.tree, "design")?, key)
    }

    fn of_varied(&self, key: &str) -> Option<Range<usize>> {
        Self::key(Self::table(Self::table(self.tree, "design")?, "vary")?, key)
    }

    fn of_workload(&self, name: &str) -> Range<usize> {
        let place = Self::table(self.tree, "workload").and_then(|table| Self::key(table, name));
        place.unwrap_or(0..0)
    }

    /// The value of a key of a database; where it has none, the name of the database's table.
    fn of_database(&self, name: &str, key: &str) -> Range<usize> {
        let databases = Self::table(self.tree, "database");
        let table = databases.and_then(|databases| Self::table(databases, name));
        let value = table.and_then(|table| table.get(key)).map(Spanned::span);
        let place = value.or_else(|| Self::key(databases?, name));
        place.unwrap_or(0..0)
    }

    fn of_difference(&self, first: &Variant, other: &Variant) -> Range<usize> {
        let levels = || first.levels.iter().zip(&other.levels).zip(self.factor_spans);
        let differing = |is_it: fn(&str) -> bool| {
            levels().find(|((a, b), _)| a != b && is_it(&a.factor)).map(|(_, span)| span.clone())
        };
        differing(|factor| factor == "workload")
            .or_else(|| differing(|factor| factor.starts_with("option.")))
            .unwrap_or_else(|| self.of_workload(&other.workload.name))
    }
}
