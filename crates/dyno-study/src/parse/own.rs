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
use toml::de::DeTable;

use super::parser::Parser;
use crate::nearest::list;
use crate::vocabulary::{Planned, PlannedWorkload, WorkloadRules};
use crate::{Diagnostic, LoadLevel, OwnLoad, Product, Study, Variant, WorkloadChoice};

/// Asks all workloads. Steps that they define take the place of the design's load.
pub(super) fn resolve(
    parser: &Parser<'_>,
    (tree, factor_spans): (&DeTable<'_>, &[Range<usize>]),
    Study { design, variants, .. }: &mut Study,
) {
    let places = Places { parser, tree, factor_spans };
    let mut asking = Asking {
        places: &places,
        known: HashMap::new(),
        told_urls: BTreeSet::new(),
        planned: HashMap::new(),
        last: None,
        first: None,
    };
    let mut found: Vec<(&Variant, Steps)> = Vec::new();
    let mut is_refused = false;
    let kinds: BTreeSet<bool> = design.loads.iter().map(LoadLevel::is_open).collect();
    let duration = design.duration;
    let clients: BTreeSet<usize> = design.loads.iter().map(LoadLevel::clients_least).collect();
    let request = |clients| StepRequest { clients, duration };
    let requests: Vec<StepRequest> = clients.into_iter().map(request).collect();
    for variant in &*variants {
        for &request in &requests {
            match asking.steps(variant, request) {
                Some(steps) => found.push((variant, steps)),
                None => is_refused = true,
            }
        }
        // What is wrong besides the number of clients is reported as well.
        let mut possible = requests.iter().copied().chain([request(1)]);
        let possible = possible.find(|request| asking.can_plan(variant, *request));
        let Some(request) = possible else { continue };
        let database = &variant.database;
        let on = Question::On(database.name.clone());
        is_refused |= !(asking.check_urls(variant) && asking.ask(variant, request, on));
        let apart = design.generators.is_some().then_some(Question::Apart);
        let reads = database.reads_elsewhere().then(|| Question::Reads(database.name.clone()));
        let loads = kinds.iter().map(|is_open| Question::Load { is_open: *is_open });
        for question in apart.into_iter().chain(reads).chain(loads) {
            is_refused |= !asking.ask(variant, request, question);
        }
    }
    if is_refused || found.iter().all(|(_, steps)| steps.is_empty()) {
        return;
    }
    let sends = |steps: &Steps| steps.iter().any(|step| step.connections() > 0);
    let is_sending = found.iter().any(|(_, steps)| steps.is_empty() || sends(steps));
    let is_right = match is_sending {
        true => is_one_load(&places, &found, &design.loads),
        false => is_no_load(&places, &found[0].0.workload.name),
    };
    if !is_right || !is_alike(&places, &found) {
        return;
    }
    design.loads = own_loads(&found, requests[0]);
    if design.generators.is_some() {
        super::host::check_own(parser, places.of_design("generators"), &design.loads);
    }
    if places.of_design("warm_up").is_none() {
        design.warm_up = Nanoseconds::ZERO;
    }
}

/// The steps of a variant, shared by variants that have the same ones.
type Steps = Arc<[WorkloadStep]>;

/// Asks each question once, however many variants it is asked for.
struct Asking<'a, 't> {
    places: &'a Places<'t>,
    /// The answers of workloads with these options.
    known: HashMap<(Arc<WorkloadChoice>, Question), bool>,
    /// The databases with a wrong URL, and what was said of it.
    told_urls: BTreeSet<(String, String)>,
    /// The steps of a workload with these options and so many clients; none where it cannot run.
    planned: HashMap<(Arc<WorkloadChoice>, usize), Option<Steps>>,
    /// The workload that was planned last, with its number of clients: it is asked several questions.
    last: Option<(Arc<WorkloadChoice>, usize, Arc<dyn PlannedWorkload>)>,
    first: Option<Steps>,
}

/// Whether a workload can run so.
#[derive(PartialEq, Eq, Hash)]
enum Question {
    /// On the database of this name.
    On(String),
    /// With clients on several generators.
    Apart,
    /// With clients that connect to replicas of the database of this name.
    Reads(String),
    Load {
        is_open: bool,
    },
}

impl<'a> Asking<'a, '_> {
    fn rules(&self, variant: &Variant) -> Option<&'a dyn WorkloadRules> {
        self.places.parser.vocabulary.workload(&variant.workload.workload)?.rules.as_deref()
    }

    /// The workload of a variant; none where nobody can be asked.
    fn plan(&mut self, variant: &Variant, request: StepRequest) -> Option<Planned> {
        let workload = &variant.workload;
        if let Some((known, clients, plan)) = &self.last
            && (known, *clients) == (workload, request.clients)
        {
            return Some(Ok(Arc::clone(plan)));
        }
        let plan = self.rules(variant)?.plan(&workload.options, request);
        let kept = plan.as_ref().ok().cloned();
        self.last = kept.map(|plan| (Arc::clone(workload), request.clients, plan));
        Some(plan)
    }

    fn can_plan(&mut self, variant: &Variant, request: StepRequest) -> bool {
        match self.planned.get(&(Arc::clone(&variant.workload), request.clients)) {
            Some(known) => known.is_some(),
            None => self.plan(variant, request).is_none_or(|plan| plan.is_ok()),
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
                Diagnostic::new(span, message).with_label(why).add_to(self.places.parser);
            }
        }
        are_right
    }

    fn ask(&mut self, variant: &Variant, request: StepRequest, question: Question) -> bool {
        let key = (Arc::clone(&variant.workload), question);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let Some(Ok(plan)) = self.plan(variant, request) else { return true };
        let (database, product) = (&variant.database, &variant.database.product);
        let (answer, how) = match &key.1 {
            Question::On(name) => (plan.check(product), format!("run on database `{name}`")),
            Question::Apart => (plan.check_apart(), "be combined with `generators`".to_owned()),
            Question::Reads(name) => {
                let on = &database.reads_on;
                let how = format!("be combined with reads_on = \"{on}\" of database `{name}`");
                (plan.check_reads(product), how)
            }
            Question::Load { is_open } => {
                let load = if *is_open { "at a rate" } else { "without a rate" };
                (plan.check_load(*is_open), format!("run {load}"))
            }
        };
        self.known.insert(key, answer.is_ok());
        answer.map_err(|why| self.refuse(variant, &how, why)).is_ok()
    }

    /// The steps of a variant; none where it cannot run so, which has been reported then.
    fn steps(&mut self, variant: &Variant, request: StepRequest) -> Option<Steps> {
        let key = (Arc::clone(&variant.workload), request.clients);
        if let Some(known) = self.planned.get(&key) {
            return known.clone();
        }
        let Some(plan) = self.plan(variant, request) else { return Some(Arc::from([])) };
        let steps = plan.map(|plan| self.shared(plan.steps()));
        self.planned.insert(key, steps.as_ref().ok().cloned());
        steps.map_err(|why| self.refuse(variant, "run with these options", why)).ok()
    }

    /// These steps; the very first ones where they are the same.
    fn shared(&mut self, steps: &[WorkloadStep]) -> Steps {
        match &self.first {
            Some(first) if first[..] == *steps => Arc::clone(first),
            _ => {
                let steps: Steps = steps.into();
                self.first.get_or_insert_with(|| Arc::clone(&steps));
                steps
            }
        }
    }

    fn refuse(&mut self, variant: &Variant, how: &str, why: String) {
        let name = &variant.workload.name;
        let (span, message) =
            (self.places.of_workload(name), format!("workload `{name}` cannot {how}"));
        let mut diagnostic = Diagnostic::new(span, message).with_label(why);
        if !variant.levels.is_empty() {
            diagnostic = diagnostic.with_help(format!("in variant `{}`", variant.name));
        }
        self.places.parser.add(diagnostic);
    }
}

const OF_A_LOAD: &str = "clients rate arrivals find_rate find_clients find_precision until_steady \
     statement_timeout retries workers generators generator_cpus";

/// Refuses what says something of a load where nothing is sent.
fn is_no_load(places: &Places<'_>, workload: &str) -> bool {
    let mut is_none = true;
    for key in OF_A_LOAD.split(' ') {
        let Some(span) = places.of_design(key).or_else(|| places.of_varied(key)) else { continue };
        is_none = false;
        Diagnostic::new(span, format!("`{key}` has no effect here"))
            .with_label(format!("workload `{workload}` sends no load"))
            .with_help("leave this key out")
            .add_to(places.parser);
    }
    is_none
}

/// Refuses load levels, rates and searches beside steps that the workload defines.
fn is_one_load(places: &Places<'_>, found: &[(&Variant, Steps)], loads: &[LoadLevel]) -> bool {
    let Some((variant, steps)) = found.iter().find(|(_, steps)| !steps.is_empty()) else {
        return true;
    };
    let mut keys = vec![
        ("rate", places.of_design("rate").or_else(|| places.of_varied("rate"))),
        ("find_rate", places.of_design("find_rate")),
        ("find_clients", places.of_design("find_clients")),
    ];
    keys.extend((loads.len() > 1).then(|| ("clients", places.of_varied("clients"))));
    let mut is_one = true;
    for (key, span) in keys {
        let Some(span) = span else { continue };
        is_one = false;
        let names: Vec<&str> = steps.iter().map(|step| step.name.as_ref()).collect();
        let name = &variant.workload.name;
        Diagnostic::new(span, format!("`{key}` cannot be combined with workload `{name}`"))
            .with_label(format!("it defines its own steps: {}", list(&names)))
            .with_help("give one number of clients: clients = 4")
            .add_to(places.parser);
    }
    is_one
}

/// Refuses variants whose steps have other names than those of the first one.
fn is_alike(places: &Places<'_>, found: &[(&Variant, Steps)]) -> bool {
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
    Diagnostic::new(
        places.of_difference(first, other),
        "the variants have different steps, so they cannot be compared",
    )
    .with_label(format!("`{}` and `{}` have different steps", other.name, first.name))
    .with_help(format!("one has {}; the other {}", words(&expected), words(&names(steps))))
    .add_to(places.parser);
    false
}

/// The steps of all variants as loads; those of the first variant, connections of the largest.
fn own_loads(found: &[(&Variant, Steps)], request: StepRequest) -> Vec<LoadLevel> {
    let connections = |step: usize| {
        found.iter().map(|(_, steps)| steps[step].connections()).max().unwrap_or(request.clients)
    };
    let level = |(idx, step): (usize, &WorkloadStep)| {
        let connections = connections(idx);
        LoadLevel::Own(OwnLoad { request, step: longest(found, idx, step), connections })
    };
    found[0].1.iter().enumerate().map(level).collect()
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
    parser: &'t Parser<'t>,
    tree: &'t DeTable<'t>,
    factor_spans: &'t [Range<usize>],
}

impl<'t> Places<'t> {
    fn table(table: &'t DeTable<'t>, key: &str) -> Option<&'t DeTable<'t>> {
        table.get(key)?.get_ref().as_table()
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
