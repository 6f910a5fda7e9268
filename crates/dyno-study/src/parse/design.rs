//! Reads the `[design]` table.

use std::collections::BTreeMap;
use std::ops::Range;

use dyno_model::{Arrivals, Load};
use dyno_units::{Nanoseconds, Question, Seed};
use toml::de::{DeTable, DeValue};

use super::choice::{self, Involved, report_fixed_and_varied};
use super::kind::DESIGN;
use super::parser::Parser;
use super::search::{self, SearchRequest};
use super::table::{Draft, NamedTables};
use super::value::{self, Entry, Rate, Section, integer, listed};
use super::vary::{ReadFactor, Vary};
use super::{baseline, fault, host, job, on_hosts, steady, stopping, trials_on, variants};
use crate::{
    Design, Diagnostic, Factor, JobLoad, LoadLevel, Order, Product, Requirement, Search, Sought,
    Variant,
};

/// Most trials that one study may ask for; more are a mistake in the study.
pub(super) const TRIALS_MAX: usize = 100_000;
const STEPS_MAX: usize = 10_000;
/// Most transactions in flight under an open load, where the study does not say.
const OPEN_CLIENTS: u64 = 64;

/// Reads the table, with the variants that it makes, and where each factor is.
pub(super) fn read(
    study: &Section<'_>,
    (tables, hosts): (&[NamedTables<'_>], &NamedTables<'_>),
) -> Option<(Design, Vec<Variant>, Vec<Range<usize>>)> {
    let empty = DeTable::new();
    let (table, span) = match study.entry("design") {
        Some(entry) => (value::table(&entry)?, entry.key_span),
        None => (&empty, 0..0),
    };
    let section = Section::closed(study.parser, ("`[design]`", span), table, &DESIGN);
    let vary = match section.entry("vary") {
        Some(entry) => Vary::read(&entry, tables),
        None => Vary::none(section.span.clone()),
    };
    let chosen = choice::choose(&section, tables, &vary);
    let involved = Involved::new(&chosen, &vary);
    let loads = read_loads(&section, &vary);
    let vary_span = vary.span.clone();
    let has_loads = vary.clients.is_some() || vary.rate.is_some();
    let factors = vary.factors(&involved);
    let read = |entry: Entry<'_>| baseline::read(&entry, (&factors, has_loads), &involved);
    let baseline = section.entry("baseline").map(read).unwrap_or_default();
    let whole: Option<Vec<Factor>> = factors.iter().map(ReadFactor::whole).collect();
    let design = scalars(&section, &study.parser.vocabulary.probes);
    let repetitions = (design.repetitions, design.order);
    let repetitions_min = stopping::read(&section, repetitions, whole.as_deref());
    check_size(study.parser, whole.as_deref(), design.repetitions, vary_span);
    let variants = variants::make(study.parser, &factors, &baseline, &chosen);
    let draft = Draft {
        section: &section,
        tables,
        hosts,
        variants: variants.as_deref(),
        loads: loads.as_deref(),
        duration: design.duration,
    };
    check_places(&draft);
    check_jobs_and_faults(&draft);
    fault::check(&draft);
    job::check(&draft);
    search::check_duration(&draft);
    check_stepped(&draft);
    let until_steady = steady::read(&draft);
    let generators = host::read(&section, hosts);
    let server_hosts = on_hosts::check(&draft, generators.is_some());
    let given = generators.as_ref().map(|(_, span)| span.clone());
    let trial_hosts = trials_on::check(&draft, given);
    if let Some((Some(pool), span)) = &generators {
        host::check(&draft, (pool, span), (&server_hosts, until_steady.is_some()));
    }
    // Where variants get repetitions until their verdicts are settled, they get them anyway.
    let void_repeats = if repetitions_min.is_some() { 0 } else { design.void_repeats };
    let design = Design {
        void_repeats,
        until_steady,
        factors: whole?,
        loads: loads?,
        baseline,
        repetitions_min,
        generators: generators.and_then(|(pool, _)| pool),
        server_hosts,
        trial_hosts,
        ..design
    };
    let places = factors.iter().map(|factor| factor.key_span.clone()).collect();
    Some((design, variants?, places))
}

/// A search tries many loads; a job runs once, and a fault happens once. Loads are nothing to a job that runs alone.
fn check_jobs_and_faults(draft: &Draft<'_>) {
    let section = draft.section;
    let jobs = draft.variants().map(Variant::job);
    let mut is_alone = jobs.map(|job| job.is_some_and(|job| job.load == JobLoad::Off)).peekable();
    let are_alone = is_alone.peek().is_some() && is_alone.all(|is_alone| is_alone);
    if let (true, Some([_, _, ..])) = (are_alone, draft.loads) {
        Diagnostic::new(section.span.clone(), "the loads have no effect: all jobs run alone")
            .with_label("several loads")
            .with_help("give the jobs load = \"until-done\", or name one load")
            .add_to(section.parser);
    }
    let mut jobs = draft.variants().filter_map(Variant::job);
    search::refuse_beside(section, jobs.next().map(|job| format!("job `{}` cannot run", job.name)));
    let mut faults = draft.variants().filter_map(Variant::fault);
    let first = faults.next().map(|fault| format!("fault `{}` cannot happen", fault.name));
    search::refuse_beside(section, first);
}

fn read_loads(section: &Section<'_>, vary: &Vary<'_>) -> Option<Vec<LoadLevel>> {
    let clients = section.number("clients");
    let rate = section.read("rate", value::rate);
    let arrivals = section.read("arrivals", |entry| {
        let words = Arrivals::ALL.map(|arrivals| (arrivals.word(), arrivals));
        value::word(entry, &words)
    });
    let varied = [("clients", vary.clients.is_some()), ("rate", vary.rate.is_some())];
    let varied = varied.iter().filter(|(_, is_varied)| *is_varied);
    let both = varied.filter_map(|(key, _)| section.entry(key));
    both.for_each(|entry| report_fixed_and_varied(&entry));
    let search = SearchRequest::read(section, vary);
    if let Some(arrivals) = &arrivals
        && rate.is_none()
        && vary.rate.is_none()
        && !search.as_ref().is_some_and(|search| search.is_rate)
    {
        Diagnostic::new(arrivals.key_span.clone(), "`arrivals` needs a rate")
            .with_label("this is a closed load: each client waits for its reply")
            .with_help("add rate = 500, or leave this key out")
            .add_to(section.parser);
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
        Diagnostic::new(vary.span.clone(), message).with_label("too many").add_to(section.parser);
        return None;
    }
    let arrivals = arrivals.map_or(Some(Arrivals::Poisson), |given| given.value)?;
    Some(cross(&rates, &clients, arrivals, is_rate_first(vary)))
}

/// Refuses a measured time in which a stepped rate would not come to its end.
fn check_stepped(&Draft { section, loads, duration, .. }: &Draft<'_>) {
    let too_long = loads.into_iter().flatten().find_map(|load| match load {
        LoadLevel::Given(Load::Stepped { rate, .. }) if rate.length() > duration => {
            Some(rate.length())
        }
        _ => None,
    });
    let Some(length) = too_long else { return };
    let entry = ["duration", "rate", "vary"].iter().find_map(|key| section.entry(key));
    let span = entry.map_or_else(|| section.span.clone(), |entry| entry.span);
    Diagnostic::new(span, "the measured time is too short for the stepped rate")
        .with_label(format!(
            "`duration` is {duration}, and one pass through the rates takes {length}"
        ))
        .with_help("raise `duration`, or shorten the schedule, which repeats after the last rate")
        .add_to(section.parser);
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

/// A design with its keys that are single values, or their defaults.
fn scalars(section: &Section<'_>, all_probes: &[String]) -> Design {
    let number = |name: &str| {
        let number = section.number(name).and_then(|given| given.value);
        number.map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    };
    let time = |name: &str, seconds: u64| {
        section.value(name, value::duration).unwrap_or(Nanoseconds::from_secs(seconds))
    };
    let positive = |name: &str| section.value(name, value::positive_duration);
    let switch = |name: &str, default: bool| section.value(name, value::switch).unwrap_or(default);
    let cpus = |name: &str| section.value(name, cpus).unwrap_or_default();
    let repetitions = number("repetitions").unwrap_or(5);
    let is_voiding = section
        .value("void_blocks", |entry| value::word(entry, &[("repeat", true), ("keep", false)]));
    let order = section.value("order", |entry| {
        let words = [("interleaved", Order::Interleaved), ("sequential", Order::Sequential)];
        value::word(entry, &words)
    });
    let order = order.unwrap_or(Order::Interleaved);
    Design {
        questions: section.value("question", questions).unwrap_or_default(),
        factors: Vec::new(),
        loads: Vec::new(),
        baseline: BTreeMap::new(),
        repetitions,
        repetitions_min: None,
        void_repeats: match (is_voiding.unwrap_or(true), order) {
            (true, Order::Interleaved) => repetitions.saturating_sub(1) / 2,
            _ => 0,
        },
        requirements: section.value("require", requirements).unwrap_or_default(),
        order,
        seed: section.number("seed").and_then(|given| given.value).map(Seed),
        warm_up: time("warm_up", 5),
        duration: positive("duration").unwrap_or(Nanoseconds::from_secs(30)),
        until_steady: None,
        rest: time("rest", 2),
        run_off: positive("run_off"),
        drop_caches: switch("drop_caches", false),
        probes_off: section
            .value("probes_off", |entry| probes(entry, all_probes))
            .unwrap_or_default(),
        threshold: section.value("threshold", value::fraction).unwrap_or(0.03),
        budget: positive("budget"),
        statement_timeout: time("statement_timeout", 60),
        retries: number("retries").unwrap_or(3),
        workers: number("workers"),
        generators: None,
        server_hosts: Vec::new(),
        trial_hosts: Vec::new(),
        generator_cpus: cpus("generator_cpus"),
        server_cpus: cpus("server_cpus"),
        reuse: switch("reuse", true),
        data_folder: section.value("data_folder", value::text),
    }
}

fn requirements(entry: &Entry<'_>) -> Option<Vec<Requirement>> {
    match entry.value {
        DeValue::Array(_) => listed(entry, requirement, Requirement::to_string),
        _ => requirement(entry).map(|one| vec![one]),
    }
}

fn requirement(entry: &Entry<'_>) -> Option<Requirement> {
    let expected = "a requirement such as \"p99 <= 20ms\" or \"throughput >= 1000\"";
    let text = value::string(entry, expected)?;
    value::parsed(entry, text.parse::<Requirement>())
}

fn cpus(entry: &Entry<'_>) -> Option<Vec<u32>> {
    const CPU_MAX: u64 = 4095;
    let reader = |entry: &Entry<'_>| integer(entry, (0, CPU_MAX)).map(|cpu| cpu as u32);
    listed(entry, reader, u32::to_string)
}

fn questions(entry: &Entry<'_>) -> Option<Vec<Question>> {
    let word = |entry: &Entry<'_>| value::word(entry, &Question::ALL);
    match entry.value {
        DeValue::Array(_) => listed(entry, word, |one| one.word().to_owned()),
        _ => word(entry).map(|one| vec![one]),
    }
}

fn probes(entry: &Entry<'_>, all: &[String]) -> Option<Vec<String>> {
    let names: Vec<(&str, &String)> = all.iter().map(|name| (name.as_str(), name)).collect();
    let reader = |entry: &Entry<'_>| value::word(entry, &names).cloned();
    listed(entry, reader, String::clone)
}

/// Keys about private servers need one.
fn check_places(&Draft { section, variants, .. }: &Draft<'_>) {
    // While a variant is unknown, nothing can be said about all of them.
    let Some(variants) = variants else { return };
    let products = || variants.iter().map(|variant| &variant.database.product);
    let is_all_url = products().all(|product| matches!(product, Product::Url(_)));
    let has_process = products()
        .any(|product| matches!(product, Product::Private(name) if !section.parser.vocabulary.is_embedded(name)));
    let refuse = |name: &str, why: &str| {
        if let Some(entry) = section.entry(name) {
            Diagnostic::new(entry.key_span, format!("`{name}` has no effect here"))
                .with_label(why)
                .with_help("leave this key out")
                .add_to(section.parser);
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
    parser: &Parser<'_>,
    factors: Option<&[Factor]>,
    repetitions: u32,
    vary_span: Range<usize>,
) {
    let Some(factors) = factors else { return };
    let times = |n: usize, factor: &Factor| n.checked_mul(factor.levels.len());
    let n_trials = factors.iter().try_fold(repetitions as usize, times).unwrap_or(usize::MAX);
    if n_trials > TRIALS_MAX {
        let message = format!("the design asks for more than {TRIALS_MAX} trials");
        Diagnostic::new(vary_span, message)
            .with_label("all levels of all factors are combined")
            .with_help("vary fewer factors at once, or fewer levels of each")
            .add_to(parser);
    }
}
