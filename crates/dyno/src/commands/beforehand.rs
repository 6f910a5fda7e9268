//! Checks and messages before the first trial.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use dyno_database::Products;
use dyno_host::Keeper;
use dyno_lab::Lab;
use dyno_study::{Design, JobWork, Plan, ProbeSource, Study};
use dyno_units::{ByteCount, Nanoseconds};

use super::{StudyFile, counted, disk};
use crate::commands::plan::start_time;
use crate::terminal;

/// Whether a record can be written to a folder, or to one that does not exist yet.
pub(crate) fn check_place(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() && !folder.is_dir() {
        let name = folder.display();
        return Err(crate::usage_error(anyhow!(
            "{name} is a file; the record needs a folder: choose another with --out"
        )));
    }
    Ok(())
}

/// Whether servers accept their settings, as far as they can say before they start.
pub(crate) fn check_settings(lab: &Lab, plan: &Plan, design: &Design) -> anyhow::Result<()> {
    refuse(dyno_lab::check_settings(lab, plan, design), "\nnothing was run")
}

/// Also members with limits of their own. Not for an agent, which does not know the variants that have them.
pub(crate) fn check_deployments(lab: &Lab, plan: &Plan, design: &Design) -> anyhow::Result<()> {
    let memory = ByteCount(lab.environment.usable_memory_bytes());
    let mut refused = dyno_lab::check_members(&lab.products, plan, design, memory);
    refused.extend(dyno_lab::check_settings(lab, plan, design));
    refuse(refused, "\nnothing was run")
}

pub(crate) fn check_without_programs(
    (file, plan): (&StudyFile, &Plan),
    memory: ByteCount,
) -> anyhow::Result<()> {
    let known = (&file.products, &file.catalog);
    refuse(dyno_lab::check_without_programs(known, plan, &file.study.design, memory), "")
}

/// Whether another user has put a program where everybody may that a probe or a job would run here. It is looked at again
/// when it is started.
pub(crate) fn check_commands(study: &Study, plan: &Plan) -> anyhow::Result<()> {
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    for probe in &study.probes {
        if let ProbeSource::Command(words) = &probe.source {
            commands.push((format!("probe {}", probe.name), words.clone()));
        }
    }
    for variant in plan.variants.iter().filter(|variant| variant.database.on.is_none()) {
        let Some(job) = variant.job() else { continue };
        let name = format!("job {}", job.name);
        // Its arguments may be files that an earlier job made.
        if let JobWork::Command { command, .. } = &job.work {
            commands.push((name.clone(), command.iter().take(1).cloned().collect()));
        }
        commands.push((name, job.setup.into_iter().take(1).collect()));
    }
    let refused = commands.into_iter().filter_map(|(name, words)| {
        // What is not there is reported by the start.
        let error = dyno_units::refuse_planted(&words).err()?;
        (error.kind() == std::io::ErrorKind::Other).then(|| (name, error.to_string()))
    });
    refuse(refused.collect(), "")
}

/// Shows each reason once, with the first variant that has it.
fn refuse(mut refused: Vec<(String, String)>, end: &str) -> anyhow::Result<()> {
    let mut known = HashSet::new();
    refused.retain(|(_, why)| known.insert(why.clone()));
    let texts = refused.iter().map(|(variant, why)| format!("{variant}: {why}"));
    refuse_all(&texts.collect::<Vec<_>>(), end)
}

fn refuse_all(texts: &[String], end: &str) -> anyhow::Result<()> {
    let Some((last, others)) = texts.split_last() else { return Ok(()) };
    others.iter().for_each(|text| terminal::say(&format!("error: {text}")));
    Err(crate::usage_error(anyhow!("{last}{end}")))
}

pub(crate) fn check_volumes(
    keeper: &Keeper,
    format_devices: &[PathBuf],
    plan: &Plan,
) -> anyhow::Result<()> {
    refuse_all(&dyno_lab::check_volumes(keeper, format_devices, plan), "")
}

/// Multiple of the free space that is refused: estimates are rough, but a full disk harms all its
/// users.
const OUT_OF_REACH: u64 = 10;

/// Warns if the largest data set will not fit on the disk; refuses one far too large.
pub(crate) fn warn_of_disk(plan: &Plan, lab: &Lab) -> anyhow::Result<()> {
    let most = disk::most(&lab.products, plan, &dyno_lab::expected_disk(&lab.catalog, plan)?);
    let Ok(free) = dyno_host::free_bytes(lab.keeper.root()) else { return Ok(()) };
    if most / OUT_OF_REACH > free {
        let (most, free) = (ByteCount(most), ByteCount(free));
        return Err(crate::usage_error(anyhow!(
            "the largest server needs about {most} of disk space, and only {free} is free: use \
             fewer rows, or choose another disk with --data-folder"
        )));
    }
    if most > free {
        terminal::say(&format!(
            "warning: the largest server needs about {} of disk space, including the copy of its \
             data that is kept, and only {} is free; choose another disk with --data-folder",
            ByteCount(most),
            ByteCount(free)
        ));
    }
    Ok(())
}

pub(crate) fn headline(products: &Products, plan: &Plan, design: &Design, folder: &Path) -> String {
    let start = start_time(products, plan);
    let whole = |time: Nanoseconds| Nanoseconds::from_secs(time.0.div_ceil(1_000_000_000));
    let time = match plan.time_bounds(start) {
        // The end of open-ended work is unknown beforehand, and its limit is no guess.
        _ if plan.is_open_ended() => {
            let likely = whole(plan.time_likely(start, &BTreeMap::new()));
            format!("about {likely} (a guess, as some measurements end when their work is done)")
        }
        (least, most) if least == most => format!("about {}", whole(most)),
        (least, most) => format!("{} to {}", whole(least), whole(most)),
    };
    format!(
        "{}\n{} × {} = {}, {time}, excluding data loading; seed {}; record in {}",
        plan.title,
        counted(plan.variants.len(), "variant"),
        counted(design.repetitions as usize, "repetition"),
        counted(plan.trials.len(), "trial"),
        plan.seed.0,
        folder.display()
    )
}

#[cfg(test)]
mod tests {
    use super::{check_commands, check_place};

    #[test]
    fn programs_that_another_user_has_put_where_everybody_may_are_refused() {
        use std::os::unix::fs::{PermissionsExt, chown};
        let open = tempfile::tempdir().unwrap();
        std::fs::set_permissions(open.path(), PermissionsExt::from_mode(0o1777)).unwrap();
        let script = open.path().join("probe.sh");
        std::fs::write(&script, "").unwrap();
        let text = format!("[probe.p]\ncommand = [{:?}]", script.display().to_string());
        let text = format!(
            "title = 'x'\n[database.a]\nproduct = 'sqlite'\n[workload.oltp_point_select]\n\n{text}\n"
        );
        let file = open.path().join("study.toml");
        std::fs::write(&file, text).unwrap();
        let study = crate::commands::read_study(&file).unwrap().expect("it is valid").study;
        let plan = dyno_study::plan(&study, dyno_units::Seed(1));
        check_commands(&study, &plan).unwrap();
        if rustix::process::geteuid().is_root() {
            chown(&script, Some(54_321), None).unwrap();
            let error = check_commands(&study, &plan).unwrap_err().to_string();
            assert!(
                error.contains("probe p: ") && error.contains("belongs to user 54321"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_record_is_not_written_over_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("study.toml");
        std::fs::write(&file, "title = 'x'").unwrap();
        check_place(folder.path()).unwrap();
        check_place(&folder.path().join("new")).unwrap();
        let error = check_place(&file).unwrap_err();
        assert!(error.is::<crate::UsageError>(), "{error}");
        assert!(error.to_string().contains("is a file"), "{error}");
    }

    #[test]
    fn a_time_that_is_not_known_beforehand_is_a_guess_and_no_span() {
        let source = "title = 'x'\n[database.a]\nproduct = 'simulated'\n[workload.insert-benchmark]\n\
                      [design]\nclients = 1\n";
        let study = dyno_study::parse(source, &crate::vocabulary::vocabulary()).unwrap();
        let plan = dyno_study::plan(&study, dyno_units::Seed(1));
        let text = super::headline(&dyno_lab::products(), &plan, &study.design, "x".as_ref());
        assert!(
            text.contains("(a guess, as some measurements end") && !text.contains(" to "),
            "{text}"
        );
    }
}
