//! The fuzz target of `dyno convert`.

pub fn autobench(input: &[u8]) {
    let Ok(converted) = super::autobench::convert(&String::from_utf8_lossy(input)) else { return };
    let _ = dyno_study::parse(&converted.study, &crate::vocabulary::vocabulary());
}
