//! Descriptions of batches that are not in the file as they are.

use arrow_ipc::{Buffer, DictionaryBatchBuilder, FieldNode, RecordBatch, RecordBatchBuilder};
use flatbuffers::{FlatBufferBuilder, WIPOffset};

/// What a batch that is not compressed consists of.
pub(super) struct Description<'a> {
    pub(super) rows: i64,
    pub(super) nodes: &'a [FieldNode],
    pub(super) buffers: &'a [Buffer],
    /// How many buffers of text each column of views has.
    pub(super) counts: &'a [i64],
}

impl Description<'_> {
    /// The flatbuffer of the batch.
    pub(super) fn batch(&self) -> FlatBufferBuilder<'static> {
        let mut builder = FlatBufferBuilder::new();
        let batch = self.written(&mut builder);
        builder.finish(batch, None);
        builder
    }

    /// The flatbuffer of the dictionary `id` with these values.
    pub(super) fn dictionary(&self, id: i64, is_delta: bool) -> FlatBufferBuilder<'static> {
        let mut builder = FlatBufferBuilder::new();
        let values = self.written(&mut builder);
        let mut dictionary = DictionaryBatchBuilder::new(&mut builder);
        dictionary.add_id(id);
        dictionary.add_data(values);
        dictionary.add_isDelta(is_delta);
        let dictionary = dictionary.finish();
        builder.finish(dictionary, None);
        builder
    }

    fn written(&self, builder: &mut FlatBufferBuilder<'static>) -> WIPOffset<RecordBatch<'static>> {
        let (nodes, buffers) = (builder.create_vector(self.nodes), builder.create_vector(self.buffers));
        let counts = (!self.counts.is_empty()).then(|| builder.create_vector(self.counts));
        let mut batch = RecordBatchBuilder::new(builder);
        batch.add_length(self.rows);
        batch.add_nodes(nodes);
        batch.add_buffers(buffers);
        if let Some(counts) = counts {
            batch.add_variadicBufferCounts(counts);
        }
        WIPOffset::new(batch.finish().value())
    }
}
