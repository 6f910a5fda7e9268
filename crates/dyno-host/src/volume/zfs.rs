//! ZFS: a pool with one dataset on the volume's device, by the kernel's module or zfs-fuse. A pool
//! is destroyed only if the volume's folder notes its name and the random token that it carries. zfs-fuse
//! runs once on a machine: Dyno starts it if it does not run, with the mark of the volume's folder,
//! so that a later run can end it; one started by somebody else is used and left running.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use dyno_units::{ByteCount, Nanoseconds, VolumeSpec};
use serde::{Deserialize, Serialize};

use super::dismantle::BUSY;
use super::loop_device::BlockDevice;
use super::tool::Tools;
use crate::error::{KeeperError, OrKeeper, Result};
use crate::keeper::{FOLDER_MARK, Keeper, random_token, retry};
use crate::process_table::list_processes;

/// ZFS in user space; also the package's name.
const DAEMON: &str = "zfs-fuse";
/// Each has `zpool` and `zfs`.
const PACKAGE: &str = "zfsutils-linux` or `zfs-fuse";
const READY_LIMIT: Nanoseconds = Nanoseconds::from_secs(20);
/// The pool's property with Dyno's token.
const TOKEN_PROPERTY: &str = "dyno:token";
const DAEMON_LOG: &str = "zfs-fuse.log";
/// Cache sizes that zfs-fuse accepts.
const FUSE_ARC: [ByteCount; 2] = [ByteCount(16 << 20), ByteCount(16384 << 20)];
const KERNEL_ARC_LEAST: ByteCount = ByteCount(64 << 20);
/// Sets the cache size of the kernel's module.
pub(super) const KERNEL_ARC: &str = "/sys/module/zfs/parameters/zfs_arc_max";
pub(crate) const DEVICE_LEAST: ByteCount = ByteCount(64 << 20);
/// At a device's beginning and end, for labels of a pool.
const LABELS: usize = 1 << 20;

/// Properties that a study may set: how data are stored and cached, nothing that leads elsewhere
/// (`mountpoint`, `sharenfs`) or gives rights. Those with a star are the kernel's alone.
const PROPERTIES: &str = "atime checksum compression copies dedup direct* dnodesize* logbias \
    prefetch* primarycache recordsize redundant_metadata* relatime* secondarycache \
    special_small_blocks* sync* xattr";

fn properties() -> impl Iterator<Item = (&'static str, bool)> {
    PROPERTIES.split(' ').map(|one| (one.trim_end_matches('*'), !one.ends_with('*')))
}

/// Allowed in studies.
const POOL_OPTIONS: [&str; 2] = ["ashift", "autotrim"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zfs {
    Kernel,
    Fuse,
}

/// Noted before it is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pool {
    pub(crate) name: String,
    pub(crate) token: String,
}

impl Zfs {
    /// The packages exclude each other, as their programs have the same names.
    pub(crate) fn find(keeper: &Keeper) -> Result<Zfs> {
        if keeper.find_program(DAEMON, &[]).is_some() {
            return Ok(Zfs::Fuse);
        }
        if let Some(why) = super::check::unknown_to_the_kernel("zfs") {
            return Err(KeeperError(format!("{why}; or install the package `zfs-fuse`")));
        }
        keeper.needed_program("zpool", "zfsutils-linux").map(|_| Zfs::Kernel)
    }

    /// What it cannot do, in sentences without a full stop.
    pub(crate) fn problems(self, spec: &VolumeSpec) -> Vec<String> {
        let problem = |(name, value): (&String, &String)| self.property_problem(name, value);
        let mut problems: Vec<String> = spec.properties.iter().filter_map(problem).collect();
        if let Some(option) = spec.mount_options.first() {
            problems.push(format!(
                "`{option}` in `mount_options`: a dataset has `properties` instead, such as atime = \"off\""
            ));
        }
        if pool_options(&spec.make_options).is_none() {
            problems.push(format!(
                "`make_options` of zfs may only be -o NAME=VALUE, where NAME is {}",
                POOL_OPTIONS.join(" or ")
            ));
        }
        if let Some(arc) = spec.arc {
            let [least, most] = match self {
                Zfs::Fuse => FUSE_ARC,
                Zfs::Kernel => [KERNEL_ARC_LEAST, ByteCount(u64::MAX)],
            };
            if arc < least || arc > most {
                problems.push(format!("`arc_size` must be between {least} and {most}"));
            }
        }
        if spec.cache.is_some_and(|cache| cache < DEVICE_LEAST) {
            problems.push(format!("the minimum size of a cache device is {DEVICE_LEAST}"));
        }
        problems
    }

    fn property_problem(self, name: &str, value: &str) -> Option<String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        let known = properties().find(|(known, _)| *known == name);
        let newer = ["lz4", "zstd"].iter().any(|kind| value.starts_with(kind));
        match (known, self) {
            _ if value.is_empty() || !value.chars().all(is_plain) => {
                Some(format!("`{value}` is not a value of the property `{name}`"))
            }
            (None, _) => {
                let names: Vec<&str> = properties().map(|(name, _)| name).collect();
                Some(format!(
                    "zfs has no property `{name}` that can be set; choose one of {}",
                    names.join(", ")
                ))
            }
            (Some((_, false)), Zfs::Fuse) => {
                Some(format!("zfs-fuse has no property `{name}`; the kernel's ZFS does"))
            }
            _ if self == Zfs::Fuse && name == "compression" && newer => Some(format!(
                "zfs-fuse has no compression {value}, only lzjb, zle and gzip-1 to gzip-9; the \
                 kernel's ZFS has it"
            )),
            _ => None,
        }
    }
}

/// Word by word; `None` if one is not allowed.
fn pool_options(words: &[String]) -> Option<Vec<&str>> {
    let is_allowed = |pair: &[String]| match pair {
        [flag, option] => {
            let name = option.split_once('=').map(|(name, _)| name);
            flag == "-o" && name.is_some_and(|name| POOL_OPTIONS.contains(&name))
        }
        _ => false,
    };
    words.chunks(2).all(is_allowed).then(|| words.iter().map(String::as_str).collect())
}

impl Pool {
    pub(crate) fn new() -> Result<Pool> {
        let token = random_token().or_keeper(|| "no random numbers can be read")?;
        Ok(Pool { name: format!("dyno-{}", &token[..12]), token })
    }

    pub(crate) fn dataset(&self) -> String {
        format!("{}/data", self.name)
    }

    /// With a cache device if there is one; the dataset is mounted at `files`.
    pub(crate) fn make(
        &self,
        tools: Tools<'_>,
        spec: &VolumeSpec,
        (device, cache): (&BlockDevice, Option<&BlockDevice>),
        files: &Path,
    ) -> Result<()> {
        let token = format!("{TOKEN_PROPERTY}={}", self.token);
        let path = |device: &BlockDevice| device.path.to_string_lossy().into_owned();
        let (device, cache) = (path(device), cache.map(path));
        // So that no later start of ZFS imports it.
        let mut arguments = vec!["create", "-f", "-o", "cachefile=none"];
        arguments.extend(pool_options(&spec.make_options).unwrap_or_default());
        arguments.extend(["-O", "mountpoint=none", "-O", &token, &self.name, &device]);
        arguments.extend(cache.iter().flat_map(|cache| ["cache", cache]));
        tools.run("zpool", PACKAGE, &arguments)?;
        let (place, dataset) = (format!("mountpoint={}", files.display()), self.dataset());
        let properties: Vec<String> =
            spec.properties.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut arguments = vec!["create", "-o", &place, "-o", "setuid=off", "-o", "devices=off"];
        arguments.extend(properties.iter().flat_map(|property| ["-o", property]));
        arguments.push(&dataset);
        tools.run("zfs", PACKAGE, &arguments)?;
        // zfs-fuse does not pass its properties to the mount.
        let files = files.to_string_lossy();
        let arguments = ["-i", "-o", "remount,bind,nosuid,nodev", &files];
        tools.run("mount", "mount", &arguments).map(drop)
    }

    /// If it is there and has this token.
    pub(crate) fn destroy(&self, tools: Tools<'_>) -> Result<()> {
        if matches!(Zfs::find(tools.keeper), Ok(Zfs::Fuse)) && daemons().is_empty() {
            // Then there are no pools.
            return Ok(());
        }
        if !pools(tools)?.contains(&self.name) {
            return Ok(());
        }
        let arguments = ["get", "-H", "-o", "value", TOKEN_PROPERTY, &self.name];
        let token = tools.run("zfs", PACKAGE, &arguments)?;
        if token.trim() != self.token {
            return Err(KeeperError(format!(
                "the pool {} does not carry the token of Dyno's pool of this name: it is left alone",
                self.name
            )));
        }
        // It stays busy for a moment after a server has ended.
        let destroy = || tools.run("zpool", PACKAGE, &["destroy", &self.name]);
        let is_busy = |error: &KeeperError| error.0.contains("busy");
        let done = |result: &Result<String>| !result.as_ref().is_err_and(is_busy);
        retry(tools.clock, BUSY, destroy, done).map(drop)
    }

    /// From a device that has its name, which is blank again then.
    pub(crate) fn erase_labels(&self, device: &Path) -> Result<()> {
        let file = fs::OpenOptions::new().read(true).write(true).open(device);
        let erased = file.and_then(|mut file| erase(&mut file, &self.name));
        let device = device.display();
        erased.or_keeper(|| format!("the labels of the pool could not be removed from {device}"))
    }

    /// Times a snapshot, which waits for the writeback, and a clone of it; removes both.
    /// `referenced` (bytes) and `compressratio` are read meanwhile.
    pub(crate) fn measure(&self, tools: Tools<'_>) -> Result<ZfsUsage> {
        let dataset = self.dataset();
        let (snapshot, clone) = (format!("{dataset}@dyno"), format!("{}/clone", self.name));
        let run = |arguments: &[&str]| tools.run("zfs", PACKAGE, arguments);
        let timed = |arguments: &[&str]| -> Result<f64> {
            let began = tools.clock.now();
            run(arguments)?;
            Ok(tools.clock.now().saturating_sub(began).as_secs_f64())
        };
        let snapshot_s = timed(&["snapshot", &snapshot])?;
        let clone_s = timed(&["clone", "-o", "mountpoint=none", &snapshot, &clone])?;
        let properties = "referenced,compressratio";
        let said = run(&["get", "-H", "-p", "-o", "value", properties, &dataset])?;
        run(&["destroy", &clone])?;
        run(&["destroy", &snapshot])?;
        let (referenced_bytes, compression) = parse_usage(&said).or_keeper(|| {
            format!("the output of `zfs get {properties}` is not understood: {said}")
        })?;
        Ok(ZfsUsage { snapshot_s, clone_s, referenced_bytes, compression })
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ZfsUsage {
    pub(crate) snapshot_s: f64,
    pub(crate) clone_s: f64,
    pub(crate) referenced_bytes: u64,
    /// Uncompressed over compressed size.
    pub(crate) compression: f64,
}

/// Bytes, then a ratio such as `1.35x` (`1.35` from the kernel's ZFS).
fn parse_usage(text: &str) -> Option<(u64, f64)> {
    let mut lines = text.lines().map(str::trim);
    let referenced = lines.next()?.parse().ok()?;
    let ratio: f64 = lines.next()?.trim_end_matches('x').parse().ok()?;
    Some((referenced, ratio))
}

fn pools(tools: Tools<'_>) -> Result<Vec<String>> {
    let text = tools.run("zpool", PACKAGE, &["list", "-H", "-o", "name"])?;
    Ok(text.lines().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

/// Root's processes of zfs-fuse (others may fake the name), with the folder Dyno started them for.
fn daemons() -> Vec<(i32, Option<PathBuf>)> {
    let proc_root = Path::new("/proc");
    let mark = format!("{FOLDER_MARK}=");
    let all = list_processes(proc_root).into_iter();
    let is_of_root = |pid: i32| {
        fs::metadata(proc_root.join(pid.to_string())).is_ok_and(|facts| facts.uid() == 0)
    };
    all.filter(|process| process.name == DAEMON && process.is_alive() && is_of_root(process.pid))
        .map(|process| {
            let environment = fs::read(proc_root.join(process.pid.to_string()).join("environ"));
            let environment = environment.unwrap_or_default();
            let folder = environment.split(|byte| *byte == 0).find_map(|entry| {
                String::from_utf8_lossy(entry).strip_prefix(&mark).map(PathBuf::from)
            });
            (process.pid, folder)
        })
        .collect()
}

/// If zfs-fuse runs for another Dyno, says so without a full stop.
pub(crate) fn used_by_another(keeper: &Keeper) -> Option<String> {
    let (pid, folder) = daemons().into_iter().find_map(|(pid, of)| Some((pid, of?)))?;
    let is_own = folder.starts_with(keeper.root());
    (!is_own).then(|| of_another(pid, &folder, keeper.is_abandoned(&folder)))
}

fn of_another(pid: i32, folder: &Path, is_abandoned: bool) -> String {
    let shown = folder.display();
    let whose = match folder.parent().filter(|_| is_abandoned) {
        Some(root) => format!(
            "a run that was killed has left its own (process {pid}, for {shown}): the next `dyno run` \
             with `--data-folder {}` removes it",
            root.display()
        ),
        None => format!(
            "another Dyno has started it (process {pid}, for {shown}): wait until that run has ended"
        ),
    };
    format!("only one zfs-fuse can run on a machine, and {whose}")
}

/// Returns it if it was started, and did not run already.
pub(crate) fn start_daemon(
    tools: Tools<'_>,
    folder: &Path,
    arc: Option<ByteCount>,
) -> Result<Option<Child>> {
    if let Some(problem) = used_by_another(tools.keeper) {
        return Err(KeeperError(problem));
    }
    if let Some((pid, _)) = daemons().first() {
        return match arc {
            Some(_) => Err(KeeperError(format!(
                "zfs-fuse is already running (process {pid}), with its own cache size: `arc_size` \
                 works only if Dyno starts zfs-fuse for this volume"
            ))),
            None => Ok(None),
        };
    }
    let program = tools.keeper.needed_program(DAEMON, DAEMON)?;
    let mut child = spawn_daemon(&program, folder, arc)?;
    let until = tools.clock.now() + READY_LIMIT;
    loop {
        let has_ended = !matches!(child.try_wait(), Ok(None));
        let Err(error) = pools(tools) else { return Ok(Some(child)) };
        if tools.clock.now() >= until {
            end(&mut child);
            let said = crate::keeper::last_lines(&folder.join(DAEMON_LOG), 5).join("; ");
            return Err(KeeperError(format!("zfs-fuse does not answer: {}; {said}", error.0)));
        }
        tools.clock.sleep_until(tools.clock.now() + BUSY.1);
        if has_ended {
            // A killed one keeps its socket for a moment.
            child = spawn_daemon(&program, folder, arc)?;
        }
    }
}

fn spawn_daemon(program: &Path, folder: &Path, arc: Option<ByteCount>) -> Result<Child> {
    let log = fs::File::create(folder.join(DAEMON_LOG)).at(program)?;
    let mut command = Command::new(program);
    // Not --disable-block-cache: servers could not map files into memory.
    command.args(["--no-daemon", "-o", "default_permissions"]);
    if let Some(arc) = arc {
        command.arg("--max-arc-size").arg((arc.0 >> 20).to_string());
    }
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env(FOLDER_MARK, folder);
    command.current_dir("/").stdin(Stdio::null());
    command.stdout(log.try_clone().at(program)?).stderr(log).process_group(0);
    command.spawn().at(program)
}

/// Once it has no pool left.
pub(crate) fn end_daemon(tools: Tools<'_>, child: &mut Child) -> Result<()> {
    let left = if let Ok(None) = child.try_wait() { pools(tools)? } else { Vec::new() };
    if !left.is_empty() {
        return Err(KeeperError(format!(
            "zfs-fuse (process {}) was started by Dyno, but is left running: it has pools that \
             this volume did not create ({})",
            child.id(),
            left.join(", ")
        )));
    }
    end(child);
    Ok(())
}

/// If asked, it would wait ten seconds for its threads; without pools it has nothing to save.
fn end(child: &mut Child) {
    // It may have ended already.
    let _ = child.kill();
    let _ = child.wait();
}

/// Both ends, if their labels name this pool.
fn erase(device: &mut (impl Read + Write + Seek), pool: &str) -> std::io::Result<()> {
    let size = device.seek(SeekFrom::End(0))?;
    let length = LABELS.min(usize::try_from(size).unwrap_or(LABELS));
    let mut begin = vec![0; length];
    device.seek(SeekFrom::Start(0))?;
    device.read_exact(&mut begin)?;
    let is_labelled = begin.windows(pool.len()).any(|found| found == pool.as_bytes());
    if !is_labelled {
        return Ok(());
    }
    let zeros = vec![0; length];
    for at in [0, size.saturating_sub(length as u64)] {
        device.seek(SeekFrom::Start(at))?;
        device.write_all(&zeros)?;
    }
    device.flush()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn what_zfs_does_not_do_is_said_beforehand() {
        let check = |zfs: Zfs, change: &dyn Fn(&mut VolumeSpec), expected: &str| {
            let mut spec = VolumeSpec::new("v", "zfs", ByteCount(1 << 30));
            change(&mut spec);
            let problems = zfs.problems(&spec).join("; ");
            match expected {
                "" => assert_eq!(problems, ""),
                expected => assert!(problems.contains(expected), "{problems}"),
            }
        };
        let set = |name: &'static str, value: &'static str| {
            move |spec: &mut VolumeSpec| drop(spec.properties.insert(name.into(), value.into()))
        };
        check(Zfs::Fuse, &set("recordsize", "16k"), "");
        check(Zfs::Fuse, &set("compression", "gzip-1"), "");
        check(Zfs::Fuse, &set("compression", "lz4"), "has no compression lz4");
        check(Zfs::Kernel, &set("compression", "lz4"), "");
        check(Zfs::Fuse, &set("sync", "disabled"), "zfs-fuse has no property `sync`");
        check(Zfs::Kernel, &set("sync", "disabled"), "");
        // Leads elsewhere, or gives rights.
        check(Zfs::Kernel, &set("mountpoint", "legacy"), "no property `mountpoint`");
        check(Zfs::Kernel, &set("setuid", "on"), "no property `setuid`");
        check(Zfs::Kernel, &set("recordsize", "16k,x=/etc"), "is not a value");
        let options = |words: &'static [&'static str]| {
            move |spec: &mut VolumeSpec| {
                spec.make_options = words.iter().map(|&word| word.to_owned()).collect();
            }
        };
        check(Zfs::Kernel, &options(&["-o", "ashift=12"]), "");
        check(Zfs::Kernel, &options(&["-R", "root"]), "may only be -o NAME=VALUE");
        check(Zfs::Kernel, &options(&["-o", "cachefile=x"]), "may only be -o NAME=VALUE");
        check(Zfs::Kernel, &options(&["-o"]), "may only be -o NAME=VALUE");
        check(Zfs::Fuse, &|spec| spec.mount_options.push("noatime".into()), "`properties` instead");
        check(Zfs::Fuse, &|spec| spec.arc = Some(ByteCount(1 << 20)), "between 16 MiB and");
        check(Zfs::Fuse, &|spec| spec.arc = Some(ByteCount(64 << 20)), "");
        check(Zfs::Fuse, &|spec| spec.cache = Some(ByteCount(1)), "cache device");
    }

    #[test]
    fn labels_are_erased_only_if_they_are_of_this_pool() {
        let check = |name: &str, expected: bool| {
            let mut bytes = vec![7_u8; 4 << 20];
            bytes[20_000..20_000 + name.len()].copy_from_slice(name.as_bytes());
            let mut device = Cursor::new(bytes);
            erase(&mut device, "dyno-0123456789ab").expect("read and written");
            let bytes = device.into_inner();
            let is_blank = |part: &[u8]| part.iter().all(|byte| *byte == 0);
            assert_eq!(is_blank(&bytes[..LABELS]), expected, "{name}");
            assert_eq!(is_blank(&bytes[(4 << 20) - LABELS..]), expected, "{name}");
            assert!(bytes[2 << 20] == 7);
        };
        check("dyno-0123456789ab", true);
        check("dyno-0123456789ac", false);
        check("tank", false);
    }

    #[test]
    fn what_zfs_says_of_a_dataset_is_read() {
        assert_eq!(parse_usage("218103808\n1.35x\n"), Some((218_103_808, 1.35)));
        assert_eq!(parse_usage("218103808\n1.35\n"), Some((218_103_808, 1.35)));
        assert_eq!(parse_usage("-\n-\n"), None);
        assert_eq!(parse_usage(""), None);
    }

    #[test]
    fn who_has_to_clean_up_after_another_run_is_told_where() {
        let check = |is_abandoned: bool, expected: &str| {
            let text = of_another(7, Path::new("/data/b/volume-1"), is_abandoned);
            assert!(
                text.contains("process 7, for /data/b/volume-1") && text.ends_with(expected),
                "{text}"
            );
        };
        check(false, "wait until that run has ended");
        check(true, "the next `dyno run` with `--data-folder /data/b` removes it");
    }
}
