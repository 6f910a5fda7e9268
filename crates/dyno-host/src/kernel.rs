//! Kernel settings that a study changes for a trial, and how they are put back. They belong to the
//! machine: changes are noted in one file for all Dynos in `/run`, which a boot empties as it
//! resets the settings. The file is written before the first change and locked by the run that may
//! change settings; the next Dyno puts back what a killed one changed. And how the page cache is
//! emptied.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use dyno_units::{Clock, Nanoseconds, locked};
use rustix::fs::{Access, Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::error::{KeeperError, OrKeeper, Result};
use crate::keeper::{open_own, take_lock};
use crate::kernel_text::meminfo_bytes;
use crate::storage::{chosen, write_setting};

const NOTE: &str = "run/dyno-kernel.json";
/// A starting process shares its parent's locks until it runs its own program.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Nanoseconds = Nanoseconds::from_millis(5);

struct Known {
    name: &'static str,
    values: Values,
    /// Of a pair: set to zero by the kernel when this one is set.
    partner: Option<&'static str>,
}

#[derive(Clone, Copy)]
enum Values {
    /// A whole number in this range.
    Numbers(u64, u64),
    Words(&'static [&'static str]),
}

use Values::{Numbers, Words};

/// All that may be changed. Not what acts once and has no value (`vm.drop_caches`), and not what
/// can make other programs fail (`vm.overcommit_memory`, `vm.min_free_kbytes`, `vm.panic_on_oom`).
#[rustfmt::skip]
const KNOWN: &[Known] = &[
    known("transparent_hugepage.defrag", Words(&["always", "defer", "defer+madvise", "madvise", "never"])),
    known("transparent_hugepage.enabled", Words(&["always", "madvise", "never"])),
    known("vm.compaction_proactiveness", Numbers(0, 100)),
    pair("vm.dirty_background_bytes", Numbers(1, 1 << 40), "vm.dirty_background_ratio"),
    pair("vm.dirty_background_ratio", Numbers(0, 100), "vm.dirty_background_bytes"),
    // The kernel's minimum is two pages of up to 64 KiB.
    pair("vm.dirty_bytes", Numbers(131_072, 1 << 40), "vm.dirty_ratio"),
    known("vm.dirty_expire_centisecs", Numbers(0, 8_640_000)),
    pair("vm.dirty_ratio", Numbers(1, 100), "vm.dirty_bytes"),
    known("vm.dirty_writeback_centisecs", Numbers(0, 8_640_000)),
    known("vm.nr_hugepages", Numbers(0, 1 << 24)),
    known("vm.page-cluster", Numbers(0, 10)),
    known("vm.swappiness", Numbers(0, 200)),
    known("vm.vfs_cache_pressure", Numbers(0, 1000)),
    known("vm.watermark_scale_factor", Numbers(1, 3000)),
    known("vm.zone_reclaim_mode", Numbers(0, 7)),
];

const fn known(name: &'static str, values: Values) -> Known {
    Known { name, values, partner: None }
}

const fn pair(name: &'static str, values: Values, partner: &'static str) -> Known {
    Known { name, values, partner: Some(partner) }
}

impl Known {
    fn find(name: &str) -> Option<&'static Known> {
        KNOWN.iter().find(|known| known.name == name)
    }

    fn path(&self) -> String {
        match self.name.split_once('.') {
            Some(("vm", name)) => format!("proc/sys/vm/{name}"),
            Some((folder, name)) => format!("sys/kernel/mm/{folder}/{name}"),
            None => self.name.to_owned(),
        }
    }

    fn expected(&self) -> String {
        match self.values {
            Numbers(least, most) => format!("a whole number from {least} to {most}"),
            Words(words) => format!("one of {}", words.join(", ")),
        }
    }
}

pub fn kernel_settings() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|known| known.name)
}

/// Why no study can set this value; `None` if it can, given a machine with the setting.
pub fn kernel_setting_problem(name: &str, value: &str) -> Option<String> {
    let Some(known) = Known::find(name) else {
        let names: Vec<&str> = kernel_settings().collect();
        return Some(format!(
            "`{name}` is not a kernel setting that Dyno can change; choose one of {}",
            names.join(", ")
        ));
    };
    let is_right = match known.values {
        Numbers(least, most) => value.parse().is_ok_and(|number| (least..=most).contains(&number)),
        Words(words) => words.contains(&value),
    };
    (!is_right).then(|| format!("`{name}` must be {}, not `{value}`", known.expected()))
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Change {
    name: String,
    before: String,
    value: String,
    /// Name and value that put it back: its own, or its partner's.
    back: (String, String),
}

#[derive(Default, Serialize, Deserialize)]
struct Note {
    /// Of the Dyno that has locked the file.
    pid: u32,
    changes: Vec<Change>,
}

#[derive(Debug, Default)]
struct PutBack {
    put_back: Vec<String>,
    /// Changed by somebody else since.
    left_alone: Vec<String>,
}

#[derive(Debug)]
struct Held {
    file: File,
    changes: Vec<Change>,
}

/// Those that Dyno may change.
#[derive(Debug)]
pub struct KernelSettings {
    root: PathBuf,
    held: Mutex<Option<Held>>,
}

impl KernelSettings {
    /// `root` holds `proc`, `sys` and `run`.
    pub(crate) fn new(root: &Path) -> KernelSettings {
        KernelSettings { root: root.to_owned(), held: Mutex::default() }
    }

    /// Why these cannot be set now and together; empty if they can.
    pub fn problems(&self, settings: &BTreeMap<String, String>) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, value) in settings {
            if let Some(problem) = kernel_setting_problem(name, value) {
                problems.push(problem);
                continue;
            }
            let Some(known) = Known::find(name) else { continue };
            let partner = known.partner.filter(|partner| settings.contains_key(*partner));
            if let Some(partner) = partner.filter(|partner| *partner > name.as_str()) {
                problems.push(format!(
                    "`{name}` and `{partner}` exclude each other: the kernel sets one to 0 when the other \
                     is set"
                ));
            }
            let path = self.root.join(known.path());
            if !path.exists() {
                problems.push(format!("this kernel has no `{name}` ({})", path.display()));
            } else if let Err(error) = rustix::fs::access(&path, Access::WRITE_OK) {
                problems.push(format!(
                    "to change kernel settings, Dyno needs root privileges: {}: {error}",
                    path.display()
                ));
            }
        }
        if !settings.is_empty() && locked(&self.held).is_none() {
            problems.extend(self.held_by_another());
        }
        problems
    }

    /// Locks the settings until [`KernelSettings::release`] or the process ends, and returns how it
    /// put back a killed Dyno's. Fails if another Dyno has the lock, or the file cannot be made.
    pub fn hold(&self, clock: &dyn Clock) -> Result<Vec<String>> {
        let mut held = locked(&self.held);
        if held.is_some() {
            return Ok(Vec::new());
        }
        let path = self.root.join(NOTE);
        for attempt in 0..LOCK_TRIES {
            if attempt > 0 {
                clock.sleep_until(clock.now() + LOCK_PAUSE);
            }
            let flags = OFlags::RDWR | OFlags::CREATE;
            let file = open_own(&path, flags, Mode::from_raw_mode(0o600)).at(&path)?;
            // The previous holder may have removed the file.
            if take_lock(&file, &path) {
                let done = self.put_back_all(&read(&file).changes)?;
                *held = Some(Held { file, changes: Vec::new() });
                return Ok([done.put_back, done.left_alone].concat());
            }
        }
        Err(KeeperError(self.held_by_another().unwrap_or_else(|| {
            "another Dyno process is changing kernel settings: wait until it has ended".to_owned()
        })))
    }

    /// Only while held, until [`KernelSettings::put_back`]; if the kernel refuses one, none stays.
    pub fn change(&self, settings: &BTreeMap<String, String>) -> Result<()> {
        let mut held = locked(&self.held);
        let Some(held) = held.as_mut() else {
            return Err(KeeperError("kernel settings are changed but not held".to_owned()));
        };
        self.restore(held)?;
        let changes = self.planned(settings)?;
        // A Dyno killed here has changed nothing yet.
        held.write(changes)?;
        let result = held.changes.iter().try_for_each(|change| {
            self.write(&change.name, &change.value)?;
            let now = self.read(&change.name)?;
            if same(&now, &change.value) {
                return Ok(());
            }
            Err(KeeperError(format!(
                "the kernel did not keep `{}` = {}: it is now {now}",
                change.name, change.value
            )))
        });
        if result.is_err() {
            // The first error matters; the end of the trial tries again.
            let _ = self.restore(held);
        }
        result
    }

    /// Returns what others changed since, which is left alone. Fails if something stays changed.
    pub fn put_back(&self) -> Result<Vec<String>> {
        locked(&self.held).as_mut().map_or(Ok(Vec::new()), |held| self.restore(held))
    }

    /// Puts changes back, and unlocks.
    pub fn release(&self) {
        let mut held = locked(&self.held);
        let Some(mut lock) = held.take() else { return };
        // What stays is noted for the next Dyno.
        if self.restore(&mut lock).is_ok() {
            let _ = fs::remove_file(self.root.join(NOTE));
        }
    }

    /// In force; without those that do not exist here.
    pub fn values<'n>(&self, names: impl Iterator<Item = &'n str>) -> BTreeMap<String, String> {
        let value = |name: &str| Some((name.to_owned(), self.read(name).ok()?));
        names.filter_map(value).collect()
    }

    /// For a killed Dyno. Returns what was done.
    pub(crate) fn put_back_left_over(&self, clock: &dyn Clock) -> Vec<String> {
        // Another user's note, such as root's, is for that user's Dyno.
        let me = rustix::process::geteuid().as_raw();
        let note = fs::symlink_metadata(self.root.join(NOTE));
        if locked(&self.held).is_some() || note.map_or(true, |facts| facts.uid() != me) {
            return Vec::new();
        }
        let said = match self.hold(clock) {
            Ok(said) => said,
            // A running Dyno keeps its changes.
            Err(_) if self.held_by_another().is_some() => return Vec::new(),
            Err(why) => {
                vec![format!("a run that was killed has left kernel settings changed: {why}")]
            }
        };
        self.release();
        said
    }

    fn held_by_another(&self) -> Option<String> {
        let path = self.root.join(NOTE);
        let file = open_own(&path, OFlags::RDWR, Mode::empty()).ok()?;
        let is_held = !take_lock(&file, &path) && path.exists();
        is_held.then(|| {
            let pid = read(&file).pid;
            format!(
                "another Dyno process ({pid}) is changing kernel settings: wait until it has ended"
            )
        })
    }

    /// Without settings that already have the value.
    fn planned(&self, settings: &BTreeMap<String, String>) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        for (name, value) in settings {
            let before = self.read(name)?;
            if same(&before, value) {
                continue;
            }
            // One of a pair is zero and does not count.
            let partner = Known::find(name).and_then(|known| known.partner);
            let of_partner = match partner {
                Some(partner) => Some((partner.to_owned(), self.read(partner)?)),
                None => None,
            };
            let back = of_partner.filter(|(_, counts)| same(&before, "0") && !same(counts, "0"));
            let back = back.unwrap_or_else(|| (name.clone(), before.clone()));
            changes.push(Change { name: name.clone(), before, value: value.clone(), back });
        }
        Ok(changes)
    }

    /// Returns what is left alone.
    fn restore(&self, held: &mut Held) -> Result<Vec<String>> {
        if held.changes.is_empty() {
            return Ok(Vec::new());
        }
        let done = self.put_back_all(&held.changes)?;
        held.write(Vec::new())?;
        Ok(done.left_alone)
    }

    /// Only what is still as it was set. Tries all before returning an error.
    fn put_back_all(&self, changes: &[Change]) -> Result<PutBack> {
        let (mut done, mut failed) = (PutBack::default(), Vec::new());
        for Change { name, before, value, back } in changes.iter().rev() {
            // From another version, or forged.
            let is_known = Known::find(name)
                .is_some_and(|known| back.0 == *name || known.partner == Some(back.0.as_str()));
            if !is_known {
                done.left_alone.push(format!(
                    "a run that was killed recorded `{name}` as changed, but this version of Dyno \
                     does not change it: it is left alone"
                ));
                continue;
            }
            let result = self.read(name).and_then(|now| {
                if same(&now, value) {
                    self.write(&back.0, &back.1)?;
                    done.put_back.push(format!(
                        "restored the kernel's {} to {}: a run that was \
                        killed had changed it",
                        back.0, back.1
                    ));
                } else if !same(&now, before) {
                    done.left_alone.push(format!(
                        "the kernel's {name} was {before} until Dyno set it to {value}; something \
                         else has since set it to {now}, so it is left alone"
                    ));
                }
                Ok(())
            });
            failed.extend(result.err().map(|error| error.0));
        }
        if failed.is_empty() { Ok(done) } else { Err(KeeperError(failed.join("; "))) }
    }

    fn read(&self, name: &str) -> Result<String> {
        let path = self.path(name)?;
        let text = fs::read_to_string(&path).at(&path)?;
        Ok(chosen(&text).to_owned())
    }

    fn write(&self, name: &str, value: &str) -> Result<()> {
        write_setting(&self.path(name)?, value)
    }

    fn path(&self, name: &str) -> Result<PathBuf> {
        let known = Known::find(name)
            .or_keeper(|| format!("Dyno does not change the kernel setting `{name}`"))?;
        Ok(self.root.join(known.path()))
    }
}

impl Drop for KernelSettings {
    fn drop(&mut self) {
        self.release();
    }
}

impl Held {
    fn write(&mut self, changes: Vec<Change>) -> Result<()> {
        let note = Note { pid: std::process::id(), changes };
        let mut write = || -> std::io::Result<()> {
            let text = serde_json::to_vec(&note)?;
            // First: a Dyno killed in between leaves an empty note, when nothing is changed.
            self.file.set_len(0)?;
            self.file.rewind()?;
            self.file.write_all(&text)
        };
        write().or_keeper(|| "the changes to the kernel cannot be recorded")?;
        self.changes = note.changes;
        Ok(())
    }
}

/// Empty if the file is incomplete.
fn read(file: &File) -> Note {
    let mut text = String::new();
    let is_read = file.take(1 << 16).read_to_string(&mut text).is_ok();
    is_read.then(|| serde_json::from_str(&text).ok()).flatten().unwrap_or_default()
}

fn same(one: &str, other: &str) -> bool {
    match (one.trim().parse::<u64>(), other.trim().parse::<u64>()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one.trim() == other.trim(),
    }
}

/// Writing 1 here drops all clean pages.
const DROP: &str = "/proc/sys/vm/drop_caches";

/// `None` if it can be emptied.
pub fn page_cache_problem() -> Option<String> {
    rustix::fs::access(DROP, Access::WRITE_OK).err().map(|error| {
        format!(
            "to drop the page cache (`drop_caches`), Dyno needs root privileges: {DROP}: {error}"
        )
    })
}

/// Writes back and empties the cache; returns its bytes before and after. Fails without the right.
pub fn drop_page_cache() -> Result<(u64, u64)> {
    let cached = || -> Result<u64> {
        let text = fs::read_to_string("/proc/meminfo").or_keeper(|| "/proc/meminfo")?;
        Ok(cached_bytes(&text))
    };
    let before = cached()?;
    rustix::fs::sync();
    fs::write(DROP, "1").or_keeper(|| DROP)?;
    Ok((before, cached()?))
}

/// `Cached` and `Buffers` of `/proc/meminfo`.
fn cached_bytes(meminfo: &str) -> u64 {
    ["Cached", "Buffers"].iter().filter_map(|name| meminfo_bytes(meminfo, name)).sum()
}

#[cfg(test)]
mod tests;
