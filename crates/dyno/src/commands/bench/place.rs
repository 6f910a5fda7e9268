//! The folder of a bench's record: named by the user, or removed at the end.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use dyno_host::Keeper;
use dyno_lab::Lab;

use crate::commands::beside::Folder;
use crate::lab;

/// Never on a data disk: the record is small, and has to report that the disk is full.
pub(super) fn choose(named: Option<&String>, lab: &Lab) -> anyhow::Result<Folder> {
    if let Some(path) = named {
        return Ok(Folder { path: PathBuf::from(path), passing: None });
    }
    let failed = "the record cannot be kept; choose a folder for it with --out";
    let root = lab::own_folder();
    let keeper = if lab.keeper.root() == root {
        Arc::clone(&lab.keeper)
    } else {
        let keeper = Keeper::new(&root).context(failed)?;
        // The run does this for the servers' keeper.
        keeper.end_leftovers(lab.clock.as_ref());
        Arc::new(keeper)
    };
    clean_failed(&root, lab.clock.unix_millis());
    Folder::passing("bench", &keeper).context(failed)
}

/// Returns the record's new place.
pub(super) fn keep(record: &Folder) -> anyhow::Result<PathBuf> {
    let Some((keeper, folder)) = &record.passing else { return Ok(record.path.clone()) };
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let kept = keeper.root().join(format!("failed-{name}"));
    // Others may read the folder that the record moves to.
    std::fs::set_permissions(&record.path, std::fs::Permissions::from_mode(0o700))
        .and_then(|()| std::fs::rename(&record.path, &kept))
        .with_context(|| format!("cannot keep the record as {}", kept.display()))?;
    Ok(kept)
}

const FAILED: &str = "failed-bench";
const FAILED_MOST: usize = 20;
const FAILED_DAYS: u64 = 30;

/// Of folders with this name and a record in them, removes the oldest beyond the limits.
fn clean_failed(root: &Path, now_unix_ms: u64) {
    let Ok(entries) = std::fs::read_dir(root) else { return };
    let mut kept: Vec<(u64, PathBuf)> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(FAILED))
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| {
            let began = dyno_record::read_manifest(&entry.path()).ok()?.created_unix_ms;
            Some((began, entry.path()))
        })
        .collect();
    kept.sort_by_key(|(began, _)| std::cmp::Reverse(*began));
    let oldest = now_unix_ms.saturating_sub(FAILED_DAYS * 24 * 3600 * 1000);
    for (nth, (began, path)) in kept.iter().enumerate() {
        if nth >= FAILED_MOST || *began < oldest {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_failed_benches_do_not_pile_up() {
        let root = tempfile::tempdir().unwrap();
        let day = 24 * 3600 * 1000;
        let now = 100 * day;
        let record = |name: &str, began: u64| {
            let folder = root.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            let manifest = serde_json::json!({
                "format": 1, "dyno": "0.1.0", "title": "x", "fingerprint": "2-", "seed": 1,
                "created_unix_ms": began, "threshold": 0.03, "order": "interleaved",
                "variants": [], "steps": [], "trials": [], "study_source": "",
                "environment": {"machine": "m", "cpus": 1, "memory_bytes": 1, "facts": {}},
            });
            std::fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
        };
        (0..25).for_each(|nth| record(&format!("failed-bench-{nth:02}"), now - nth * day));
        record("bench-old", 0);
        std::fs::create_dir(root.path().join("failed-bench-of-mine")).unwrap();
        clean_failed(root.path(), now);
        let is_there = |name: &str| root.path().join(name).exists();
        assert!((0..20).all(|nth| is_there(&format!("failed-bench-{nth:02}"))));
        assert!((20..25).all(|nth| !is_there(&format!("failed-bench-{nth:02}"))));
        assert!(is_there("bench-old") && is_there("failed-bench-of-mine"));
        clean_failed(root.path(), now + 25 * day);
        assert!(is_there("failed-bench-05") && !is_there("failed-bench-06"));
    }
}
