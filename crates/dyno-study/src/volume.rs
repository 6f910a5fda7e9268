//! What a study says of a volume.

use dyno_units::{
    Backing, ByteCount, Dips, IoLimit, Nanoseconds, SettingValue, VolumeSpec, parse_duration,
};

use crate::{FieldValue, Table, Variant};

/// The kind of a variant's table that is the volume of its logs. In studies it is a [volume.NAME].
pub(crate) const LOG_VOLUME: &str = "log_volume";

/// A time above zero; none if the value is no such time.
pub(crate) fn time(value: &FieldValue) -> Option<Nanoseconds> {
    let FieldValue::Setting(SettingValue::Text(text)) = value else { return None };
    parse_duration(text).ok().filter(|time| *time > Nanoseconds::ZERO)
}

/// A limit: operations or bytes per second; none if the value is neither, or zero.
pub(crate) fn per_second(name: &str, value: &FieldValue) -> Option<u64> {
    let number = match value {
        FieldValue::Setting(SettingValue::Integer(number)) => u64::try_from(*number).ok()?,
        FieldValue::Setting(value) if !name.ends_with("iops") => match value {
            SettingValue::Bytes(bytes) => bytes.0,
            SettingValue::Text(text) => text.parse::<ByteCount>().ok()?.0,
            _ => return None,
        },
        _ => return None,
    };
    (number > 0).then_some(number)
}

/// One `[volume.NAME]`, with the values of a table that was checked, what it inherits and the
/// levels of a variant filled in; none if it is of another kind than this. Who runs the study says whether
/// its device may be formatted.
fn volume(kind: &str, table: &Table) -> Option<VolumeSpec> {
    let words = |field: &str, separator: fn(char) -> bool| {
        let text = table.text(field).unwrap_or_default();
        let words = text.split(separator).map(str::trim).filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    };
    let limit = |map: &str| {
        let of = |name: &str| per_second(name, table.fields.get(&format!("{map}.{name}"))?);
        IoLimit {
            read_iops: of("read_iops"),
            write_iops: of("write_iops"),
            read_bandwidth: of("read_bandwidth"),
            write_bandwidth: of("write_bandwidth"),
        }
    };
    let dips = || {
        let of = |name: &str| time(table.fields.get(&format!("dips.{name}"))?);
        Some(Dips { every: of("every")?, length: of("for")?, limit: limit("dips") })
    };
    (table.kind == kind).then_some(())?;
    let properties = table.named("properties");
    Some(VolumeSpec {
        name: table.name.clone(),
        filesystem: table.owned("filesystem")?,
        backing: match table.owned("device") {
            Some(device) => Backing::Device { path: device.into(), may_format: false },
            None => Backing::Size(table.size("size").unwrap_or(ByteCount(0))),
        },
        make_options: words("make_options", char::is_whitespace),
        mount_options: words("mount_options", |c| c == ','),
        properties: properties.map(|(name, value)| (name.to_owned(), value.to_string())).collect(),
        scheduler: table.owned("scheduler"),
        read_ahead: table.size("read_ahead"),
        limit: limit("limit"),
        dips: dips(),
        cache: table.size("cache"),
        arc: table.size("arc_size"),
    })
}

impl Variant {
    /// The volume that its data lie on; none for Dyno's data folder.
    pub fn volume(&self) -> Option<VolumeSpec> {
        self.tables.iter().find_map(|table| volume("volume", table))
    }

    /// The volume that its logs lie on; none if they lie with its data.
    pub fn log_volume(&self) -> Option<VolumeSpec> {
        self.tables.iter().find_map(|table| volume(LOG_VOLUME, table))
    }

    /// All its volumes, that of its data first.
    pub fn volumes(&self) -> Vec<VolumeSpec> {
        self.volume().into_iter().chain(self.log_volume()).collect()
    }
}
