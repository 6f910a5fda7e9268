//! Gregorian days and seconds, as numbers since 1970 and as texts.

use dyno_units::civil;

const DAY: i64 = 86_400;

/// Days since 1970-01-01 of a date (the method of H. Hinnant's `days_from_civil`).
fn days(year: i64, month: i64, day: i64) -> i64 {
    // A year begins in March, so that a leap day is its last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Reads `2024-02-29` as days since 1970.
pub(super) fn date(text: &str) -> Option<i64> {
    let mut parts = text.split('-');
    let mut part = |n: usize| {
        let part = parts.next().filter(|part| part.len() == n)?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?
    };
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    let number = days(year, month, day);
    (parts.next().is_none() && civil(number) == (year, month, day)).then_some(number)
}

/// Reads `2024-02-29 13:00:59` as seconds since 1970; a date alone is its first second.
pub(super) fn timestamp(text: &str) -> Option<i64> {
    let Some((day, time)) = text.split_once([' ', 'T']) else { return Some(date(text)? * DAY) };
    let mut parts = time.split(':');
    let mut part = |below: i64| {
        let part = parts.next().filter(|part| part.len() == 2)?;
        part.parse().ok().filter(|number| (0..below).contains(number))
    };
    let seconds = part(24)? * 3600 + part(60)? * 60 + part(60)?;
    parts.next().is_none().then(|| date(day).map(|day| day * DAY + seconds))?
}

fn push(out: &mut Vec<u8>, number: i64, n_digits: u32) {
    for nth in (0..n_digits).rev() {
        out.push(b'0' + (number / 10_i64.pow(nth) % 10) as u8);
    }
}

pub(super) fn push_date(out: &mut Vec<u8>, day: i64) {
    let (year, month, day) = civil(day);
    push(out, year, 4);
    out.push(b'-');
    push(out, month, 2);
    out.push(b'-');
    push(out, day, 2);
}

/// Appends a second as `2024-02-29 13:00:59`.
pub(super) fn push_timestamp(out: &mut Vec<u8>, second: i64) {
    push_date(out, second.div_euclid(DAY));
    let of_day = second.rem_euclid(DAY);
    for (mark, number) in [(b' ', of_day / 3600), (b':', of_day / 60 % 60), (b':', of_day % 60)] {
        out.push(mark);
        push(out, number, 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_numbers_and_back() {
        let check = |text: &str, expected: Option<i64>| {
            assert_eq!(date(text), expected, "{text}");
            if let Some(day) = expected {
                let mut out = Vec::new();
                push_date(&mut out, day);
                assert_eq!(String::from_utf8(out).unwrap(), text);
            }
        };
        check("1970-01-01", Some(0));
        check("2000-02-29", Some(11_016));
        check("1969-12-31", Some(-1));
        check("9999-12-31", Some(2_932_896));
        for wrong in ["1900-02-29", "2024-13-01", "2024-1-1", "2024-01-01-01", "", "+024-01-01"] {
            check(wrong, None);
        }
    }

    #[test]
    fn every_day_of_eight_centuries_is_the_next_one() {
        let mut last = String::new();
        for day in date("1600-01-01").unwrap()..date("2400-01-01").unwrap() {
            let mut out = Vec::new();
            push_date(&mut out, day);
            let text = String::from_utf8(out).unwrap();
            assert_eq!(date(&text), Some(day));
            assert!(text > last);
            last = text;
        }
    }

    #[test]
    fn seconds_have_their_time_of_day() {
        let second = timestamp("2024-02-29 13:00:59").unwrap();
        let mut out = Vec::new();
        push_timestamp(&mut out, second);
        assert_eq!(out, b"2024-02-29 13:00:59");
        assert_eq!(timestamp("1970-01-02"), Some(DAY));
        assert_eq!(timestamp("1970-01-01T00:00:01"), Some(1));
        for wrong in ["2024-02-29 24:00:00", "2024-02-29 1:00:00", "x 00:00:00", "2024-02-29 00:00"]
        {
            assert_eq!(timestamp(wrong), None, "{wrong}");
        }
    }
}
