//! The value of a database setting, before a product's spelling.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ByteCount;

/// A product writes it in its own spelling (bytes, `8kB` units, `on`/`off`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingValue {
    /// Passed on unchanged.
    Text(String),
    Integer(i64),
    Real(f64),
    Switch(bool),
    Bytes(ByteCount),
    /// Percent of the host's memory; resolved when the server is deployed.
    PercentOfMemory(f64),
}

impl SettingValue {
    /// Turns a share of memory into whole MiB, rounded down, at least 1: every product takes them.
    pub fn resolve(&self, memory: ByteCount) -> SettingValue {
        match self {
            SettingValue::PercentOfMemory(percent) => {
                let mebibytes = (memory.0 as f64 * percent / 100.0) as u64 >> 20;
                SettingValue::Bytes(ByteCount(mebibytes.max(1) << 20))
            }
            other => other.clone(),
        }
    }

    /// For products without units of powers of 1000: turns a text such as `500MB` into bytes.
    pub fn with_decimal_sizes(&self) -> SettingValue {
        let SettingValue::Text(text) = self else { return self.clone() };
        let is_decimal =
            ["kB", "KB", "MB", "GB", "TB"].iter().any(|unit| text.trim().ends_with(unit));
        match text.parse() {
            Ok(bytes) if is_decimal => SettingValue::Bytes(bytes),
            _ => self.clone(),
        }
    }
}

impl fmt::Display for SettingValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingValue::Text(text) => out.write_str(text),
            SettingValue::Integer(number) => write!(out, "{number}"),
            SettingValue::Real(number) => write!(out, "{number}"),
            SettingValue::Switch(true) => out.write_str("on"),
            SettingValue::Switch(false) => out.write_str("off"),
            SettingValue::Bytes(bytes) => write!(out, "{bytes}"),
            SettingValue::PercentOfMemory(percent) => write!(out, "{percent}%"),
        }
    }
}
