//! What a schema claims, checked before it is decoded, and the parameters of its types.
//!
//! Flatbuffers may share their parts: a file of a megabyte can give a thousand columns one name of a megabyte, which the
//! decoder would copy for each of them.

use arrow_ipc::{Field, KeyValue};
use arrow_schema::{DECIMAL32_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION};
use arrow_schema::{DECIMAL256_MAX_PRECISION, DataType, Schema};

use super::super::checked::Checked;

/// Bytes of names and metadata that may be shared by several columns.
const MOST_SHARED: usize = 16 << 20;

/// Bytes that describe a column at least, where nothing is shared.
const LEAST_FIELD: usize = 16;

/// Counts what the decoder would copy.
struct Claims {
    fields: usize,
    bytes: usize,
    /// The most of both.
    most: (usize, usize),
}

/// Checks that the schema, which `n_bytes` bytes describe, is not much larger once it is decoded.
pub(super) fn check(schema: arrow_ipc::Schema<'_>, n_bytes: usize) -> Checked<()> {
    let mut claims = Claims::new(n_bytes);
    claims.metadata(schema.custom_metadata().iter().flatten())?;
    schema.fields().iter().flatten().try_for_each(|field| claims.field(field))
}

/// Checks that metadata, which `n_bytes` bytes describe, are not much larger once they are decoded.
pub(super) fn check_metadata<'a>(pairs: impl Iterator<Item = KeyValue<'a>>, n_bytes: usize) -> Checked<()> {
    Claims::new(n_bytes).metadata(pairs)
}

impl Claims {
    fn new(n_bytes: usize) -> Self {
        Claims { fields: 0, bytes: 0, most: (64 + n_bytes / LEAST_FIELD, n_bytes + MOST_SHARED) }
    }

    fn field(&mut self, field: Field<'_>) -> Checked<()> {
        self.fields += 1;
        self.text(field.name().unwrap_or_default())?;
        if let Some(timestamp) = field.type_as_timestamp() {
            self.text(timestamp.timezone().unwrap_or_default())?;
        }
        self.metadata(field.custom_metadata().iter().flatten())?;
        field.children().iter().flatten().try_for_each(|child| self.field(child))
    }

    fn metadata<'a>(&mut self, pairs: impl Iterator<Item = KeyValue<'a>>) -> Checked<()> {
        for pair in pairs {
            self.text(pair.key().unwrap_or_default())?;
            self.text(pair.value().unwrap_or_default())?;
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Checked<()> {
        self.bytes += text.len();
        match self.fields > self.most.0 || self.bytes > self.most.1 {
            true => Err("its schema claims more columns, or longer names and metadata, than it has bytes for".into()),
            false => Ok(()),
        }
    }
}

/// Checks the parameters of the types of `schema`.
pub(super) fn check_types(schema: &Schema) -> Checked<()> {
    schema.fields().iter().try_for_each(|field| check_type(field.data_type()))
}

fn check_type(data_type: &DataType) -> Checked<()> {
    let digits = |precision: u8, most: u8| match (1..=most).contains(&precision) {
        true => Ok(()),
        false => Err(format!("a decimal of {precision} digits; it can have 1 to {most}")),
    };
    match data_type {
        DataType::Decimal32(precision, _) => digits(*precision, DECIMAL32_MAX_PRECISION),
        DataType::Decimal64(precision, _) => digits(*precision, DECIMAL64_MAX_PRECISION),
        DataType::Decimal128(precision, _) => digits(*precision, DECIMAL128_MAX_PRECISION),
        DataType::Decimal256(precision, _) => digits(*precision, DECIMAL256_MAX_PRECISION),
        DataType::FixedSizeBinary(width) if *width < 0 => Err("values of a negative length".into()),
        DataType::FixedSizeList(_, length) if *length < 0 => Err("lists of a negative length".into()),
        DataType::Dictionary(_, values) => check_type(values),
        DataType::RunEndEncoded(ends, values) => match ends.data_type() {
            DataType::Int16 | DataType::Int32 | DataType::Int64 => check_type(values.data_type()),
            other => Err(format!("ends of runs of the type {other}")),
        },
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => check_type(entries.data_type()),
            other => Err(format!("a map of {other}, which is no pair of a key and a value")),
        },
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => check_type(item.data_type()),
        DataType::Struct(fields) => fields.iter().try_for_each(|field| check_type(field.data_type())),
        DataType::Union(fields, _) => fields.iter().try_for_each(|(_, field)| check_type(field.data_type())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use arrow_ipc::{FieldBuilder, Precision, SchemaBuilder, Type};
    use flatbuffers::FlatBufferBuilder;

    use super::*;

    /// The bytes of a schema of `n` columns that share one description with a name of `length` letters.
    fn shared(n: usize, length: usize) -> Vec<u8> {
        let mut builder = FlatBufferBuilder::new();
        let name = builder.create_string(&"N".repeat(length));
        let mut double = arrow_ipc::FloatingPointBuilder::new(&mut builder);
        double.add_precision(Precision::DOUBLE);
        let double = double.finish().as_union_value();
        let mut field = FieldBuilder::new(&mut builder);
        field.add_name(name);
        field.add_type_type(Type::FloatingPoint);
        field.add_type_(double);
        let field = field.finish();
        let fields = builder.create_vector(&vec![field; n]);
        let mut schema = SchemaBuilder::new(&mut builder);
        schema.add_fields(fields);
        let schema = schema.finish();
        builder.finish(schema, None);
        builder.finished_data().to_vec()
    }

    fn checked(bytes: &[u8]) -> Checked<()> {
        check(flatbuffers::root::<arrow_ipc::Schema<'_>>(bytes).unwrap(), bytes.len())
    }

    #[test]
    fn what_columns_share_is_counted_for_each() {
        assert_eq!(checked(&shared(50, 1_000)), Ok(()));
        assert!(checked(&shared(100, 1_000_000)).is_err(), "names");
        assert!(checked(&shared(2_000, 1)).is_err(), "columns");
    }

    #[test]
    fn types_need_parameters_that_make_sense() {
        let of = |data_type: DataType| check_types(&Schema::new(vec![arrow_schema::Field::new("a", data_type, true)]));
        assert_eq!(of(DataType::Decimal128(38, 2)), Ok(()));
        let wrong = [DataType::Decimal128(0, 0), DataType::Decimal32(10, 0), DataType::FixedSizeBinary(-8)];
        for data_type in wrong {
            assert!(of(data_type.clone()).is_err(), "{data_type}");
            assert!(of(DataType::new_list(data_type.clone(), true)).is_err(), "list of {data_type}");
        }
    }
}
