//! Sums of a target by the codes of a feature.

use ferrank_data::store::{Code, CodeStore, Slot, Stored, TargetColumn};

use crate::answers::{Answer, Values};

/// The sums of one target for each code of one feature, and for the rows that lack a value.
///
/// They are integers, so that sums of parts of the rows add up to those of all, in any order.
#[derive(Debug, PartialEq)]
pub(crate) struct Table {
    /// n_codes + 1, the missing values last, x width.
    pub(crate) sums: Vec<i64>,
    pub(crate) width: usize,
}

impl Table {
    /// Of the rows of `store`, the first of which is row `first` of the target `column`, whose `answer` this is.
    pub(crate) fn new(
        store: &CodeStore,
        feature: usize,
        (answer, column): (&Answer, &TargetColumn),
        first: usize,
    ) -> Self {
        let n_codes = store.codings[feature].n_codes();
        let (width, values) = (answer.kind.width(), &answer.kind.values(column));
        let mut table = Table { sums: vec![0; (n_codes + 1) * width], width };
        match store.slots[feature] {
            Slot::Narrow(slot) => table.add_all::<u8>(store, slot, values, first),
            Slot::Wide(slot) => table.add_all::<u16>(store, slot, values, first),
            Slot::Sparse(slot) => {
                let sparse = store.sparse.as_ref().expect("a feature with a sparse slot has entries");
                let (rows, codes) = sparse.by_feature.of(slot);
                for (&row, &code) in rows.iter().zip(codes) {
                    table.add(code, row as usize, values);
                }
                // All other rows have the value 0. Only stores of all rows keep entries.
                let zero = usize::from(sparse.zeros[slot]) * width;
                for (column, &total) in answer.totals.iter().enumerate() {
                    let others: i64 = table.sums.iter().skip(column).step_by(width).sum();
                    table.sums[zero + column] += total - others;
                }
            }
        }
        table
    }

    fn add_all<C: Stored>(&mut self, store: &CodeStore, slot: usize, values: &Values<'_>, first: usize) {
        for (chunk, first) in store.chunks.iter().zip(store.firsts.iter().map(|own| first + own)) {
            let column = C::of(chunk).column(slot);
            for row in 0..chunk.rows {
                self.add(column.at(row), first + row, values);
            }
        }
    }

    #[inline(always)]
    fn add<C: Code>(&mut self, code: C, row: usize, values: &Values<'_>) {
        let of_missing = self.sums.len() / self.width - 1;
        let code = if code == C::MISSING { of_missing } else { code.index() };
        values.add(row, &mut self.sums[code * self.width..(code + 1) * self.width]);
    }

    /// The sums of the rows whose value is known, for each code, and of those that lack one.
    pub(crate) fn split(&self) -> (Vec<&[i64]>, &[i64]) {
        let (known, missing) = self.sums.split_at(self.sums.len() - self.width);
        (known.chunks_exact(self.width).collect(), missing)
    }
}
