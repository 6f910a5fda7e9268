//! Compares versions of servers.

/// Whether it begins with these numbers: `15.1` fits `15.1.2`, not `15.14`; `10.1` not `10.11`.
pub fn version_fits(version: &str, wanted: &str) -> bool {
    let rest = version.strip_prefix(wanted);
    rest.is_some_and(|rest| {
        let ends_in_digit = wanted.ends_with(|c: char| c.is_ascii_digit());
        !(ends_in_digit && rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// `16beta2 (…)` as 16, `15.14 (Debian …)` as 15, 14. The greater list is the newer version.
pub fn version_numbers(version: &str) -> Vec<u32> {
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    version[..end].split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        assert_eq!(version_numbers("15.14 (Debian 15.14-0)"), [15, 14]);
        assert_eq!(version_numbers("16beta2"), [16]);
        assert!(version_numbers("10.11.19-MariaDB") > version_numbers("10.6.2-MariaDB"));
        assert!(version_numbers("").is_empty());
    }

    #[test]
    fn versions_are_prefixes_up_to_the_end_of_a_number() {
        let check = |version: &str, wanted: &str, expected: bool| {
            assert_eq!(version_fits(version, wanted), expected, "{wanted} of {version}");
        };
        check("10.11.19-MariaDB", "10.11", true);
        check("10.11.19-MariaDB", "10.11.19", true);
        check("10.11.19-MariaDB", "10.1", false);
        check("10.11.19-MariaDB", "11", false);
        check("15.14 (Debian 15.14-0)", "15", true);
        check("15.14 (Debian 15.14-0)", "15.14", true);
        check("15.14 (Debian 15.14-0)", "15.1", false);
        check("16beta2", "16", true);
        check("3.50.4", "3.5", false);
        check("3.50.4", "3.50", true);
        check("3.50.4", "3.", true);
        check("15", "15.1", false);
    }
}
