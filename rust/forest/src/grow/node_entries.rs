//! The entries of sparse features in the examples of a node.
//!
//! A node of few rows reads all entries of its rows, which also tells the features that vary. A node of many rows reads the
//! entries of each feature that it draws, in all rows, and leaves out those of other nodes.
//!
//! Memory: for each thread 8 bytes for each sparse feature and row, 8 for each feature, and 8 for each entry of a node of few rows.

use crate::pool::FeaturePool;
use crate::view::View;
use ferrank_data::store::{CodeStore, SparseCodes};
use ferrank_runtime::random::Stream;

/// Time to read an entry of a feature, as a multiple of the time to read an entry of a row: the latter is read twice, and
/// counted.
const BY_FEATURE: f64 = 0.2;

/// Time to draw a feature and to look at it, in the same unit.
const PER_FEATURE: f64 = 5.0;

/// The code of a sparse feature in an example.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entry {
    /// The position of the example in the node.
    pub(super) position: u32,
    pub(super) code: u16,
}

/// The entries of a node, with buffers that are reused from node to node.
pub(super) struct NodeEntries<'a> {
    codes: &'a SparseCodes,
    /// n_sparse; the feature of each sparse one.
    features: Vec<u32>,
    /// The features with codes of their own for all rows.
    in_bands: Vec<u32>,
    /// Mean number of entries of a row.
    per_row: f64,
    /// True if the entries of the node were read by row.
    pub(super) by_row: bool,
    /// n_sparse; the range of `entries` of each feature. The end counts entries until they are read.
    ranges: Vec<[u32; 2]>,
    /// The numbers of the features with entries in the node, if they were read by row.
    present: Vec<u32>,
    /// By feature; of one feature if they are not read by row.
    entries: Vec<Entry>,
    /// Number of the node.
    node: u32,
    /// Rows of the store; the last node that each row was in, and its position there.
    positions: Vec<[u32; 2]>,
}

impl<'a> NodeEntries<'a> {
    /// `None` if no feature of `store` has a sparse slot.
    pub(super) fn new(store: &'a CodeStore) -> Option<Self> {
        let codes = store.sparse.as_deref()?;
        let all = 0..store.slots.len() as u32;
        // Numbers ascend with features.
        let (features, in_bands): (Vec<u32>, _) = all.partition(|&feature| codes.number(feature).is_some());
        Some(NodeEntries {
            codes,
            ranges: vec![[0; 2]; features.len()],
            features,
            in_bands,
            per_row: codes.by_row.len() as f64 / store.rows.max(1) as f64,
            by_row: false,
            present: Vec::new(),
            entries: Vec::new(),
            node: 0,
            positions: vec![[0; 2]; store.rows],
        })
    }

    /// Returns true if reading the entries of all features in `n` rows takes less time than reading those of the features
    /// that a node draws, of which `wanted` vary.
    fn is_cheaper_by_row(&self, n: usize, wanted: usize) -> bool {
        let n_features = self.features.len() as f64;
        let in_node = n as f64 * self.per_row;
        // The share of features that have an entry in the node, if entries were spread evenly.
        let share = -(-in_node / n_features).exp_m1();
        let drawn = (wanted as f64 / share.max(1e-9)).min(n_features);
        let per_feature = PER_FEATURE + BY_FEATURE * self.codes.by_feature.len() as f64 / n_features;
        in_node < drawn * per_feature
    }

    /// Starts a node with the examples in `rows`, which draws `wanted` features that vary.
    pub(super) fn start(&mut self, view: View<'_>, rows: &[u32], wanted: usize) {
        self.present.drain(..).for_each(|number| self.ranges[number as usize] = [0; 2]);
        self.by_row = self.is_cheaper_by_row(rows.len(), wanted);
        match self.by_row {
            true => self.count(view, rows),
            false => self.mark(view, rows),
        }
    }

    /// Records the positions of `rows`.
    fn mark(&mut self, view: View<'_>, rows: &[u32]) {
        if self.node == u32::MAX {
            self.positions.fill([0; 2]);
            self.node = 0;
        }
        self.node += 1;
        let (node, positions) = (self.node, &mut self.positions[..]);
        for (position, &row) in (0..).zip(rows) {
            positions[view.origin(row) as usize] = [node, position];
        }
    }

    /// Finds the features that have entries in `rows`.
    fn count(&mut self, view: View<'_>, rows: &[u32]) {
        for (position, &row) in rows.iter().enumerate() {
            self.prefetch_ahead(view, rows, position);
            for &number in self.codes.by_row.of(view.origin(row) as usize).0 {
                let [_, count] = &mut self.ranges[number as usize];
                if *count == 0 {
                    self.present.push(number);
                }
                *count += 1;
            }
        }
    }

    /// Prefetches the entries of a row that comes after that at `position`.
    #[inline(always)]
    fn prefetch_ahead(&self, view: View<'_>, rows: &[u32], position: usize) {
        if let Some(&row) = rows.get(position + 4) {
            self.codes.by_row.prefetch(view.origin(row) as usize);
        }
    }

    /// The features that may vary in the node, if they are known.
    fn present(&self) -> Option<impl Iterator<Item = u32>> {
        let sparse = self.present.iter().map(|&number| self.features[number as usize]);
        self.by_row.then(|| sparse.chain(self.in_bands.iter().copied()))
    }

    /// Starts a draw of `pool` among the features that may vary in the node, if they are known. Returns true if it did.
    pub(super) fn place_present(&self, pool: &mut FeaturePool, random: &mut Stream) -> bool {
        let present = self.present();
        let is_known = present.is_some();
        present.into_iter().for_each(|present| pool.place(present, random));
        is_known
    }

    /// Reads the entries of the node, which are read by row. It was started with the same `rows`.
    pub(super) fn read(&mut self, view: View<'_>, rows: &[u32]) {
        if !self.by_row {
            return;
        }
        let mut n_entries = 0;
        for &number in &self.present {
            let range = &mut self.ranges[number as usize];
            let count = range[1];
            *range = [n_entries; 2];
            n_entries += count;
        }
        self.entries.resize(n_entries as usize, Entry::default());
        for (position, &row) in (0..).zip(rows) {
            self.prefetch_ahead(view, rows, position as usize);
            let (numbers, codes) = self.codes.by_row.of(view.origin(row) as usize);
            for (&number, &code) in numbers.iter().zip(codes) {
                let end = &mut self.ranges[number as usize][1];
                self.entries[*end as usize] = Entry { position, code };
                *end += 1;
            }
        }
    }

    /// The entries of sparse feature number `number` in the node, which was [read](Self::read), in the order of their codes.
    pub(super) fn of(&mut self, number: usize) -> &[Entry] {
        if self.by_row {
            let [start, end] = self.ranges[number];
            let entries = &mut self.entries[start as usize..end as usize];
            if entries.len() > 1 {
                entries.sort_unstable_by_key(|entry| entry.code);
            }
            return entries;
        }
        let (rows, codes) = self.codes.by_feature.of(number);
        self.entries.resize(rows.len().max(self.entries.len()), Entry::default());
        // Local variables, so that they stay in registers.
        let (entries, positions, own) = (&mut self.entries[..rows.len()], &self.positions[..], self.node);
        let mut n = 0;
        for (&row, &code) in rows.iter().zip(codes) {
            let [node, position] = positions[row as usize];
            // Written in any case, which avoids an unpredictable branch.
            entries[n] = Entry { position, code };
            n += usize::from(node == own);
        }
        &self.entries[..n]
    }

    /// The codes of all rows.
    pub(super) fn codes(&self) -> &'a SparseCodes {
        self.codes
    }
}

#[cfg(test)]
mod tests {
    use ferrank_data::store::Slot;

    use super::*;
    use crate::tests::sparse_table;

    #[test]
    fn entries_of_a_node_are_the_same_by_row_and_by_feature() {
        let coded = sparse_table(60, 1_200, 3);
        let store = &coded.store;
        let view = View::from_codes(store, 0);
        let mut entries = NodeEntries::new(store).unwrap();
        let mut codes = Vec::new();
        // The nodes before leave nothing behind.
        for rows in [(0..60).collect::<Vec<u32>>(), vec![3, 4, 40, 59], (1..60).step_by(2).collect(), vec![7]] {
            for (feature, slot) in store.slots.iter().enumerate() {
                let Slot::Sparse(number) = *slot else { continue };
                let mut found = Vec::new();
                for by_row in [true, false] {
                    entries.start(view, &rows, if by_row { usize::MAX } else { 0 });
                    assert_eq!(entries.by_row, by_row);
                    entries.read(view, &rows);
                    let here = entries.of(number);
                    assert!(here.is_sorted_by_key(|entry| entry.code));
                    let mut here: Vec<_> = here.iter().map(|entry| (entry.position, entry.code)).collect();
                    here.sort_unstable();
                    if by_row {
                        assert_eq!(entries.present().unwrap().any(|other| other as usize == feature), !here.is_empty());
                    }
                    found.push(here);
                }
                let expected = view.take_sparse(number, &rows, &mut codes).iter().copied();
                let others =
                    (0..).zip(expected).filter(|&(_, code)| code != entries.codes().zeros[number]).collect::<Vec<_>>();
                assert_eq!(found, [others.clone(), others], "feature {feature}");
            }
        }
    }
}
