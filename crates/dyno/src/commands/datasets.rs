//! `dyno datasets`: the kept data sets, which trials start on a copy of.

use std::path::PathBuf;
use std::sync::Arc;

use dyno_host::Keeper;
use dyno_lab::datasets::{DataSets, Listed};
use dyno_units::{ByteCount, utc_date_time};

use crate::{End, lab, terminal};

/// Options of `dyno datasets`.
#[derive(clap::Args)]
pub(crate) struct DataSetsOptions {
    /// The folder in which private servers keep their data [default: Dyno's data folder]
    #[arg(long, value_name = "FOLDER")]
    data_folder: Option<PathBuf>,
    /// Remove the data set with this key; may be repeated
    #[arg(long, value_name = "KEY", conflicts_with = "remove_all")]
    remove: Vec<String>,
    /// Remove all data sets
    #[arg(long)]
    remove_all: bool,
}

pub(crate) fn run(options: &DataSetsOptions) -> anyhow::Result<End> {
    let keeper = Arc::new(Keeper::new(&lab::data_root(options.data_folder.as_deref())?)?);
    let data_sets = DataSets::of(&keeper);
    let listed = data_sets.list()?;
    let all = || listed.iter().map(|one| one.key.clone()).collect();
    let keys: Vec<String> = if options.remove_all { all() } else { options.remove.clone() };
    if keys.is_empty() {
        terminal::out(&if listed.is_empty() {
            format!("no data sets are kept in {}\n", keeper.root().display())
        } else {
            table(&listed)
        });
        return Ok(End::Good);
    }
    Ok(super::each(&keys, |key| {
        data_sets.remove(key)?;
        Ok(format!("removed {key}"))
    }))
}

const HEADINGS: [&str; 8] =
    ["KEY", "PRODUCT", "VERSION", "WORKLOAD", "ROWS", "SIZE", "POPULATED", "LAST USED"];

fn table(listed: &[Listed]) -> String {
    let rows: Vec<[String; 8]> =
        std::iter::once(HEADINGS.map(str::to_owned)).chain(listed.iter().map(cells)).collect();
    let out = super::table(&rows, &[4, 5]);
    let total = listed.iter().map(|one| one.bytes).sum();
    out + &format!("{}, {}\n", super::counted(listed.len(), "data set"), ByteCount(total))
}

fn cells(one: &Listed) -> [String; 8] {
    let size = ByteCount(one.bytes).to_string();
    let last_used = utc_date_time(one.last_used_unix_ms);
    match &one.description {
        Ok(found) => {
            let shape = &found.contents.shape;
            let engine = shape.engine.iter().map(|engine| format!(" {engine}"));
            [
                one.key.clone(),
                shape.product.clone() + &engine.collect::<String>(),
                shape.version.split(' ').next().unwrap_or_default().to_owned(),
                if one.is_initial() { "initial data".to_owned() } else { found.workload.clone() },
                found.rows.to_string(),
                size,
                utc_date_time(found.created_unix_ms),
                last_used,
            ]
        }
        Err(why) => {
            let unknown = || "?".to_owned();
            let why = format!("not usable: {why}");
            [one.key.clone(), unknown(), unknown(), why, unknown(), size, unknown(), last_used]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_ones_are_listed_with_the_reason() {
        let damaged = Listed {
            key: "0123456789abcdef".to_owned(),
            last_used_unix_ms: 0,
            bytes: 2048,
            description: Err("it has format 9".to_owned()),
        };
        let text = table(&[damaged]);
        assert!(text.starts_with("KEY               PRODUCT  VERSION  WORKLOAD"), "{text}");
        assert!(text.contains("not usable: it has format 9"), "{text}");
        assert!(text.ends_with(&format!("1 data set, {}\n", ByteCount(2048))), "{text}");
    }
}
