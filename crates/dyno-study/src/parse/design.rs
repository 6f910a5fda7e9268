//! Reads the `[design]` table.

use std::ops::Range;

use dyno_model::{Arrivals, Load};
use dyno_units::{Nanoseconds, Question, Seed};
use toml::de::{DeTable, DeValue};

use super::baseline;
use super::choice::{self, Involved, report_fixed_and_varied};
use super::fault;
use super::host;
use super::job;
use super::on_hosts;
use super::problems::Problems;
use super::search::{self, SearchRequest};
use super::steady;
use super::stopping;
use super::table::NamedTables;
use super::trials_on;
use super::value::{self, Entry, Given, Rate, Section, integer, list, values};
use super::variants;
use super::vary::{ReadFactor, Vary};
use crate::keys::DESIGN;
use crate::{
    Design, Diagnostic, Factor, JobLoad, LoadLevel, Order, ParseLimitError, Product, Requirement,
    Search, Sought, Variant, Vocabulary,
};

/// Most trials that one study may ask for; more are a mistake in the study.
pub(super) const TRIALS_MAX: usize = 100_000;
const STEPS_MAX: usize = 10_000;
/// Most transactions in flight under an open load, where the study does not say.
const OPEN_CLIENTS: u64 = 64;

pub(super) struct Read {
    pub(super) design: Design,
    pub(super) variants: Vec<Variant>,
    pub(super) factor_spans: Vec<Range<usize>>,
    pub(super) generators_span: Range<usize>,
}

pub(super) fn read(
    problems: &mut Problems,
    study: &Section<'_>,
    (tables, hosts): (&[NamedTables<'_>], &NamedTables<'_>),
    vocabulary: &Vocabulary,
) -> Option<Read> {
    let empty = DeTable::new();
    let (table, span) = match study.entry("design") {
        Some(entry) => (value::table(problems, &entry)?, entry.key_span),
        None => (&empty, 0..0),
    };
    let section = Section::closed(problems, ("`[design]`", span), table, &DESIGN);
    let vary = match section.entry("vary") {
        Some(entry) => Vary::read(problems, &entry, tables),
        None => Vary::none(section.span.clone()),
    };
    let chosen = choice::choose(problems, &section, tables, &vary);
    let involved = Involved::new(&chosen, &vary);
    let loads = read_loads(problems, &section, &vary);
    let vary_span = vary.span.clone();
    let has_loads = vary.clients.is_some() || vary.rate.is_some();
    let factors = vary.factors(problems, &involved, vocabulary);
    let baseline = section
        .entry("baseline")
        .map(|entry| baseline::read(problems, &entry, (&factors, has_loads), &involved, vocabulary))
        .unwrap_or_default();
    let whole: Option<Vec<Factor>> = factors.iter().map(ReadFactor::whole).collect();
    let scalars = Scalars::read(problems, &section, &vocabulary.probes);
    let repetitions = (scalars.repetitions, scalars.order);
    let repetitions_min = stopping::read(problems, &section, repetitions, whole.as_deref());
    check_size(problems, whole.as_deref(), scalars.repetitions, vary_span);
    let variants = variants::make(problems, &factors, &baseline, &chosen, vocabulary);
    check_places(problems, &section, variants.as_deref(), vocabulary);
    check_jobs(problems, &section, variants.as_deref(), loads.as_deref());
    let duration = scalars.times.duration;
    fault::check(problems, &section, (tables, hosts, variants.as_deref()), duration, vocabulary);
    job::check(problems, &section, (tables, hosts), variants.as_deref());
    search::check_duration(problems, &section, loads.as_deref(), scalars.times.duration);
    check_stepped(problems, &section, loads.as_deref(), scalars.times.duration);
    let until_steady = steady::read(problems, &section, loads.as_deref(), scalars.times.duration);
    let generators = host::read(problems, &section, hosts);
    let on = (tables, hosts, generators.is_some());
    let server_hosts = on_hosts::check(problems, &section, on, variants.as_deref());
    let given = generators.as_ref().map(|(_, span)| span.clone());
    let trial_hosts = trials_on::check(problems, (tables, hosts, given), variants.as_deref());
    if let Some((Some(pool), span)) = &generators {
        let loads = (variants.as_deref(), loads.as_deref());
        let others = (&server_hosts[..], until_steady.is_some());
        host::check(problems, (pool, span), loads, others, vocabulary);
    }
    let (generators, generators_span) = generators.unwrap_or((None, 0..0));
    let design = scalars.into_design();
    // Where variants get repetitions until their verdicts are settled, they get them anyway.
    let void_repeats = if repetitions_min.is_some() { 0 } else { design.void_repeats };
    let design = Design {
        void_repeats,
        until_steady,
        factors: whole?,
        loads: loads?,
        baseline,
        repetitions_min,
        generators,
        server_hosts,
        trial_hosts,
        ..design
    };
    let factor_spans = factors.iter().map(|factor| factor.key_span.clone()).collect();
    Some(Read { design, variants: variants?, factor_spans, generators_span })
}

/// A search tries many loads, and a job runs once; loads are nothing to a job that runs alone.
fn check_jobs(
    problems: &mut Problems,
    section: &Section<'_>,
    variants: Option<&[Variant]>,
    loads: Option<&[LoadLevel]>,
) {
    let jobs = variants.into_iter().flatten().map(Variant::job);
    let mut is_alone = jobs.map(|job| job.is_some_and(|job| job.load == JobLoad::Off)).peekable();
    let are_alone = is_alone.peek().is_some() && is_alone.all(|is_alone| is_alone);
    if let (true, Some([_, _, ..])) = (are_alone, loads) {
        problems.add(
            Diagnostic::new(section.span.clone(), "the loads have no effect: all jobs run alone")
                .with_label("several loads")
                .with_help("give the jobs load = \"until-done\", or name one load"),
        );
    }
    let mut searches =
        ["find_rate", "find_clients"].into_iter().filter_map(|key| section.entry(key));
    let mut jobs = variants.into_iter().flatten().filter_map(Variant::job);
    if let (Some(search), Some(job)) = (searches.next(), jobs.next()) {
        problems.add(
            Diagnostic::new(
                search.key_span,
                format!("the job `{}` cannot run during a search for a load", job.name),
            )
            .with_label("a search tries many loads")
            .with_help("set the load with `clients` or `rate`"),
        );
    }
}

fn read_loads(
    problems: &mut Problems,
    section: &Section<'_>,
    vary: &Vary<'_>,
) -> Option<Vec<LoadLevel>> {
    let clients = section.number("clients", problems);
    let rate = section.read("rate", problems, value::rate);
    let arrivals = section.read("arrivals", problems, |problems, entry| {
        let words = Arrivals::ALL.map(|arrivals| (arrivals.word(), arrivals));
        value::word(problems, entry, &words)
    });
    check_fixed_and_varied(problems, &clients, &rate, vary);
    let search = SearchRequest::read(problems, section, vary);
    if let Some(arrivals) = &arrivals
        && rate.is_none()
        && vary.rate.is_none()
        && !search.as_ref().is_some_and(|search| search.is_rate)
    {
        problems.add(
            Diagnostic::new(arrivals.key_span.clone(), "`arrivals` needs a rate")
                .with_label("this is a closed load: each client waits for its reply")
                .with_help("add rate = 500, or leave this key out"),
        );
    }
    if let Some(search) = search {
        let clients = clients.map(|given| given.value.map(|clients| clients as usize));
        let arrivals = arrivals.map_or(Some(Arrivals::Poisson), |given| given.value)?;
        let sought = if search.is_rate {
            Sought::Rate { arrivals, clients: clients.unwrap_or(Some(OPEN_CLIENTS as usize))? }
        } else {
            Sought::Clients { most: clients.unwrap_or(Some(Search::CLIENTS_MOST))? }
        };
        return search.load(sought).map(|load| vec![load]);
    }
    let rates: Vec<Option<Rate>> = match (&vary.rate, &rate) {
        (Some(varied), _) => varied.levels.as_ref()?.iter().cloned().map(Some).collect(),
        (None, Some(fixed)) => vec![Some(fixed.value.clone()?)],
        (None, None) => vec![None],
    };
    let default = if rates == [None] { 1 } else { OPEN_CLIENTS };
    let clients: Vec<u64> = match (&vary.clients, &clients) {
        (Some(varied), _) => varied.levels.clone()?,
        (None, Some(fixed)) => vec![fixed.value?],
        (None, None) => vec![default],
    };
    if rates.len().saturating_mul(clients.len()) > STEPS_MAX {
        let message = format!("a trial would have more than {STEPS_MAX} load levels");
        problems.add(Diagnostic::new(vary.span.clone(), message).with_label("too many"));
        return None;
    }
    let arrivals = arrivals.map_or(Some(Arrivals::Poisson), |given| given.value)?;
    Some(cross(&rates, &clients, arrivals, is_rate_first(vary)))
}

fn check_fixed_and_varied(
    problems: &mut Problems,
    clients: &Option<Given<u64>>,
    rate: &Option<Given<Rate>>,
    vary: &Vary<'_>,
) {
    if let (Some(fixed), Some(_)) = (clients, &vary.clients) {
        report_fixed_and_varied(problems, &fixed.key_span, "clients");
    }
    if let (Some(fixed), Some(_)) = (rate, &vary.rate) {
        report_fixed_and_varied(problems, &fixed.key_span, "rate");
    }
}

/// Refuses a measured time in which a stepped rate would not come to its end.
fn check_stepped(
    problems: &mut Problems,
    section: &Section<'_>,
    loads: Option<&[LoadLevel]>,
    duration: Nanoseconds,
) {
    let too_long = loads.into_iter().flatten().find_map(|load| match load {
        LoadLevel::Given(Load::Stepped { rate, .. }) if rate.length() > duration => {
            Some(rate.length())
        }
        _ => None,
    });
    let Some(length) = too_long else { return };
    let entry = ["duration", "rate", "vary"].iter().find_map(|key| section.entry(key));
    let span = entry.map_or_else(|| section.span.clone(), |entry| entry.span);
    problems.add(
        Diagnostic::new(span, "the measured time is too short for the stepped rate")
            .with_label(format!(
                "`duration` is {duration}, and one pass through the rates takes {length}"
            ))
            .with_help(
                "raise `duration`, or shorten the schedule, which repeats after the last rate",
            ),
    );
}

/// Whether rates are the outer of the two loops: what is written first changes last.
fn is_rate_first(vary: &Vary<'_>) -> bool {
    match (&vary.rate, &vary.clients) {
        (Some(rate), Some(clients)) => rate.key_span.start < clients.key_span.start,
        _ => true,
    }
}

fn cross(
    rates: &[Option<Rate>],
    clients: &[u64],
    arrivals: Arrivals,
    is_rate_first: bool,
) -> Vec<LoadLevel> {
    let level = |rate: &Option<Rate>, clients: u64| {
        let clients = clients as usize;
        LoadLevel::Given(match rate.clone() {
            Some(Rate::Steady(rate)) => Load::Open { rate, arrivals, clients },
            Some(Rate::Stepped(rate)) => Load::Stepped { rate, arrivals, clients },
            None => Load::Closed { clients },
        })
    };
    if is_rate_first {
        rates.iter().flat_map(|r| clients.iter().map(move |c| level(r, *c))).collect()
    } else {
        clients.iter().flat_map(|c| rates.iter().map(move |r| level(r, *c))).collect()
    }
}

/// The keys of the design that are single values, with their defaults.
struct Scalars {
    questions: Vec<Question>,
    repetitions: u32,
    is_voiding: bool,
    requirements: Vec<Requirement>,
    order: Order,
    seed: Option<Seed>,
    times: Times,
    threshold: f64,
    retries: u32,
    workers: Option<u32>,
    generator_cpus: Vec<u32>,
    server_cpus: Vec<u32>,
    drop_caches: bool,
    reuse: bool,
    data_folder: Option<String>,
    probes_off: Vec<String>,
}

struct Times {
    warm_up: Nanoseconds,
    duration: Nanoseconds,
    rest: Nanoseconds,
    run_off: Option<Nanoseconds>,
    budget: Option<Nanoseconds>,
    statement_timeout: Nanoseconds,
}

impl Scalars {
    fn read(problems: &mut Problems, section: &Section<'_>, all_probes: &[String]) -> Scalars {
        let mut number = |name: &str| {
            let number = section.number(name, problems).and_then(|given| given.value);
            number.map(|number| u32::try_from(number).unwrap_or(u32::MAX))
        };
        let repetitions = number("repetitions").unwrap_or(5);
        let retries = number("retries").unwrap_or(3);
        let workers = number("workers");
        let words = [("interleaved", Order::Interleaved), ("sequential", Order::Sequential)];
        Scalars {
            questions: section.read_or("question", problems, Vec::new(), questions),
            repetitions,
            is_voiding: section.read_or("void_blocks", problems, true, |problems, entry| {
                value::word(problems, entry, &[("repeat", true), ("keep", false)])
            }),
            requirements: section.read_or("require", problems, Vec::new(), requirements),
            order: section.read_or("order", problems, Order::Interleaved, |problems, entry| {
                value::word(problems, entry, &words)
            }),
            seed: section.number("seed", problems).and_then(|given| given.value).map(Seed),
            times: Times::read(problems, section),
            threshold: section.read_or("threshold", problems, 0.03, value::fraction),
            retries,
            workers,
            generator_cpus: section.read_or("generator_cpus", problems, Vec::new(), cpus),
            server_cpus: section.read_or("server_cpus", problems, Vec::new(), cpus),
            drop_caches: section.read_or("drop_caches", problems, false, value::switch),
            reuse: section.read_or("reuse", problems, true, value::switch),
            data_folder: section
                .read("data_folder", problems, value::text)
                .and_then(|given| given.value),
            probes_off: section.read_or("probes_off", problems, Vec::new(), |problems, entry| {
                probes(problems, entry, all_probes)
            }),
        }
    }

    fn into_design(self) -> Design {
        Design {
            questions: self.questions,
            factors: Vec::new(),
            loads: Vec::new(),
            baseline: std::collections::BTreeMap::new(),
            repetitions: self.repetitions,
            repetitions_min: None,
            void_repeats: match (self.is_voiding, self.order) {
                (true, Order::Interleaved) => self.repetitions.saturating_sub(1) / 2,
                _ => 0,
            },
            requirements: self.requirements,
            order: self.order,
            seed: self.seed,
            warm_up: self.times.warm_up,
            duration: self.times.duration,
            until_steady: None,
            rest: self.times.rest,
            run_off: self.times.run_off,
            drop_caches: self.drop_caches,
            probes_off: self.probes_off,
            threshold: self.threshold,
            budget: self.times.budget,
            statement_timeout: self.times.statement_timeout,
            retries: self.retries,
            workers: self.workers,
            generators: None,
            server_hosts: Vec::new(),
            trial_hosts: Vec::new(),
            generator_cpus: self.generator_cpus,
            server_cpus: self.server_cpus,
            reuse: self.reuse,
            data_folder: self.data_folder,
        }
    }
}

impl Times {
    fn read(problems: &mut Problems, section: &Section<'_>) -> Times {
        let mut time = |name: &str, seconds: u64| {
            section.read_or(name, problems, Nanoseconds::from_secs(seconds), value::duration)
        };
        let warm_up = time("warm_up", 5);
        let rest = time("rest", 2);
        let statement_timeout = time("statement_timeout", 60);
        let default = Nanoseconds::from_secs(30);
        let positive = value::positive_duration;
        Times {
            warm_up,
            rest,
            statement_timeout,
            duration: section.read_or("duration", problems, default, positive),
            run_off: section.read("run_off", problems, positive).and_then(|given| given.value),
            budget: section.read("budget", problems, positive).and_then(|given| given.value),
        }
    }
}

fn requirements(problems: &mut Problems, entry: &Entry<'_>) -> Option<Vec<Requirement>> {
    if let DeValue::Array(_) = entry.value {
        let read = list(problems, entry, requirement, Requirement::to_string);
        return read.and_then(|list| values(&list));
    }
    requirement(problems, entry).map(|one| vec![one])
}

fn requirement(problems: &mut Problems, entry: &Entry<'_>) -> Option<Requirement> {
    let DeValue::String(text) = entry.value else {
        let expected = "a requirement such as \"p99 <= 20ms\" or \"throughput >= 1000\"";
        value::wrong_type(problems, entry, expected);
        return None;
    };
    match text.parse() {
        Ok(requirement) => Some(requirement),
        Err(error) => {
            value::wrong_value(problems, entry, ParseLimitError::to_string(&error));
            None
        }
    }
}

fn cpus(problems: &mut Problems, entry: &Entry<'_>) -> Option<Vec<u32>> {
    const CPU_MAX: u64 = 4095;
    let reader = |problems: &mut Problems, entry: &Entry<'_>| {
        integer(problems, entry, (0, CPU_MAX)).map(|cpu| cpu as u32)
    };
    list(problems, entry, reader, u32::to_string).and_then(|list| values(&list))
}

fn questions(problems: &mut Problems, entry: &Entry<'_>) -> Option<Vec<Question>> {
    let word =
        |problems: &mut Problems, entry: &Entry<'_>| value::word(problems, entry, &Question::ALL);
    match entry.value {
        DeValue::Array(_) => list(problems, entry, word, |one| one.word().to_owned())
            .and_then(|list| values(&list)),
        _ => word(problems, entry).map(|one| vec![one]),
    }
}

fn probes(problems: &mut Problems, entry: &Entry<'_>, all: &[String]) -> Option<Vec<String>> {
    let names: Vec<(&str, &String)> = all.iter().map(|name| (name.as_str(), name)).collect();
    let reader =
        |problems: &mut Problems, entry: &Entry<'_>| value::word(problems, entry, &names).cloned();
    list(problems, entry, reader, String::clone).and_then(|list| values(&list))
}

/// Keys about private servers need one.
fn check_places(
    problems: &mut Problems,
    section: &Section<'_>,
    variants: Option<&[Variant]>,
    vocabulary: &Vocabulary,
) {
    // While a variant is unknown, nothing can be said about all of them.
    let Some(variants) = variants else { return };
    let products = || variants.iter().map(|variant| &variant.database.product);
    let is_all_url = products().all(|product| matches!(product, Product::Url(_)));
    let is_embedded = |name: &String| {
        vocabulary.products.iter().any(|word| word.name == *name && word.is_embedded)
    };
    let has_process =
        products().any(|product| matches!(product, Product::Private(name) if !is_embedded(name)));
    let mut refuse = |name: &str, why: &str| {
        if let Some(entry) = section.entry(name) {
            problems.add(
                Diagnostic::new(entry.key_span, format!("`{name}` has no effect here"))
                    .with_label(why)
                    .with_help("leave this key out"),
            );
        }
    };
    if !has_process {
        refuse("server_cpus", "no database of this study is a server process that Dyno starts");
    }
    if is_all_url {
        refuse("data_folder", "all databases of this study are given by `url`");
        refuse("reuse", "all databases of this study are given by `url`, and populated each time");
    }
}

/// Refuses a design that nobody could run, before it is multiplied out.
fn check_size(
    problems: &mut Problems,
    factors: Option<&[Factor]>,
    repetitions: u32,
    vary_span: Range<usize>,
) {
    let Some(factors) = factors else { return };
    let n_trials = factors
        .iter()
        .try_fold(repetitions as usize, |n, factor| n.checked_mul(factor.levels.len()))
        .unwrap_or(usize::MAX);
    if n_trials > TRIALS_MAX {
        let message = format!("the design asks for more than {TRIALS_MAX} trials");
        problems.add(
            Diagnostic::new(vary_span, message)
                .with_label("all levels of all factors are combined")
                .with_help("vary fewer factors at once, or fewer levels of each"),
        );
    }
}
