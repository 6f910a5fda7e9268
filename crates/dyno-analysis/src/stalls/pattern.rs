//! Names of readings by pattern: `*` stands for anything, also for nothing.

/// Whether a name fits a pattern.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, mut rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    while let Some((part, behind)) = rest.split_once('*') {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
        rest = behind;
    }
    name.ends_with(rest)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[track_caller]
    fn check(pattern: &str, name: &str, expected: bool) {
        assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
    }

    #[test]
    fn stars_stand_for_anything() {
        check("cpu.steal_pct", "cpu.steal_pct", true);
        check("cpu.steal_pct", "cpu.steal_pct2", false);
        check("psi.io.*", "psi.io.some_pct", true);
        check("psi.io.*", "psi.cpu.some_pct", false);
        check("disk.*await*", "disk.sda.write_await_ms", true);
        check("disk.*await*", "disk.await", true);
        check("*fsync*", "innodb.os_fsyncs_per_s", true);
        check("memory.swap_*_per_s", "memory.swap_in_bytes_per_s", true);
        check("memory.swap_*_per_s", "memory.swap_used_bytes", false);
        check("a*a", "a", false);
        check("*", "", true);
    }
}
