//! Sparse columns are read with the bits of the same columns in batches.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::intake::{Intake, Unlabelled};
use crate::profile::{MISSING_U8, MISSING_U16, Profile};
use crate::schema::{Problem, Roles, Targets};
use crate::source::{ChunkSource, Chunks, SparseColumns, TableSource};
use crate::store::{CodeStore, Codebook, Keep, Part, Slot};
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;
use ferrank_runtime::scratch::Scratch;

/// A table of which the columns from number 1 on, but for the last two, are sparse.
struct SparseTable {
    all: TableSource,
    rest: TableSource,
    width: usize,
    starts: Vec<i64>,
    columns: Vec<i32>,
    values: Vec<f64>,
}

impl ChunkSource for SparseTable {
    fn schema(&self) -> SchemaRef {
        self.all.schema()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        panic!("sparse columns are not read in batches")
    }

    fn name(&self) -> &str {
        "table"
    }

    fn sparse(&self) -> Result<Option<SparseColumns<'_>>> {
        let SparseTable { rest, width, starts, columns, values, .. } = self;
        let values = ScalarBuffer::from(values.clone());
        Ok(Some(SparseColumns { first: 1, width: *width, starts, columns, values, rest: Box::new(rest.clone()) }))
    }
}

type Cell = Option<f64>;

/// The sparse cells, the column before them, the target and the weight.
type Row = (Vec<Cell>, f64, Cell, f64);

/// The same rows as a table and with sparse columns, which list each value but `0.0`, and that as well if `lists_zeros`.
fn both(rows: &[Row], lists_zeros: bool) -> (TableSource, SparseTable) {
    let width = rows[0].0.len();
    let numbers = |values: Vec<Cell>| Arc::new(Float64Array::from_iter(values)) as ArrayRef;
    let of = |value: &dyn Fn(&Row) -> Cell| numbers(rows.iter().map(value).collect());
    let mut columns = vec![("first".to_string(), of(&|row| Some(row.1)))];
    columns.extend((0..width).map(|n| (format!("x{n}"), of(&|row| row.0[n]))));
    columns.extend([("y".into(), of(&|row| row.2)), ("w".into(), of(&|row| Some(row.3)))]);
    let table = |columns: &[&(String, ArrayRef)]| {
        let fields: Vec<Field> = columns.iter().map(|(name, _)| Field::new(name, DataType::Float64, true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let arrays = columns.iter().map(|(_, array)| array.clone()).collect();
        let batch = RecordBatch::try_new(schema.clone(), arrays).unwrap();
        let parts = (0..rows.len()).step_by(7).map(|first| batch.slice(first, 7.min(rows.len() - first)));
        TableSource::new("table", schema, parts.collect()).unwrap()
    };
    let all: Vec<&(String, ArrayRef)> = columns.iter().collect();
    let rest: Vec<&(String, ArrayRef)> = columns.iter().filter(|(name, _)| !name.starts_with('x')).collect();
    let mut sparse = SparseTable {
        all: table(&all),
        rest: table(&rest),
        width,
        starts: vec![0],
        columns: Vec::new(),
        values: Vec::new(),
    };
    for (cells, ..) in rows {
        for (column, cell) in (0..).zip(cells) {
            let value = cell.unwrap_or(f64::NAN);
            if lists_zeros || value.to_bits() != 0 {
                sparse.columns.push(column);
                sparse.values.push(value);
            }
        }
        sparse.starts.push(sparse.columns.len() as i64);
    }
    (table(&all), sparse)
}

fn with_intake<T>(source: &dyn ChunkSource, work: impl FnOnce(&Intake<'_>) -> T) -> T {
    let roles = Roles::new(Targets::Named(vec!["y".into()])).with_weight(Some("w".into()));
    let problem = Problem::resolve(&source.schema(), &roles, "table").unwrap();
    let monitor = Monitor::default();
    work(&Intake::new(source, &problem, Unlabelled::Ignore, &monitor))
}

/// All codes of a store, by feature and row.
fn codes(store: &CodeStore) -> Vec<Vec<u16>> {
    let widen = |code: u8| if code == MISSING_U8 { MISSING_U16 } else { u16::from(code) };
    let code = |slot: Slot, row: usize| {
        let chunk = store.firsts.partition_point(|&first| first <= row) - 1;
        let (chunk, at) = (&store.chunks[chunk], row - store.firsts[chunk]);
        match slot {
            Slot::Narrow(slot) => widen(chunk.narrow.column(slot).at(at)),
            Slot::Wide(slot) => chunk.wide.column(slot).at(at),
            Slot::Sparse(number) => store.sparse.as_ref().unwrap().code(number, row),
        }
    };
    store.slots.iter().map(|&slot| (0..store.rows).map(|row| code(slot, row)).collect()).collect()
}

fn store(intake: &Intake<'_>, profile: &Profile, compressed: bool, keep: Keep<'_>) -> CodeStore {
    let book = Codebook::new(profile, intake.problem, false, "table").unwrap();
    let book = if compressed { book.compressed() } else { book };
    let part = Part::new(intake, &book, profile.counts, keep).unwrap();
    CodeStore::from_parts(book, vec![part], keep).unwrap()
}

/// Checks that both sources have the same profile and the same codes, kept in any way.
fn check(table: &TableSource, sparse: &SparseTable, max_bins: usize) {
    let (profile, expected) = with_intake(table, |intake| {
        let profile = Profile::new(intake, max_bins).unwrap();
        let expected = codes(&store(intake, &profile, false, Keep::Memory));
        assert_eq!(codes(&store(intake, &profile, true, Keep::Memory)), expected);
        (profile, expected)
    });
    with_intake(sparse, |intake| {
        let found = Profile::new(intake, max_bins).unwrap();
        assert_eq!(found.digest(), profile.digest());
        assert_eq!(found.to_ipc().unwrap(), profile.to_ipc().unwrap());
        let few = |profile: &Profile| -> Vec<f64> {
            profile.features.iter().map(|column| column.entropy(profile.counts.kept)).collect()
        };
        assert_eq!(few(&found), few(&profile));
        let scratch = Scratch::new(None);
        for compressed in [false, true] {
            assert_eq!(codes(&store(intake, &found, compressed, Keep::Memory)), expected);
        }
        assert_eq!(codes(&store(intake, &found, false, Keep::Scratch(&scratch))), expected);
    });
}

fn cell() -> impl Strategy<Value = Cell> {
    let value = prop_oneof![6 => Just(0.0), 1 => Just(-0.0), 4 => (-4..5i32).prop_map(f64::from), 1 => -1e3..1e3f64];
    prop::option::weighted(0.95, value)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn entries_have_the_bits_of_batches(
        rows in (1..20usize).prop_flat_map(|width| {
            let row = (vec(cell(), width), -9.0..9.0f64, prop::option::weighted(0.8, -1.0..1.0f64), 0..3i32);
            vec(row.prop_map(|(cells, first, y, w)| (cells, first, y, f64::from(w))), 1..80)
        }),
        max_bins in prop_oneof![2..20usize, Just(255), Just(300)],
        lists_zeros in any::<bool>(),
    ) {
        prop_assume!(rows.iter().any(|row| row.2.is_some() && row.3 > 0.0));
        let (table, sparse) = both(&rows, lists_zeros);
        check(&table, &sparse, max_bins);
    }
}

#[test]
fn many_sparse_features_are_compressed_and_rows_beyond_the_sample_count() {
    // More rows than are sampled of so many features.
    let rows: Vec<_> = (0..4_400usize)
        .map(|row| {
            let cell = |column: usize| match (row * 31 + column * 17) % 97 {
                0 if column.is_multiple_of(9) => None,
                0 => Some(((row % 23) as f64 - 11.0) / 4.0),
                _ if column == 40 => Some((row % 5) as f64),
                _ => Some(0.0),
            };
            ((0..1_100).map(cell).collect(), row as f64, Some(1.0), (row % 4) as f64)
        })
        .collect();
    let (table, sparse) = both(&rows, false);
    with_intake(&sparse, |intake| {
        let profile = Profile::new(intake, 20).unwrap();
        let store = store(intake, &profile, true, Keep::Memory);
        assert!(store.is_sparse && store.slots.iter().filter(|slot| matches!(slot, Slot::Sparse(_))).count() == 1_099);
    });
    check(&table, &sparse, 20);
}

#[test]
fn a_sparse_column_with_another_role_is_read_in_batches() {
    let (table, sparse) = both(&[(vec![Some(1.0), Some(0.0)], 1.0, Some(1.0), 1.0)], false);
    let roles = Roles::new(Targets::Named(vec!["x1".into()]));
    let problem = Problem::resolve(&table.schema(), &roles, "table").unwrap();
    let monitor = Monitor::default();
    let intake = Intake::new(&sparse, &problem, Unlabelled::Error, &monitor);
    assert!(super::sparse::SparseIntake::new(&intake).unwrap().is_none());
}
