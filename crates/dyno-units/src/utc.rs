//! Points in time as people read them.

/// `2026-03-01 14:05:09 UTC`, from milliseconds since 1970. After Howard Hinnant's
/// `civil_from_days` ("chrono-compatible low-level date algorithms", 2013).
pub fn utc_date_time(unix_ms: u64) -> String {
    let s = unix_ms / 1000;
    let z = (s / 86_400) as i64 + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    let (h, m, s) = (s % 86_400 / 3600, s % 3600 / 60, s % 60);
    format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_civil() {
        let check = |unix_ms: u64, expected: &str| assert_eq!(utc_date_time(unix_ms), expected);
        check(0, "1970-01-01 00:00:00 UTC");
        check(951_782_399_000, "2000-02-28 23:59:59 UTC");
        check(951_782_400_000, "2000-02-29 00:00:00 UTC");
        check(1_709_210_096_000, "2024-02-29 12:34:56 UTC");
        check(4_102_444_799_999, "2099-12-31 23:59:59 UTC");
    }
}
