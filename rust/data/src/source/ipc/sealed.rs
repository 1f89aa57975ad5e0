//! Arrow files with a checksum of all they hold, which finds what Arrow's own checks let pass: other numbers.

use std::borrow::Borrow;
use std::io::Write;

use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, SchemaRef};
use xxhash_rust::xxh3::Xxh3;

use super::{IpcSource, PIECE, Pool, failed, layout};
use ferrank_runtime::error::Result;

/// The key of the checksum in the footer's metadata: the XXH3-64 of the bytes up to the end of the last batch, in
/// hexadecimal digits.
const SEAL: &str = "ferrank:checksum";

/// Passes on what is written, and hashes it.
struct Hashed<W> {
    to: W,
    hash: Xxh3,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = self.to.write(bytes)?;
        self.hash.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// Writes a file of `batches` with its checksum.
///
/// # Errors
/// What cannot be written.
pub fn write_sealed(
    to: impl Write,
    schema: &SchemaRef,
    batches: impl IntoIterator<Item: Borrow<RecordBatch>>,
) -> std::result::Result<(), ArrowError> {
    let mut writer = FileWriter::try_new(Hashed { to, hash: Xxh3::new() }, schema)?;
    batches.into_iter().try_for_each(|batch| writer.write(batch.borrow()))?;
    writer.write_metadata(SEAL, format!("{:016x}", writer.get_ref().hash.digest()));
    writer.finish()
}

/// Returns true if `source` is as [`write_sealed`] wrote it.
///
/// # Errors
/// The file cannot be read, or was changed.
pub fn is_sealed(source: &IpcSource) -> Result<bool> {
    let said = |what: String| failed(&source.name, &source.bytes, &what);
    let (mut hash, pool) = (Xxh3::new(), Pool::default());
    let end = source.ends().last().unwrap_or(0);
    for start in (0..end).step_by(PIECE) {
        hash.update(&source.bytes.get(start..end.min(start + PIECE), &pool).map_err(said)?);
    }
    let is_own = source.layout.footer.get(SEAL).is_some_and(|found| *found == format!("{:016x}", hash.digest()));
    // The footer repeats the schema behind these bytes.
    let is_own = is_own && layout::schema_of_file(&source.bytes).is_ok_and(|schema| schema == source.layout.schema);
    // Under `cargo fuzz`, inputs have to get behind this check.
    Ok(is_own || cfg!(fuzzing))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array};
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    #[test]
    fn no_bit_of_a_sealed_file_can_change() {
        let metadata = HashMap::from([("key".to_string(), "text".to_string())]);
        let schema = Arc::new(Schema::new_with_metadata(vec![Field::new("a", DataType::Float64, true)], metadata));
        let column: ArrayRef = Arc::new((0..20).map(f64::from).collect::<Float64Array>());
        let batch = RecordBatch::try_new(schema.clone(), vec![column]).unwrap();
        let mut bytes = Vec::new();
        write_sealed(&mut bytes, &schema, [&batch, &batch]).unwrap();
        let opened = |bytes: Vec<u8>| IpcSource::from_buffer("sealed".into(), bytes.into());
        assert!(is_sealed(&opened(bytes.clone()).unwrap()).unwrap());
        let rows = |source: &IpcSource| source.batches().collect::<Result<Vec<_>>>();
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let Ok(source) = opened(damaged) else { continue };
            if is_sealed(&source).is_ok_and(|sealed| sealed) {
                assert_eq!(rows(&source).unwrap(), [batch.clone(), batch.clone()], "bit {bit}");
            }
        }
    }
}
