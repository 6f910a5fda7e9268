//! The operating system's page cache: its size, and how it is emptied.

use std::fs;

use rustix::fs::{Access, access, sync};

use crate::KeeperError;

/// Writing 1 here drops all clean pages.
const DROP: &str = "/proc/sys/vm/drop_caches";

/// `None` if it can be emptied.
pub fn page_cache_problem() -> Option<String> {
    access(DROP, Access::WRITE_OK).err().map(|error| {
        format!(
            "to drop the page cache (`drop_caches`), Dyno needs root privileges: {DROP}: {error}"
        )
    })
}

/// Writes back and empties the cache; returns its bytes before and after. Fails without the right.
pub fn drop_page_cache() -> Result<(u64, u64), KeeperError> {
    let failed = |path: &str, error: std::io::Error| KeeperError(format!("{path}: {error}"));
    let cached = || {
        let text = fs::read_to_string("/proc/meminfo").map_err(|e| failed("/proc/meminfo", e))?;
        Ok::<u64, KeeperError>(cached_bytes(&text))
    };
    let before = cached()?;
    sync();
    fs::write(DROP, "1").map_err(|error| failed(DROP, error))?;
    Ok((before, cached()?))
}

/// `Cached` and `Buffers` of `/proc/meminfo`.
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
        // Others may read so much meanwhile, but not each time.
        let is_smaller = |_| {
            let file = tempfile::NamedTempFile::new_in("/var/tmp").expect("a file");
            fs::write(file.path(), vec![7; 64 << 20]).expect("written");
            let (before, after) = drop_page_cache().expect("dropped");
            after < before
        };
        assert!((0..20).any(is_smaller), "nothing is dropped");
    }
}
