//! Writes the options of `dyno watch` as a study.

use std::path::PathBuf;

use dyno_study::Study;
use dyno_units::Nanoseconds;

use crate::written::Written;

/// Ten years: until the user ends it.
const LONGEST: Nanoseconds = Nanoseconds::from_secs(10 * 365 * 24 * 3600);

/// Options of `dyno watch`.
#[derive(clap::Args)]
pub(crate) struct WatchOptions {
    /// URL of a running server; without it (and without --pid), only this host is watched
    pub(super) url: Option<String>,
    /// A process to watch with all its descendants: the server's, or any other
    #[arg(long, value_name = "PID", value_parser = process_id)]
    pub(super) pid: Option<i32>,
    /// How often to read
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(super) every: String,
    /// How long to watch [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = length)]
    pub(super) r#for: Option<Nanoseconds>,
    /// Keep a record in this folder, and write its report
    #[arg(long, value_name = "FOLDER")]
    pub(super) record: Option<PathBuf>,
    /// A probe to leave out; may be repeated
    #[arg(long, value_name = "PROBE", value_parser = clap::builder::PossibleValuesParser::new(crate::vocabulary::probes()))]
    pub(super) probes_off: Vec<String>,
    /// Serve the latest readings as OpenMetrics text on this loopback address, such as 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS")]
    pub(super) metrics: Option<String>,
}

fn process_id(text: &str) -> Result<i32, String> {
    text.parse().map_err(|_| "it is not the number of a process, such as 4711".to_owned())
}

fn length(text: &str) -> Result<Nanoseconds, String> {
    let length = dyno_units::parse_duration(text).map_err(|error| error.to_string())?;
    let is_enough = length >= Nanoseconds::from_secs(2);
    is_enough.then_some(length).ok_or_else(|| "watch for at least 2s".to_owned())
}

/// Returns the study with its text; fails if an option is wrong.
pub(super) fn read(options: &WatchOptions, title: &str) -> anyhow::Result<(Study, String)> {
    let mut written = Written::new(title);
    match &options.url {
        Some(url) => {
            let scheme = url.split_once("://").map_or("server", |(scheme, _)| scheme);
            written.table(&["database", scheme]);
            written.line_of("URL", "url", url.as_str());
        }
        None => {
            written.table(&["database", if options.pid.is_some() { "process" } else { "host" }]);
            written.fixed("product", "host");
        }
    }
    written.table(&["workload", "none"]);
    written.line("every", options.every.as_str());
    if let Some(pid) = options.pid {
        written.line("pid", i64::from(pid));
    }
    written.table(&["design"]);
    written.fixed("repetitions", 1);
    written.fixed("rest", "0s");
    let length = options.r#for.unwrap_or(LONGEST);
    written.line_of("--for", "duration", format!("{}ms", length.0.div_ceil(1_000_000)));
    if !options.probes_off.is_empty() {
        written.line("probes_off", options.probes_off.clone());
    }
    Ok((written.read()?, written.text().to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use dyno_database::Endpoint;
    use dyno_host::{HostSpec, ThreadListing};
    use dyno_study::Product;
    use dyno_units::{Clock, ManualClock, Seed};

    use super::*;

    #[derive(Parser)]
    struct Watched {
        #[command(flatten)]
        options: WatchOptions,
    }

    fn read_words(words: &[&str]) -> anyhow::Result<Study> {
        let words = ["watch"].iter().chain(words);
        read(&Watched::try_parse_from(words)?.options, "x").map(|(study, _)| study)
    }

    #[test]
    fn what_is_watched_is_a_study_of_one_trial() {
        let check = |words: &[&str], product: &Product, seconds: u64, options: &[(&str, &str)]| {
            let study = read_words(words).unwrap();
            let plan = dyno_study::plan(&study, Seed(1));
            let [variant] = &plan.variants[..] else { panic!("{words:?}") };
            assert_eq!((&variant.database.product, plan.trials.len()), (product, 1));
            assert_eq!(plan.steps[0].duration, Nanoseconds::from_secs(seconds));
            assert_eq!((plan.steps[0].load.clients(), plan.steps[0].warm_up.0), (0, 0));
            let given = &variant.workload.options;
            let given: Vec<_> = given.iter().map(|(name, value)| (&**name, &**value)).collect();
            assert_eq!(given, options);
        };
        let host = Product::Private("host".to_owned());
        check(&[], &host, LONGEST.0 / 1_000_000_000, &[]);
        check(&["--pid", "7", "--for=1min"], &host, 60, &[("pid", "7")]);
        // An observed server needs no catalog.
        let url = "mysql://me@h";
        let server = Product::Url(url.to_owned());
        check(&[url, "--every", "5s", "--for", "1h"], &server, 3600, &[("every", "5s")]);
        let study = read_words(&["--probes-off", "data"]).unwrap();
        assert_eq!(study.design.probes_off, ["data"]);
    }

    #[test]
    fn what_is_wrong_is_said_of_the_option() {
        let check = |words: &[&str], expected: &str| {
            let error = read_words(words).expect_err("it is refused").to_string();
            assert!(error.contains(expected), "{words:?}: {error}");
        };
        check(&["--every", "10ms"], "must be at least 1 s");
        check(&["--every", "soon"], "every");
        check(&["--pid=-1"], "--pid");
    }

    #[test]
    fn every_probe_can_be_turned_off_by_its_name() {
        let clock: std::sync::Arc<dyn Clock> = std::sync::Arc::new(ManualClock::new());
        let mut probes = HostSpec::default().slow_probes(&clock);
        for url in ["mysql://me@h", "postgres://me@h"] {
            let endpoint = Endpoint::from_url_of_server(url).expect("a good URL");
            probes.extend(endpoint.protocol.probes(&endpoint, Some(&ThreadListing::default())));
        }
        assert!(probes.len() >= 10);
        for probe in probes {
            assert!(crate::vocabulary::probes().contains(&probe.name()), "{}", probe.name());
        }
    }
}
