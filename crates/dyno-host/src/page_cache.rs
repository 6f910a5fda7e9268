//! The page cache of the operating system: how large it is, and how it is emptied.

use std::fs;

use rustix::fs::{Access, access, sync};

use crate::KeeperError;

/// The kernel empties the page cache when 1 is written here, as far as its pages are clean.
const DROP: &str = "/proc/sys/vm/drop_caches";

/// Why the page cache cannot be emptied here; none where it can.
pub fn page_cache_problem() -> Option<String> {
    access(DROP, Access::WRITE_OK).err().map(|error| {
        format!(
            "to drop the page cache (`drop_caches`), Dyno needs root privileges: {DROP}: {error}"
        )
    })
}

/// Writes all dirty pages back and empties the page cache. Returns what it held before and after, in
/// bytes.
///
/// # Errors
///
/// Without the right to do so.
pub fn drop_page_cache() -> Result<(u64, u64), KeeperError> {
    let failed = |path: &str, error: std::io::Error| KeeperError(format!("{path}: {error}"));
    let cached = || {
        let text = fs::read_to_string("/proc/meminfo").map_err(|e| failed("/proc/meminfo", e))?;
        Ok::<u64, KeeperError>(cached_bytes(&text))
    };
    let before = cached()?;
    // Only clean pages can be dropped.
    sync();
    fs::write(DROP, "1").map_err(|error| failed(DROP, error))?;
    Ok((before, cached()?))
}

/// What the page cache holds by `/proc/meminfo`: `Cached` and `Buffers`, in bytes.
fn cached_bytes(meminfo: &str) -> u64 {
    let kilobytes = |name: &str| -> u64 {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.unwrap_or(0)
    };
    (kilobytes("Cached") + kilobytes("Buffers")) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_pages_are_those_of_files_and_devices() {
        let text = "MemTotal: 100 kB\nBuffers:  8 kB\nCached:  64 kB\nSwapCached: 5 kB\n";
        assert_eq!(cached_bytes(text), 72 * 1024);
        assert_eq!(cached_bytes(""), 0);
    }

    #[test]
    fn what_was_read_is_no_longer_cached() {
        if let Some(problem) = page_cache_problem() {
            eprintln!("skipped: {problem}");
            return;
        }
        // What others read meanwhile is cached again: so much is not, each time.
        let is_smaller = |_| {
            let file = tempfile::NamedTempFile::new_in("/var/tmp").expect("a file");
            fs::write(file.path(), vec![7; 64 << 20]).expect("written");
            let (before, after) = drop_page_cache().expect("dropped");
            after < before
        };
        assert!((0..20).any(is_smaller), "nothing is dropped");
    }
}
