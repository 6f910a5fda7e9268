//! What a study says of a volume.

use std::collections::BTreeMap;

use dyno_units::{ByteCount, Nanoseconds, SettingValue, parse_duration};

use crate::{FieldValue, Table, Variant};

/// One `[volume.NAME]`, with what it inherits and the levels of a variant filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeChoice {
    pub name: String,
    /// `ext4`: a filesystem of the vocabulary.
    pub filesystem: String,
    /// The size of its image, or of the memory that it may take; none on a device.
    pub size: Option<ByteCount>,
    /// The device to format; none on an image.
    pub device: Option<String>,
    /// Options for the program that creates the filesystem, word by word.
    pub make_options: Vec<String>,
    pub mount_options: Vec<String>,
    pub properties: BTreeMap<String, String>,
    pub scheduler: Option<String>,
    pub read_ahead: Option<ByteCount>,
    /// Limits by name, per second: operations, or bytes.
    pub limit: BTreeMap<String, u64>,
    pub dips: Option<DipsChoice>,
    /// Of ZFS, the size of a cache device.
    pub cache: Option<ByteCount>,
    /// Of ZFS, how much memory its cache may take.
    pub arc_size: Option<ByteCount>,
}

/// The kind of a variant's table that is the volume of its logs. In studies it is a [volume.NAME].
pub(crate) const LOG_VOLUME: &str = "log_volume";

/// Limits that are lowered for a while, again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct DipsChoice {
    /// From one to the next; each period ends with one.
    pub every: Nanoseconds,
    pub length: Nanoseconds,
    pub limit: BTreeMap<String, u64>,
}

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

impl VolumeChoice {
    /// Whether its device is limited, at least at times.
    pub fn is_limited(&self) -> bool {
        !self.limit.is_empty() || self.dips.is_some()
    }

    /// A volume with the values of a table that was checked; none if it is of another kind than this.
    pub(crate) fn of(kind: &str, table: &Table) -> Option<VolumeChoice> {
        let words = |field: &str, separator: fn(char) -> bool| {
            let text = table.text(field).unwrap_or_default();
            let words = text.split(separator).map(str::trim).filter(|word| !word.is_empty());
            words.map(str::to_owned).collect()
        };
        let limits = |map: &'static str| -> BTreeMap<String, u64> {
            let limits = table.named(map);
            limits
                .filter_map(|(name, value)| Some((name.to_owned(), per_second(name, value)?)))
                .collect()
        };
        let dips = || {
            let of = |name: &str| time(table.fields.get(&format!("dips.{name}"))?);
            let (every, length) = (of("every")?, of("for")?);
            Some(DipsChoice { every, length, limit: limits("dips") })
        };
        (table.kind == kind).then_some(())?;
        let properties = table.named("properties").map(|(n, v)| (n.to_owned(), v.to_string()));
        Some(VolumeChoice {
            name: table.name.clone(),
            filesystem: table.owned("filesystem")?,
            size: table.size("size"),
            device: table.owned("device"),
            make_options: words("make_options", char::is_whitespace),
            mount_options: words("mount_options", |c| c == ','),
            properties: properties.collect(),
            scheduler: table.owned("scheduler"),
            read_ahead: table.size("read_ahead"),
            limit: limits("limit"),
            dips: dips(),
            cache: table.size("cache"),
            arc_size: table.size("arc_size"),
        })
    }
}

impl Variant {
    /// The volume that its data lie on; none for Dyno's data folder.
    pub fn volume(&self) -> Option<VolumeChoice> {
        self.tables.iter().find_map(|table| VolumeChoice::of("volume", table))
    }

    /// The volume that its logs lie on; none if they lie with its data.
    pub fn log_volume(&self) -> Option<VolumeChoice> {
        self.tables.iter().find_map(|table| VolumeChoice::of(LOG_VOLUME, table))
    }

    /// All its volumes, that of its data first.
    pub fn volumes(&self) -> Vec<VolumeChoice> {
        self.volume().into_iter().chain(self.log_volume()).collect()
    }
}
