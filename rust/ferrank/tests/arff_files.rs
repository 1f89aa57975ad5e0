//! ARFF files: the sets in `tests/data`, the corners of the format, and what is wrong with broken ones.

use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use ferrank_data::inspect::{ColumnKind, inspect};
use ferrank_data::schema::Task;
use ferrank_data::source::{HIERARCHY, LABEL, ROLE, open, write_ipc};
use ferrank_runtime::error::Error;
use ferrank_runtime::monitor::Monitor;
use proptest::prelude::*;
use tempfile::TempDir;

fn data(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(file)
}

/// A value as text, `None` where it is missing.
type Cell = Option<String>;

/// Row by row, what is in a file of this text.
fn read(text: impl AsRef<[u8]>) -> Result<Vec<Vec<Cell>>, Error> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.arff");
    std::fs::write(&path, text).unwrap();
    let batches = open(&path, None)?.chunks()?.collect::<Result<Vec<_>, _>>()?;
    Ok(batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| cells(batch, row))).collect())
}

fn cells(batch: &RecordBatch, row: usize) -> Vec<Cell> {
    let cell = |column: &dyn Array| {
        column.is_valid(row).then(|| match column.data_type() {
            DataType::Float64 => column.as_primitive::<Float64Type>().value(row).to_string(),
            DataType::Utf8 => column.as_string::<i32>().value(row).to_string(),
            _ => {
                let column = column.as_dictionary::<Int32Type>();
                column.values().as_string::<i32>().value(column.keys().value(row) as usize).to_string()
            }
        })
    };
    batch.columns().iter().map(|column| cell(column.as_ref())).collect()
}

/// `read`, with `?` for a missing value and `,` between values.
fn rows(text: impl AsRef<[u8]>) -> Vec<String> {
    let plain = |cell: Cell| cell.unwrap_or_else(|| "?".into());
    read(text).unwrap().into_iter().map(|row| row.into_iter().map(plain).collect::<Vec<_>>().join(",")).collect()
}

fn message(text: impl AsRef<[u8]>) -> String {
    let message = read(text).unwrap_err().to_string();
    message.split_once("t.arff").expect("an error names the file").1.to_string()
}

#[test]
fn the_sets_are_what_their_authors_say() {
    // Rows, numeric and nominal columns (targets among them), missing values.
    for (file, rows, numeric, nominal, missing) in [
        ("abalone.arff", 4177, 8, 1, 0),
        ("anneal.arff", 898, 6, 33, 0),
        ("autos.arff", 205, 15, 11, 59),
        ("breast-w.arff", 699, 9, 1, 16),
        ("church_FUN.arff", 1630, 26, 1, 4137),
        ("clus-hierarchy.arff", 5, 1, 1, 2),
        ("clus-sparse.arff", 4, 4, 1, 1),
        ("diabetes.arff", 768, 8, 1, 0),
        ("edm.arff", 154, 18, 0, 0),
        ("eisen_GO-part.arff", 150, 16, 0, 62),
        ("emotions.arff", 593, 72, 6, 0),
        ("enb.arff", 768, 10, 0, 0),
        ("german.arff", 1000, 7, 14, 0),
        ("heart-c.arff", 303, 6, 8, 7),
        ("iris.arff", 150, 4, 1, 0),
        ("jura.arff", 359, 18, 0, 0),
        ("oes97.arff", 334, 279, 0, 0),
        ("sf1.arff", 323, 3, 10, 0),
        ("slump.arff", 103, 10, 0, 0),
        ("wine.arff", 178, 13, 1, 0),
    ] {
        let source = open(&data(file), None).unwrap();
        let seen = inspect(source.as_ref(), &Monitor::default()).unwrap();
        let count = |kind| seen.columns.iter().filter(|column| column.kind == kind).count();
        let found = (seen.rows, count(ColumnKind::Numeric), count(ColumnKind::Nominal));
        assert_eq!(found, (rows, numeric, nominal), "{file}");
        assert_eq!(seen.columns.iter().map(|column| column.missing).sum::<u64>(), missing, "{file}");
    }
    let tested = std::fs::read_dir(data(""))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "arff"));
    assert_eq!(tested.count(), 20, "a file in tests/data is missing from this test");
}

#[test]
fn label_files_mark_their_columns() {
    let source = open(&data("emotions.arff"), Some(&data("emotions.xml"))).unwrap();
    let marked = |schema: arrow_schema::SchemaRef| {
        let labels =
            schema.fields().iter().filter(|field| field.metadata().get(ROLE).is_some_and(|role| role == LABEL));
        labels.map(|field| field.name().clone()).collect::<Vec<_>>()
    };
    let labels = ["amazed-suprised", "happy-pleased", "relaxing-calm", "quiet-still", "sad-lonely", "angry-aggresive"];
    assert_eq!(marked(source.schema()), labels);
    let seen = inspect(source.as_ref(), &Monitor::default()).unwrap();
    assert_eq!(seen.labels, labels);
    assert!(source.chunks().unwrap().all(|chunk| marked(chunk.unwrap().schema()) == labels));

    // The marks outlive a change of format.
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("emotions.arrow");
    assert_eq!(write_ipc(source.as_ref(), &path, &Monitor::default()).unwrap(), 593);
    let arrow = open(&path, None).unwrap();
    assert_eq!(marked(arrow.schema()), labels);
    assert_eq!(inspect(arrow.as_ref(), &Monitor::default()).unwrap(), seen);
}

#[test]
fn label_files_that_do_not_fit_are_refused() {
    let folder = TempDir::new().unwrap();
    let open_with = |xml: &str| {
        let path = folder.path().join("labels.xml");
        std::fs::write(&path, xml).unwrap();
        open(&data("emotions.arff"), Some(&path)).map(drop).map_err(|error| error.to_string())
    };
    assert!(open_with("\u{feff}<labels><label name='sad-lonely'><label name='quiet-still'/></label></labels>").is_ok());
    let wrong = open_with("<labels><label name='sad-lonly'/></labels>").unwrap_err();
    assert!(
        wrong.contains("labels.xml") && wrong.contains("'sad-lonly'") && wrong.contains("are 'sad-lonely'"),
        "{wrong}"
    );
    for text in ["", "x", "<labels>", "<labels/>", "<labels><label/></labels>"] {
        assert!(open_with(text).unwrap_err().contains("labels.xml"), "{text}");
    }
}

#[test]
fn a_hierarchy_is_kept_as_written() {
    let source = open(&data("clus-hierarchy.arff"), None).unwrap();
    let schema = source.schema();
    assert_eq!(schema.field(2).metadata()[HIERARCHY], "string,string/violin,string/cello,wind,wind/flute");
    let batch = source.chunks().unwrap().next().unwrap().unwrap();
    assert_eq!(cells(&batch, 3)[2], Some("string/cello@wind".into()));
    let seen = inspect(source.as_ref(), &Monitor::default()).unwrap();
    let family = &seen.columns[2];
    assert_eq!((family.kind, family.task), (ColumnKind::Hierarchical, Some(Task::Hierarchical)));
    assert_eq!((family.distinct, family.missing), (Some(4), 1));
    assert_eq!(family.top[0], ("string/cello".into(), 2));

    // It outlives a change of format.
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("instruments.arrow");
    write_ipc(source.as_ref(), &path, &Monitor::default()).unwrap();
    assert_eq!(inspect(open(&path, None).unwrap().as_ref(), &Monitor::default()).unwrap(), seen);
}

#[test]
fn sparse_rows_count_from_one_where_a_file_shows_it() {
    let source = open(&data("clus-sparse.arff"), None).unwrap();
    let batch = source.chunks().unwrap().next().unwrap().unwrap();
    let row = |row| cells(&batch, row).into_iter().map(|cell| cell.unwrap_or("?".into())).collect::<Vec<_>>().join(",");
    assert_eq!([row(0), row(1), row(2), row(3)], ["0.5,0,0,0,no", "0,-1.25,4,0,yes", "2,0,0,?,yes", "0,0,0,0,yes"]);

    let header = "@relation r\n@attribute a numeric\n@attribute b {x,y}\n@data\n";
    assert_eq!(rows(format!("{header}{{0 3, 1 y}}\n{{}}\n")), ["3,y", "0,x"]);
    assert_eq!(rows(format!("{header}{{1 y}}\n")), ["0,y"], "in doubt from 0");
    assert_eq!(rows(format!("{header}{{1 4}}\n{{2 y}}\n")), ["4,x", "0,y"]);
    let both = message(format!("{header}{{0 3}}\n{{2 y}}\n"));
    assert!(both.contains("line 6, column 2: no attribute has number 2") && both.contains("from 0 to 1"), "{both}");
}

#[test]
fn sparse_and_dense_rows_may_be_mixed() {
    let header = "@relation r\n@attribute a numeric\n@attribute s string\n@attribute b {x,y}\n@data\n";
    assert_eq!(
        rows(format!("{header}{{0 1}}\n{{2 y}}\n2, t, y\n{{1 'u v',0 ?}}\n")),
        ["1,?,x", "0,?,y", "2,t,y", "?,u v,x"]
    );
}

#[test]
fn the_corners_of_the_format_are_read() {
    let text = concat!(
        "% a comment\r\n",
        "@RELATION 'it\\'s odd'\r\n",
        "\r\n",
        "@Attribute\ta-1/%\tInteger [1,10]\r\n",
        "@ATTRIBUTE 'b \\'c\\'' { '?', \"no, thanks\",yes }   % trailing\r\n",
        "@attribute \"'d'\" REAL\r\n",
        "@attribute e string\r\n",
        "@attribute f date 'yyyy-MM-dd'\r\n",
        "@DATA\r\n",
        "% one\r\n",
        "1,'?',2.5e-3,'a\\tb \\\\ \\'c\\'',2020-01-01\r\n",
        "\r\n",
        " ?\t,\t? , ? , ?, ? % missing, all\r\n",
        "-0, \"no, thanks\" , nan, \"10% \\\"x\\\"\",'2020-01-02',\r\n",
        "+7\tyes\t-Infinity\tword word\t2020-01-03\r\n",
    );
    let expected = [
        "1,?,0.0025,a\tb \\ 'c',2020-01-01",
        "?,?,?,?,?",
        "-0,no, thanks,?,10% \"x\",2020-01-02",
        "7,yes,-inf,word word,2020-01-03",
    ];
    assert_eq!(rows(text), expected);
    assert_eq!(rows(format!("\u{feff}{text}")), expected, "after a byte order mark");
    assert_eq!(rows(text.replace("\r\n", "\n")), expected);
    assert_eq!(rows(text.replace("\r\n", "\r")), expected);
    assert_eq!(rows(text.trim_end()), expected, "without a last line end");
    let read = read(text).unwrap();
    assert_eq!((&read[0][1], &read[1][1]), (&Some("?".into()), &None), "'?' is a value where declared, ? is missing");
}

#[test]
fn a_number_that_is_nan_is_missing() {
    for (written, read) in [("nan", "?"), ("NaN ", "?"), ("'nan'", "?"), ("inf", "inf"), ("1e999", "inf")] {
        assert_eq!(rows(format!("@relation r\n@attribute a numeric\n@data\n{written}\n")), [read]);
    }
}

#[test]
fn text_that_is_not_utf8_is_latin1() {
    assert_eq!(rows(b"@relation r\n@attribute caf\xe9 {th\xe9,eau}\n@data\nth\xe9\n"), ["thé"]);
    assert_eq!(rows("@relation r\n@attribute café {thé,eau}\n@data\nthé\n"), ["thé"]);
}

#[test]
fn a_file_without_rows_is_an_empty_table() {
    assert!(rows("@relation r\n@attribute a numeric\n@data\n").is_empty());
    assert!(rows("@relation r\n@attribute a numeric\n@data").is_empty());
}

#[test]
fn what_is_wrong_with_a_row_is_said_with_its_place() {
    let header =
        "@relation r\n@attribute width numeric\n@attribute colour {red,green,'?'}\n@attribute rest string\n@data\n";
    for (row, expected) in [
        ("1,red", ", line 6, column 6: the row has 2 values, the header declares 3 attributes"),
        ("1,red,", ", line 6, column 7: the row has 2 values, the header declares 3 attributes"),
        ("1,red,a,b,c", ", line 6, column 9: the row has 5 values, the header declares 3 attributes"),
        ("1.5x,red,a", ", line 6, column 1: '1.5x' is not a number, which attribute 'width' needs"),
        ("'?',red,a", ", line 6, column 1: '?' is not a number, which attribute 'width' needs"),
        (
            "1,Grün,a",
            ", line 6, column 3: 'Grün' is not a declared value of attribute 'colour'; the nearest are 'green', 'red', '?'",
        ),
        ("1,,a", ", line 6, column 3: no value for attribute 'colour'; write ? where it is missing"),
        ("ü,red,a", ", line 6, column 1: 'ü' is not a number, which attribute 'width' needs"),
        ("1,red,'a b", ", line 6, column 7: a quote is opened here and not closed; end the text with '"),
        ("1,red,'a'b", ", line 6, column 10: 'b' follows a closing quote; write \\' for a quote inside quotes"),
        ("1,red,a,{5}", ", line 6, column 9: '{5}' weighs the row, which is not read; make the weights an attribute"),
        ("{0 1, 0 2}", ", line 6, column 7: attribute number 0 has two values in this row"),
        ("{0 1", ", line 6, column 5: the sparse row does not end; close it with }"),
        ("{0 1} 5", ", line 6, column 7: '5' follows the row; remove it"),
        ("{x 1}", ", line 6, column 2: 'x 1}' where a sparse row has: number, blank, value"),
        ("{0 1}, {5}", ", line 6, column 8: '{5}' weighs the row, which is not read; make the weights an attribute"),
    ] {
        assert_eq!(message(format!("{header}{row}\n")), expected);
    }
    // Characters are counted, not bytes; lines also where they are skipped.
    let late = message(format!("{header}1,red,ü\n\n% c\n2,green,'é',x\n"));
    assert!(late.starts_with(", line 9, column 13: the row has 4 values"), "{late}");
}

#[test]
fn other_files_are_named_for_what_they_are() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("data");
    let found = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        open(&path, None).err().unwrap().to_string()
    };
    for (bytes, words) in [
        (&b"PAR1...."[..], "Parquet"),
        (b"a,b\n1,2\n", "CSV"),
        (b"", "is empty"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"\xff\xfe@\0r\0", "UTF-16"),
        (b"\0\0\0\0", "unknown binary"),
        (b"ARROW1\0\0", "damaged or cut off"),
        (b"\xff\xff\xff\xff", "damaged or cut off"),
        (b"@relation r\n@attribute a numeric\n", "without @data"),
    ] {
        let message = found(bytes);
        assert!(message.contains(words) && message.contains(path.to_str().unwrap()), "{message}");
    }
    assert!(matches!(open(folder.path(), None), Err(Error::File { .. })));
    assert!(matches!(open(&folder.path().join("none"), None), Err(Error::File { .. })));
}

#[test]
fn wide_files_come_in_chunks_of_bounded_size() {
    let columns = 50_000;
    let mut text = String::from("@relation wide\n");
    (0..columns).for_each(|column| text += &format!("@attribute a{column} numeric\n"));
    text += "@data\n";
    (0..200).for_each(|row| text += &format!("{{{row} 1}}\n"));
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("wide.arff");
    std::fs::write(&path, text).unwrap();
    let source = open(&path, None).unwrap();
    let chunks: Vec<usize> = source.chunks().unwrap().map(|chunk| chunk.unwrap().num_rows()).collect();
    assert_eq!(chunks, [83, 83, 34]);
}

fn quoted(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\n' => out += "\\n",
            '\r' => out += "\\r",
            '\'' | '\\' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out + "'"
}

proptest! {
    #[test]
    fn any_table_written_as_arff_is_read_back(
        names in proptest::collection::vec("[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f]{1,8}", 3),
        domain in proptest::collection::vec("[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f]{0,6}", 1..5),
        table in proptest::collection::vec(
            (proptest::option::of(any::<f64>().prop_filter("not NaN", |v| !v.is_nan())),
             proptest::option::of(any::<prop::sample::Index>()),
             proptest::option::of("[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f]{0,10}")),
            0..30),
        sparse in any::<bool>(),
    ) {
        let list: Vec<String> = domain.iter().map(|value| quoted(value)).collect();
        let mut text = format!(
            "@relation r\n@attribute {} numeric\n@attribute {} {{{}}}\n@attribute {} string\n@data\n",
            quoted(&names[0]), quoted(&names[1]), list.join(","), quoted(&names[2])
        );
        let mut expected = Vec::new();
        for (number, choice, string) in &table {
            let value = choice.as_ref().map(|choice| choice.get(&domain).clone());
            let missing = || "?".to_string();
            let written = [
                number.map_or_else(missing, |number| format!("{number:?}")),
                value.as_ref().map_or_else(missing, |value| quoted(value)),
                string.as_ref().map_or_else(missing, |string| quoted(string)),
            ];
            text += &match sparse {
                true => format!("{{0 {}, 1 {}, 2 {}}}\n", written[0], written[1], written[2]),
                false => format!("{}\n", written.join(",")),
            };
            expected.push(vec![number.map(|number| number.to_string()), value, string.clone()]);
        }
        prop_assert_eq!(read(&text).unwrap(), expected);
    }

    #[test]
    fn no_text_takes_the_process_down(
        header in "(@relation r\n)?(@attribute [ab'\" ]{0,5} (numeric|string|\\{[ab'\", ?%]{0,8}\\})\n){0,3}(@data\n)?",
        body in "[01?ab'\"\\\\,{}%\t \n\r.-]{0,60}",
    ) {
        let _ = read(format!("{header}{body}"));
    }
}
