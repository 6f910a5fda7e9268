//! A table as a Parquet file: typed columns that may be null, gzip, units as metadata.

use std::sync::Arc;

use parquet::basic::{Compression, GzipLevel, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::{Column, Table, Values};

#[derive(Debug, thiserror::Error)]
#[error("cannot make the table `{table}` into Parquet: {reason}")]
pub struct ExportError {
    pub table: &'static str,
    pub reason: String,
}

/// Renders a table as a Parquet file. The unit of a column is in the file's metadata, under the
/// column's name with `unit.` before it.
pub fn parquet(table: &Table) -> Result<Vec<u8>, ExportError> {
    write(table).map_err(|error| ExportError { table: table.name, reason: error.to_string() })
}

fn write(table: &Table) -> Result<Vec<u8>, ParquetError> {
    let fields = table.columns.iter().map(|c| Ok(Arc::new(field(c)?)));
    let fields: Vec<Arc<Type>> = fields.collect::<Result<_, ParquetError>>()?;
    let schema = Type::group_type_builder(table.name).with_fields(fields).build()?;
    let units = table.columns.iter().filter(|column| !column.unit.is_empty());
    let units = units.map(|c| KeyValue::new(format!("unit.{}", c.name), c.unit.clone()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::GZIP(GzipLevel::default()))
        .set_created_by("Dyno".to_owned())
        .set_key_value_metadata(Some(units.collect()))
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut rows = writer.next_row_group()?;
    for column in &table.columns {
        match &column.values {
            Values::Text(values) => {
                let known = values.iter().flatten().map(|text| ByteArray::from(text.as_str()));
                put::<ByteArrayType, _>(&mut rows, values, known.collect())?;
            }
            Values::Number(values) => {
                let known = values.iter().flatten().copied().collect();
                put::<DoubleType, _>(&mut rows, values, known)?;
            }
            Values::Whole(values) => {
                let known = values.iter().flatten().copied().collect();
                put::<Int64Type, _>(&mut rows, values, known)?;
            }
        }
    }
    rows.close()?;
    writer.into_inner()
}

fn field(column: &Column) -> Result<Type, ParquetError> {
    let (physical, logical) = match &column.values {
        Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Values::Number(_) => (Physical::DOUBLE, None),
        Values::Whole(_) => (Physical::INT64, None),
    };
    Type::primitive_type_builder(&column.name, physical)
        .with_logical_type(logical)
        .with_repetition(Repetition::OPTIONAL)
        .build()
}

/// Writes a column: `known` are the values that are there, in order.
fn put<T: DataType, V>(
    rows: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[Option<V>],
    known: Vec<T::T>,
) -> Result<(), ParquetError> {
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let Some(mut column) = rows.next_column()? else {
        return Err(ParquetError::General(
            "the schema has fewer columns than the table".to_owned(),
        ));
    };
    column.typed::<T>().write_batch(&known, Some(&levels), None)?;
    column.close()
}
