//! Reads the kernel's texts: lines of a key and a value.

/// What follows a key and its separator, in the first such line.
pub(crate) fn value<'t>(text: &'t str, key: &str, separator: char) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(separator))
}

pub(crate) fn count(text: &str, key: &str, separator: char) -> Option<u64> {
    numbers(value(text, key, separator)?).next()
}

/// Up to the first word that is none.
pub(crate) fn numbers(text: &str) -> impl Iterator<Item = u64> + '_ {
    text.split_ascii_whitespace().map_while(|word| word.parse().ok())
}

/// From `/proc/meminfo`.
pub(crate) fn meminfo_bytes(text: &str, key: &str) -> Option<u64> {
    count(text, key, ':')?.checked_mul(1024)
}

/// Mean of the last minute, and number of threads, from `/proc/loadavg`.
pub(crate) fn load_average(text: &str) -> (Option<f64>, Option<f64>) {
    let mut words = text.split_ascii_whitespace();
    let avg1 =
        words.next().and_then(|word| word.parse().ok()).filter(|load: &f64| load.is_finite());
    let threads = words.nth(2).and_then(|word| word.split_once('/')?.1.parse::<u32>().ok());
    (avg1, threads.map(f64::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "MemTotal:       24684092 kB\nMemFree:            100 kB\n\
        MemAvailable:   24189616 kB\nCached:          2227396 kB\nSwapCached:            7 kB\n\
        SwapTotal:          1000 kB\nSwapFree:            400 kB\nHugePages_Total:       0\n";

    #[test]
    fn a_level_is_found_by_its_whole_name() {
        let check = |key: &str, expected: Option<u64>| {
            assert_eq!(meminfo_bytes(MEMINFO, key), expected, "{key}");
        };
        check("MemFree", Some(102_400));
        check("Cached", Some(2_227_396 * 1024));
        check("Dirty", None);
        check("Mem", None);
        assert_eq!(meminfo_bytes("MemFree: 99999999999999999 kB", "MemFree"), None);
        assert_eq!(meminfo_bytes("MemFree: lots", "MemFree"), None);
        assert_eq!(count("pswpin 5\npswpout 7\n", "pswpout", ' '), Some(7));
        assert_eq!(count("pswpin_x 5\n", "pswpin", ' '), None);
    }

    #[test]
    fn the_load_average_is_read() {
        let check = |text: &str, expected: (Option<f64>, Option<f64>)| {
            assert_eq!(load_average(text), expected, "{text}");
        };
        check("0.13 0.21 0.18 1/96 13793\n", (Some(0.13), Some(96.0)));
        check("12.5 0.21\n", (Some(12.5), None));
        check("NaN x y z/96", (None, Some(96.0)));
        check("", (None, None));
    }
}
