//! Shared by `dyno pgbench`, `dyno sysbench` and `dyno watch`: the one trial of their study, and its record.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::Context;
use dyno_database::Endpoint;
use dyno_host::Keeper;
use dyno_lab::{Lab, RunOrder, Watching};
use dyno_load::AbortFlag;
use dyno_record::{Event, EventKind};
use dyno_study::Study;
use dyno_units::{Clock, Nanoseconds, PercentEncoded, Seed};

use crate::written::Written;
use crate::{signals, terminal, vocabulary};

/// The password's placeholder in the study.
const PASSWORD: &str = "SERVER_PASSWORD";

pub(crate) fn url(endpoint: &Endpoint) -> String {
    let url = endpoint.to_string();
    match (&endpoint.password, url.split_once('@')) {
        (Some(_), Some((user, rest))) => format!("{user}:${{{PASSWORD}}}@{rest}"),
        _ => url,
    }
}

/// The study that a tool has written, for a server at this endpoint if it has one.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn read(
    written: &Written,
    endpoint: Option<&Endpoint>,
    lab: &Lab,
) -> anyhow::Result<(Study, String)> {
    let words = vocabulary::vocabulary_of(&lab.products, &lab.catalog);
    let mut study = written.read_with(&words).context("the run cannot be planned")?;
    let password = endpoint.and_then(|endpoint| endpoint.password.as_ref()).map(|password| {
        PercentEncoded { bytes: password.reveal().as_bytes(), keep: b"" }.to_string()
    });
    study.map_urls(|_, url| {
        let place = format!("${{{PASSWORD}}}");
        Ok::<_, anyhow::Error>(url.replace(&place, password.as_deref().unwrap_or_default()))
    })?;
    Ok((study, written.text().to_owned()))
}

/// Told only at a terminal or on request: programs that parse the other tool's messages see no others.
pub(crate) fn tell_of_record(folder: Option<&Path>, is_asked: bool) {
    let is_said = is_asked || std::io::stderr().is_terminal();
    let Some(folder) = folder.filter(|_| is_said) else { return };
    let folder = folder.display();
    terminal::say(&format!("record: {folder}; `dyno report {folder}` makes a report from it"));
}

/// The time at which a signal asked the run to end.
#[derive(Clone, Default)]
pub(crate) struct Interruption(Arc<OnceLock<Nanoseconds>>);

impl Interruption {
    pub(crate) fn listen(
        abort: &AbortFlag,
        clock: &Arc<dyn Clock>,
    ) -> anyhow::Result<Interruption> {
        let interruption = Interruption::default();
        let (noted, abort, clock) = (interruption.clone(), abort.clone(), Arc::clone(clock));
        signals::on_first(move || {
            let _ = noted.0.set(clock.now());
            abort.raise();
            dyno_database::stop_waiting();
        })?;
        Ok(interruption)
    }

    /// None without a signal.
    pub(crate) fn at(&self) -> Option<Nanoseconds> {
        self.0.get().copied()
    }

    pub(crate) fn heading(length: Nanoseconds) -> String {
        format!("interrupted after {:.2} s", length.as_secs_f64())
    }
}

/// What the system says of a failure, as C programs write it.
pub(crate) fn system_message(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// The results are printed all the same. False, for a failed command, if the user asked for the record.
pub(crate) fn tell_of_failed_record(error: &anyhow::Error, is_asked: bool) -> bool {
    terminal::say(&format!("warning: the record of these results is not whole: {error:#}"));
    !is_asked
}

/// Measures the one trial of a study; `on_interval` is told the second of each interval. Why the trial failed, if it
/// has, comes with the result.
pub(crate) fn measure(
    lab: &Lab,
    (study, source): &(Study, String),
    folder: &Folder,
    on_interval: &mut dyn FnMut(i64),
) -> (anyhow::Result<()>, Option<String>) {
    let mut failure = None;
    let result =
        watch(lab, (study, source), (folder.path(), None), &mut |event| match &event.kind {
            EventKind::TrialFailed { message, .. } => failure = Some(message.clone()),
            EventKind::IntervalEnded { second, .. } => on_interval(*second),
            _ => {}
        });
    (result, failure)
}

/// Runs the study, perhaps with somebody who looks on while nothing is sent.
pub(crate) fn watch(
    lab: &Lab,
    (study, source): (&Study, &str),
    (folder, watching): (&Path, Option<Watching>),
    observe: &mut dyn FnMut(&Event),
) -> anyhow::Result<()> {
    let plan = dyno_study::plan(study, Seed(1));
    let planned = super::Planned::new(lab, (study, source), plan)?;
    let order = RunOrder { watching, ..planned.order(folder) };
    dyno_lab::run(lab, &order, &mut |event| observe(event))?;
    Ok(())
}

/// The folder of a record.
pub(crate) struct Folder {
    pub(super) path: PathBuf,
    /// The folder around it that is removed at the end, unless the record is wanted.
    pub(super) passing: Option<(Arc<Keeper>, PathBuf)>,
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The next run removes what stays behind.
        let _ = self.passing.as_ref().map(|(keeper, folder)| keeper.remove_folder(folder));
    }
}

impl Folder {
    /// The folder that `record` names, or one under `runs` with the tool's name. If none can be
    /// made and none was named, nothing is kept, and the user is told. Fails if the folder is not
    /// empty or cannot be made.
    pub(crate) fn choose(
        tool: &str,
        record: Option<impl AsRef<Path>>,
        no_record: bool,
        lab: &Lab,
    ) -> anyhow::Result<Folder> {
        let passing = || Folder::passing(tool, &lab.keeper).context("cannot create a folder");
        if no_record {
            return passing();
        }
        let path = match record {
            Some(folder) => {
                let folder = folder.as_ref();
                let is_empty = std::fs::read_dir(folder).map(|mut all| all.next().is_none());
                if folder.exists() && !is_empty.unwrap_or(false) {
                    let folder = folder.display();
                    anyhow::bail!("--record {folder}: the folder is not empty; name a new one");
                }
                folder.to_owned()
            }
            None => {
                let mut names = super::numbered(tool).map(|name| Path::new("runs").join(name));
                let path = names.find(|path| !path.exists()).context("all names are taken")?;
                if let Err(error) = dyno_record::make_run_folder(&path) {
                    terminal::say(&format!(
                        "warning: no record is kept: {error}; --record=FOLDER names another folder, \
                         --no-record keeps none"
                    ));
                    return passing();
                }
                path
            }
        };
        Ok(Folder { path, passing: None })
    }

    pub(super) fn passing(tool: &str, keeper: &Arc<Keeper>) -> anyhow::Result<Folder> {
        let folder = keeper.make_folder(tool)?;
        let passing = Some((Arc::clone(keeper), folder.clone()));
        Ok(Folder { path: folder.join("record"), passing })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn kept(&self) -> Option<PathBuf> {
        (self.passing.is_none() && self.path.is_dir()).then(|| self.path.clone())
    }
}
