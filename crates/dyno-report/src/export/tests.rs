//! What is exported is what was found.

use super::*;
use crate::fixture;

fn column<'a>(table: &'a Table, name: &str) -> &'a Column {
    table.columns.iter().find(|c| c.name == name).expect("the column is there")
}

#[test]
fn tables_are_whole_and_rectangular() {
    let (findings, runs) = fixture::three_variants();
    let tables = tables(&findings, &runs, &Times::default());
    let names: Vec<&str> = tables.iter().map(|t| t.name).collect();
    assert_eq!(names, ["estimates", "comparisons", "trials", "seconds", "columns"]);
    for table in &tables {
        assert!(!table.is_empty(), "{}", table.name);
        assert!(table.columns.iter().all(|c| c.values.len() == table.len()), "{}", table.name);
    }
    // Eight trials finished; five steps of 35 s each.
    assert_eq!((tables[2].len(), tables[3].len()), (8 * 5, 8 * 5 * 35));
    let Values::Number(values) = &column(&tables[0], "value").values else { panic!("numbers") };
    let first = findings.cells[0].metrics.values().next().unwrap();
    assert_eq!(values[0], Some(first.value));
    assert_eq!(column(&tables[3], "debt.checkpoint_age").unit, "bytes");
    assert_eq!(column(&tables[3], "disk.write_bytes_per_s").unit, "bytes/s");
}

#[test]
fn a_table_of_next_to_no_values_is_refused() {
    let (_, mut runs) = fixture::three_variants();
    assert_eq!(check_size(&runs), Ok(()));
    // Many names in one trial, and many seconds in another.
    let trials = &mut runs[0].trials;
    trials[0].steps[0].readings = (0..20_000).map(|n| (n.to_string(), Vec::new())).collect();
    trials[1].steps[0].intervals.start_s = vec![0.0; 1_000];
    assert!(check_size(&runs).is_err_and(|why| why.contains("next to no values")));
    let trials = &mut runs[0].trials;
    let full = trials[0].steps[0].readings.keys().map(|name| (name.clone(), vec![None; 1_000]));
    trials[1].steps[0].readings = full.collect();
    assert_eq!(check_size(&runs), Ok(()));
}

#[test]
fn csv_and_json_lines_have_every_row() {
    let (findings, runs) = fixture::three_variants();
    for table in tables(&findings, &runs, &Times::default()) {
        let csv = csv(&table);
        assert_eq!(csv.lines().count(), table.len() + 1, "{}", table.name);
        let jsonl = jsonl(&table);
        let rows: Vec<serde_json::Value> =
            jsonl.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows.len(), table.len());
        assert!(rows.iter().all(|row| row.is_object()));
    }
    let all = tables(&findings, &runs, &Times::default());
    assert!(csv(&all[3]).starts_with("run,trial,variant,repetition,step,second,phase,throughput"));
}

#[test]
fn parquet_is_read_back_the_same() {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::Field;
    let (findings, runs) = fixture::three_variants();
    for table in tables(&findings, &runs, &Times::default()) {
        let bytes = parquet(&table).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let meta = reader.metadata().file_metadata();
        assert_eq!(meta.num_rows() as usize, table.len());
        let units = meta.key_value_metadata().cloned().unwrap_or_default();
        let with_units = table.columns.iter().filter(|c| !c.unit.is_empty()).count();
        assert_eq!(units.len(), with_units);
        for (i, row) in reader.get_row_iter(None).unwrap().enumerate() {
            for ((name, field), column) in
                row.unwrap().into_columns().into_iter().zip(&table.columns)
            {
                assert_eq!(name, column.name);
                let is_same = match (&column.values, &field) {
                    (Values::Text(v), Field::Str(text)) => v[i].as_ref() == Some(text),
                    (Values::Number(v), Field::Double(n)) => v[i] == Some(*n),
                    (Values::Whole(v), Field::Long(n)) => v[i] == Some(*n),
                    (Values::Text(v), Field::Null) => v[i].is_none(),
                    (Values::Number(v), Field::Null) => v[i].is_none(),
                    (Values::Whole(v), Field::Null) => v[i].is_none(),
                    _ => false,
                };
                assert!(is_same, "{} row {i} {name}: {field}", table.name);
            }
        }
    }
}

#[test]
fn what_is_no_number_is_missing() {
    let (mut findings, runs) = fixture::single();
    for estimate in findings.cells[0].metrics.values_mut() {
        estimate.value = f64::NAN;
    }
    let table = &tables(&findings, &runs, &Times::default())[0];
    let Values::Number(values) = &column(table, "value").values else { panic!("numbers") };
    assert!(values.iter().all(Option::is_none));
    assert!(!csv(table).contains("NaN"));
}

#[test]
fn words_are_those_of_the_findings() {
    let (findings, runs) = fixture::three_variants();
    let all = tables(&findings, &runs, &Times::default());
    let words = |table: usize, name: &str| match &column(&all[table], name).values {
        Values::Text(words) => words.iter().flatten().cloned().collect::<Vec<String>>(),
        _ => panic!("{name} is text"),
    };
    let document: serde_json::Value =
        serde_json::from_str(&crate::json::render(&findings)).expect("it is JSON");
    let word_of =
        |name: &str| document["comparisons"][0][name].as_str().expect("a word").to_owned();
    assert_eq!(words(1, "metric")[0], word_of("metric"));
    assert_eq!(words(1, "verdict")[0], word_of("verdict"));
    let is_one_word = |word: &String| !word.is_empty() && !word.contains(' ');
    assert!(words(0, "metric").iter().all(is_one_word));
    assert!(words(0, "metric").contains(&"response_p95".to_owned()));
}
