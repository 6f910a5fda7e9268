//! Values of options.

use dyno_units::{ByteCount, Nanoseconds, ParseQuantityError, Seed};

pub(crate) fn seed(text: &str) -> Result<Seed, String> {
    text.parse().map(Seed).map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

/// For sizes beyond which data are removed: a bare number is more often a mistake than bytes.
pub(crate) fn size_with_unit(text: &str) -> Result<ByteCount, String> {
    let size: ByteCount = text.parse().map_err(|error: ParseQuantityError| error.to_string())?;
    let has_unit = text.contains(char::is_alphabetic) || size.0 == 0;
    has_unit.then_some(size).ok_or_else(|| format!("`{text}` has no unit; write it like \"20GiB\""))
}

pub(crate) fn duration(text: &str) -> Result<Nanoseconds, String> {
    let duration = dyno_units::parse_duration(text).map_err(|error| error.to_string())?;
    let is_enough = duration >= Nanoseconds::from_millis(100);
    is_enough.then_some(duration).ok_or_else(|| "measure for at least 100ms".to_owned())
}

/// A percentage below 100.
pub(crate) fn threshold(text: &str) -> Result<f64, String> {
    match dyno_units::parse_percentage(text) {
        Ok(percent) if percent < 100.0 => Ok(percent / 100.0),
        Ok(_) => Err("it must be below 100%".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_threshold_is_a_percentage_below_a_hundred() {
        let check = |text: &str, expected: Option<f64>| {
            assert_eq!(super::threshold(text).ok(), expected, "{text}");
        };
        check("3%", Some(0.03));
        check("100%", None);
        check("300%", None);
        check("3", None);
    }
}
