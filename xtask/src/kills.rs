//! `cargo xtask kills`: kills commands at random moments and completes them; finds what is lost, doubled or left.

mod left;
mod place;
mod server;
mod subject;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use dyno_units::Seed;

use left::Before;
use place::{Fault, Place, Wrong};
use server::Server;
use subject::{KINDS, Kind};

const USAGE: &str = "\
usage: cargo xtask kills [--until N] [--only KIND] [--seed N] [--dyno PROGRAM] [--folder FOLDER]
It ends when N kills are counted in target/kills.tsv; the same command continues one that was interrupted.
To begin anew, remove that file.
FOLDER is on a disk, and the servers' users can enter it.";

/// Of one command, which starts again after each.
const MOST_KILLS: usize = 3;

#[derive(Debug)]
struct Plan {
    until: u64,
    only: Option<String>,
    seed: u64,
    dyno: Option<PathBuf>,
    folder: PathBuf,
}

/// By kind: kills, and killed commands that lost, doubled or left something.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts(BTreeMap<String, [u64; 4]>);

/// Kinds take turns, with a line each; fails if anything is lost, doubled or left.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let plan = parsed(arguments)?;
    let dyno = match &plan.dyno {
        Some(dyno) => dyno.canonicalize().context("there is no such program")?,
        None => crate::perf::build()?,
    };
    let file = crate::shell::root().join("target/kills.tsv");
    let mut counts = Counts::read(&std::fs::read_to_string(&file).unwrap_or_default());
    crate::shell::say(&format!(
        "seed {}; counted so far: {} kills",
        plan.seed,
        counts.kills(&plan.only)
    ));
    let server = Server::start(&dyno, &plan.folder)?;
    let mut controls = BTreeMap::new();
    let mut n_ended = 0;
    while counts.kills(&plan.only) < plan.until {
        let kind = counts.next(&plan.only).context("`--only` names no kind")?;
        let control = match controls.get_mut(kind.name) {
            Some(control) => control,
            None => {
                let control = Control::of(kind, &dyno, &plan.folder, &server)
                    .with_context(|| format!("{}, without a kill", kind.name))?;
                controls.entry(kind.name).or_insert(control)
            }
        };
        let counted = counts.0.entry(kind.name.to_owned()).or_default();
        let mut random = Seed(plan.seed).derive(kind.name, counted[0] + n_ended).stream();
        let n_kills = (random.unit() * MOST_KILLS as f64) as usize + 1;
        let moments: Vec<Duration> =
            (0..n_kills).map(|_| control.took.mul_f64(random.unit())).collect();
        let place = Place::new(&dyno, &plan.folder)?;
        let (killed, wrong) = tried(kind, &place, &server, (&moments, control))?;
        crate::shell::say(&said(kind, &killed, &wrong, &place));
        counted[0] += killed.len() as u64;
        n_ended += u64::from(killed.is_empty());
        for fault in [Fault::Lost, Fault::Doubled, Fault::Left] {
            counted[fault as usize + 1] += u64::from(wrong.iter().any(|(one, _)| *one == fault));
        }
        if wrong.is_empty() {
            place.remove()?;
        }
        std::fs::write(&file, counts.written()).context("cannot write the counts")?;
    }
    crate::shell::say(&counts.written());
    match counts.0.values().any(|[_, wrong @ ..]| wrong.iter().any(|n| *n > 0)) {
        true => bail!("something was lost, doubled or left over"),
        false => Ok(()),
    }
}

fn said(kind: &Kind, killed: &[Duration], wrong: &[Wrong], place: &Place) -> String {
    let moments: Vec<String> =
        killed.iter().map(|after| format!("{:.2}", after.as_secs_f64())).collect();
    let mut text = match moments.is_empty() {
        true => format!("{}: it had ended", kind.name),
        false => format!("{}: killed after {} s", kind.name, moments.join(", ")),
    };
    for (fault, what) in wrong {
        text += &format!("\n    {fault:?}: {what} ({})", place.folder().display());
    }
    text
}

struct Control {
    took: Duration,
    names: Vec<String>,
    n_trials: u64,
}

impl Control {
    fn of(kind: &Kind, dyno: &Path, folder: &Path, server: &Server) -> anyhow::Result<Control> {
        let place = Place::new(dyno, folder)?;
        let before = Before::now();
        kind.prepare(&place, server)?;
        let began = std::time::Instant::now();
        place
            .good(&kind.command(server))
            .with_context(|| format!("in {}", place.folder().display()))?;
        let took = began.elapsed();
        let mut wrong = kind.complete(&place, server)?;
        wrong.extend(before.left(place.folder()));
        let names = place.names();
        let n_trials = place.n_trials()?;
        if !wrong.is_empty() {
            bail!("{wrong:?} ({})", place.folder().display());
        }
        place.remove()?;
        crate::shell::say(&format!("{}: {:.2} s without a kill", kind.name, took.as_secs_f64()));
        Ok(Control { took, names, n_trials })
    }
}

/// Kills a command at these moments, completes it, and checks the outcome; returns the kills that met it alive.
fn tried(
    kind: &Kind,
    place: &Place,
    server: &Server,
    (moments, control): (&[Duration], &mut Control),
) -> anyhow::Result<(Vec<Duration>, Vec<Wrong>)> {
    let before = Before::now();
    kind.prepare(place, server)?;
    let (mut killed, mut wrong, mut ended) = (Vec::new(), Vec::new(), BTreeMap::new());
    for after in moments {
        if let Some(took) = place.killed(&kind.command(server), *after)? {
            // The machine is less busy than before.
            control.took = if killed.is_empty() { took } else { control.took };
            break;
        }
        killed.push(*after);
        for (file, bytes) in place.ended() {
            ended.entry(file).or_insert(bytes);
        }
        if !ended.is_empty()
            && let Err(error) = place.good(&["report", "run", "--format", "json"])
        {
            wrong.push((Fault::Lost, format!("the record cannot be read: {error:#}")));
        }
    }
    match kind.complete(place, server) {
        Ok(all) => wrong.extend(all),
        Err(error) => wrong.push((Fault::Lost, format!("it cannot be completed: {error:#}"))),
    }
    let now = place.ended();
    for file in ended.iter().filter(|(file, bytes)| now.get(*file) != Some(*bytes)) {
        wrong.push((Fault::Lost, format!("{} has changed", file.0.display())));
    }
    match place.n_trials()?.cmp(&control.n_trials) {
        std::cmp::Ordering::Less => wrong.push((Fault::Lost, "a trial is missing".to_owned())),
        std::cmp::Ordering::Greater => wrong.push((Fault::Doubled, "a trial".to_owned())),
        std::cmp::Ordering::Equal => {}
    }
    wrong.extend(before.left(place.folder()));
    let more = place.names().into_iter().filter(|name| !control.names.contains(name));
    wrong.extend(more.map(|name| (Fault::Left, name)));
    Ok((killed, wrong))
}

fn parsed(arguments: &[String]) -> anyhow::Result<Plan> {
    let folder = PathBuf::from("/var/tmp");
    let mut plan = Plan { until: 20, only: None, seed: 1, dyno: None, folder };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("`{word}` wants a value\n{USAGE}"));
        match word.as_str() {
            "--until" => plan.until = value()?.parse().context("--until is a number")?,
            "--only" => plan.only = Some(value()?.clone()),
            "--seed" => plan.seed = value()?.parse().context("--seed is a number")?,
            "--dyno" => plan.dyno = Some(PathBuf::from(value()?)),
            "--folder" => plan.folder = PathBuf::from(value()?),
            other => bail!("`{other}` is unknown\n{USAGE}"),
        }
    }
    Ok(plan)
}

impl Counts {
    const HEADER: &str = "kind\tkills\tlost\tdoubled\tleft over\n";

    fn read(text: &str) -> Counts {
        let line = |line: &str| {
            let (kind, rest) = line.split_once('\t')?;
            let numbers: Vec<u64> = rest.split('\t').filter_map(|n| n.parse().ok()).collect();
            Some((kind.to_owned(), numbers.try_into().ok()?))
        };
        Counts(text.lines().filter_map(line).collect())
    }

    fn written(&self) -> String {
        let line = |(kind, numbers): (&String, &[u64; 4])| {
            format!("{kind}\t{}\n", numbers.map(|n| n.to_string()).join("\t"))
        };
        format!("{}{}", Counts::HEADER, self.0.iter().map(line).collect::<String>())
    }

    fn kills(&self, only: &Option<String>) -> u64 {
        let counted = self.0.iter().filter(|(kind, _)| only.as_ref().is_none_or(|o| o == *kind));
        counted.map(|(_, numbers)| numbers[0]).sum()
    }

    fn next(&self, only: &Option<String>) -> Option<&'static Kind> {
        let kinds = KINDS.iter().filter(|kind| only.as_ref().is_none_or(|o| o == kind.name));
        kinds.min_by_key(|kind| self.0.get(kind.name).map_or(0, |numbers| numbers[0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let plan = parsed(&words("--until 3 --seed 7 --only dump")).unwrap();
        assert_eq!((plan.until, plan.seed, plan.only.as_deref()), (3, 7, Some("dump")));
        assert!(parsed(&words("--kill 1")).unwrap_err().to_string().contains("usage"));
    }

    #[test]
    fn counts_go_on_with_the_kind_that_was_killed_least() {
        let all = KINDS.iter().map(|kind| (kind.name.to_owned(), [3, 0, 0, 1]));
        let mut counts = Counts(all.collect());
        counts.0.insert("dump".to_owned(), [2, 0, 0, 0]);
        assert_eq!(Counts::read(&counts.written()), counts);
        assert_eq!(counts.next(&None).unwrap().name, "dump");
        assert_eq!(counts.next(&Some("up".to_owned())).unwrap().name, "up");
        assert_eq!(counts.kills(&Some("dump".to_owned())), 2);
        assert_eq!(counts.kills(&None), 3 * KINDS.len() as u64 - 1);
    }
}
