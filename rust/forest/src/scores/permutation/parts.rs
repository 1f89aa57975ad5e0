//! The score of a tree that is shown in parts.
//!
//! Rows walk down the upper part as they walk down a whole tree. Where a path or a detour goes on in a subtree, a record of
//! it is in a temporary file until the subtree is shown: of a path the codes of the row, own and permuted ones, and which
//! features have already led off it; of a detour the codes alone, one of them permuted. Errors are added up in fixed point,
//! so that the order of the rows does not matter.

use std::sync::Arc;

use bytemuck::{bytes_of, pod_read_unaligned};
use ferrank_runtime::error::Result;
use ferrank_runtime::scratch::Scratch;

use super::errors::{ErrorScale, ErrorSums, Judge};
use super::ring::{BLOCK_ROWS, Codes, Ring};
use super::walk::{GROUP_ROWS, Walk, walk_all};
use crate::oob::{OobPart, OobView, PackedTree, TreeColumns};
use crate::paired::{PairedTree, WalkedCode};
use crate::pieces::{PieceFile, Pieces, WAITING};

/// The errors of a tree, as far as it has been shown.
pub(super) struct PartSums {
    scale: ErrorScale,
    sums: ErrorSums,
    /// The columns of all features.
    columns: Arc<TreeColumns>,
    /// n_columns; whether the tree tests the feature.
    tested: Vec<bool>,
    records: Records,
}

/// Paths and detours that go on in subtrees.
struct Records {
    file: PieceFile,
    /// n_leaves each
    paths: Vec<Pieces>,
    detours: Vec<Pieces>,
    /// The columns that the upper part tests.
    upper: Vec<usize>,
}

impl PartSums {
    /// Walks the out-of-bag rows of `view` down an upper tree whose columns are those of all features. Subtrees take the
    /// place of the leaves for which `grows` is true. `None` if there is no row.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request,
    /// [`Error::File`](ferrank_runtime::error::Error::File) if the disk is full.
    pub(super) fn new(view: &OobView<'_>, grows: &[bool], scratch: &Scratch) -> Result<Option<Self>> {
        let columns = &view.tree.columns;
        if view.rows.is_empty() {
            return Ok(None);
        }
        let scale = ErrorScale::new(view.targets, view.rows);
        let ring = Ring::new(view, view.rows, columns)?;
        let mut tested = vec![false; columns.len()];
        mark(&mut tested, view.tree);
        let lists = || grows.iter().map(|_| Pieces::default()).collect();
        let file = PieceFile::new(scratch, 2 * grows.len(), WAITING)?;
        let upper = (0..columns.len()).filter(|&column| tested[column]).collect();
        let records = Records { file, paths: lists(), detours: lists(), upper };
        let sums = ErrorSums::new(&scale, columns.len());
        let mut parts = PartSums { scale, sums, columns: Arc::clone(columns), tested, records };
        match columns.is_narrow() {
            true => parts.walk::<u8>(view, &ring, grows)?,
            false => parts.walk::<u16>(view, &ring, grows)?,
        }
        let Records { file, paths, detours, .. } = &mut parts.records;
        paths.iter_mut().chain(detours).try_for_each(|list| file.finish(list))?;
        Ok(Some(parts))
    }

    fn walk<C: WalkedCode>(&mut self, view: &OobView<'_>, ring: &Ring, grows: &[bool]) -> Result<()> {
        let PartSums { scale, sums, records, .. } = self;
        let judge = Judge { scale, targets: view.targets, leaves: view.predictions };
        let mut departed: Vec<Vec<usize>> = vec![Vec::new(); GROUP_ROWS];
        walk_all::<C>(view, ring, |first, rows, walk, codes| {
            departed.iter_mut().for_each(Vec::clear);
            for detour in walk.detours() {
                let (row, column, leaf) = (detour.row(), detour.column(), detour.leaf());
                departed[row].push(column);
                match grows[leaf] {
                    true => records.add_detour::<C>((rows[row], column), (first + row) % BLOCK_ROWS, codes, leaf)?,
                    false => sums.arrive(judge, rows[row], leaf, column),
                }
            }
            for ((place, &row), departed) in (first..).zip(rows).zip(&departed) {
                let leaf = walk.leaves()[place - first] as usize;
                match grows[leaf] {
                    true => records.add_path::<C>(row, departed, place % BLOCK_ROWS, codes, leaf)?,
                    false => {
                        sums.stay(judge, row, leaf);
                        departed.iter().for_each(|&column| sums.depart(judge, row, leaf, column));
                    }
                }
            }
            Ok(())
        })
    }

    /// Adds the errors of the rows that reach a subtree, on their paths or on detours.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request,
    /// [`Error::File`](ferrank_runtime::error::Error::File) if the temporary file cannot be read.
    pub(super) fn add(&mut self, part: &OobPart<'_>) -> Result<()> {
        mark(&mut self.tested, part.of.tree);
        match self.columns.is_narrow() {
            true => self.add_as::<u8>(part),
            false => self.add_as::<u16>(part),
        }
    }

    fn add_as<C: WalkedCode>(&mut self, part: &OobPart<'_>) -> Result<()> {
        let mut walker = Walker::<C>::new(part.of.tree, self.columns.len());
        self.add_paths(part, &mut walker)?;
        self.add_detours(part, &mut walker)
    }

    /// Adds the errors of rows on their paths, and the changes by their detours from these.
    fn add_paths<C: WalkedCode>(&mut self, part: &OobPart<'_>, walker: &mut Walker<C>) -> Result<()> {
        let Walker { tree, walk, block } = walker;
        let PartSums { scale, sums, records: Records { file, paths, upper, .. }, columns, .. } = self;
        let judge = Judge { scale, targets: part.of.targets, leaves: part.of.predictions };
        let (n_codes, n_marks) = (columns.len() * size_of::<C>(), upper.len().div_ceil(8));
        let size = size_of::<u32>() + n_marks + 2 * n_codes;
        let add = |record: &[u8], block: &mut RecordBlock<C>| {
            let (row, record) = record.split_at(size_of::<u32>());
            let (marks, record) = record.split_at(n_marks);
            let (own, taken) = record.split_at(n_codes);
            block.add(pod_read_unaligned(row), own, taken);
            block.marks.extend_from_slice(marks);
        };
        block.of_records((file, &std::mem::take(&mut paths[part.leaf])), size, add, |block| {
            for (first, rows) in block.groups() {
                walk.walk(tree, &block.codes, first, rows.len());
                sums.add(judge, rows, walk);
                for ((place, &row), &leaf) in (first..).zip(rows).zip(walk.leaves()) {
                    let marks = &block.marks[place * n_marks..(place + 1) * n_marks];
                    let is_marked = |number: usize| marks[number / 8] >> (number % 8) & 1 == 1;
                    let departed = upper.iter().enumerate().filter(|&(number, _)| is_marked(number));
                    departed.for_each(|(_, &column)| sums.depart(judge, row, leaf as usize, column));
                }
            }
            part.of.context.monitor.check()
        })
    }

    /// Adds the errors of rows on detours from the upper part of the tree.
    fn add_detours<C: WalkedCode>(&mut self, part: &OobPart<'_>, walker: &mut Walker<C>) -> Result<()> {
        let Walker { tree, walk, block } = walker;
        let PartSums { scale, sums, records: Records { file, detours, .. }, columns, .. } = self;
        let judge = Judge { scale, targets: part.of.targets, leaves: part.of.predictions };
        let size = 2 * size_of::<u32>() + columns.len() * size_of::<C>();
        let add = |record: &[u8], block: &mut RecordBlock<C>| {
            let (head, codes) = record.split_at(2 * size_of::<u32>());
            let [row, column]: [u32; 2] = pod_read_unaligned(head);
            block.add(row, codes, codes);
            block.columns.push(column);
        };
        block.of_records((file, &std::mem::take(&mut detours[part.leaf])), size, add, |block| {
            for (first, rows) in block.groups() {
                walk.walk(tree, &block.codes, first, rows.len());
                for ((&row, &column), &leaf) in rows.iter().zip(&block.columns[first..]).zip(walk.leaves()) {
                    sums.arrive(judge, row, leaf as usize, column as usize);
                }
            }
            part.of.context.monitor.check()
        })
    }

    /// The importances of the features that the tree tests: (feature, value) by ascending feature.
    pub(super) fn importances(&self) -> Vec<(u32, f64)> {
        let values = self.sums.importances(&self.scale);
        let all = self.columns.features.iter().copied().zip(values).zip(&self.tested);
        let mut found: Vec<(u32, f64)> = all.filter(|(_, tested)| **tested).map(|(found, _)| found).collect();
        found.sort_unstable_by_key(|&(feature, _)| feature);
        found
    }
}

/// Marks the columns that `tree` tests.
fn mark(tested: &mut [bool], tree: &PackedTree) {
    tree.steps.iter().for_each(|step| tested[step.column as usize] = true);
}

impl Records {
    /// Adds the path of `row`, number `place` of the block of `codes`, to the subtree at `leaf`. It has left the path
    /// where the columns `departed` are permuted.
    fn add_path<C: WalkedCode>(
        &mut self,
        row: u32,
        departed: &[usize],
        place: usize,
        codes: &Codes<C>,
        leaf: usize,
    ) -> Result<()> {
        let Records { file, paths, upper, .. } = self;
        let list = &mut paths[leaf];
        list.waiting.extend_from_slice(bytes_of(&row));
        let marks = list.waiting.len();
        list.waiting.resize(marks + upper.len().div_ceil(8), 0);
        for number in departed.iter().filter_map(|column| upper.binary_search(column).ok()) {
            list.waiting[marks + number / 8] |= 1 << (number % 8);
        }
        let start = list.waiting.len();
        codes.of_row(place).for_each(|[own, _]| list.waiting.extend_from_slice(bytes_of(&own)));
        let end = list.waiting.len();
        codes.of_row(place).for_each(|[_, taken]| list.waiting.extend_from_slice(bytes_of(&taken)));
        // Where a row has left its path already, it does not leave it again.
        for at in departed.iter().map(|column| column * size_of::<C>()) {
            list.waiting.copy_within(start + at..start + at + size_of::<C>(), end + at);
        }
        file.write(list)
    }

    /// Adds the detour of a row, number `place` of the block of `codes`, with a permuted value of `column`, to the subtree
    /// at `leaf`.
    fn add_detour<C: WalkedCode>(
        &mut self,
        (row, column): (u32, usize),
        place: usize,
        codes: &Codes<C>,
        leaf: usize,
    ) -> Result<()> {
        let list = &mut self.detours[leaf];
        list.waiting.extend_from_slice(bytes_of(&[row, column as u32]));
        for (number, both) in codes.of_row(place).enumerate() {
            list.waiting.extend_from_slice(bytes_of(&both[usize::from(number == column)]));
        }
        self.file.write(list)
    }
}

/// Walks records down a subtree.
struct Walker<C: WalkedCode> {
    tree: PairedTree<C>,
    walk: Walk,
    block: RecordBlock<C>,
}

impl<C: WalkedCode> Walker<C> {
    fn new(tree: &PackedTree, n_columns: usize) -> Self {
        Walker { tree: tree.paired(), walk: Walk::new(n_columns), block: RecordBlock::new(n_columns) }
    }
}

/// Records that are walked together.
struct RecordBlock<C> {
    rows: Vec<u32>,
    codes: Codes<C>,
    /// Of paths, one after the other: a bit for each column of the upper part, set if it has led off the path.
    marks: Vec<u8>,
    /// Of detours: the columns that are permuted.
    columns: Vec<u32>,
}

impl<C: WalkedCode> RecordBlock<C> {
    fn new(n_columns: usize) -> Self {
        RecordBlock { rows: Vec::new(), codes: Codes::new(n_columns), marks: Vec::new(), columns: Vec::new() }
    }

    /// Reads the records in `list` of a file, of `size` bytes each, which `add` adds to the block. Calls `each` whenever
    /// the block is full, and at the end.
    fn of_records(
        &mut self,
        (file, list): (&PieceFile, &Pieces),
        size: usize,
        add: impl Fn(&[u8], &mut Self),
        mut each: impl FnMut(&Self) -> Result<()>,
    ) -> Result<()> {
        file.read(list, |piece| {
            for record in piece.chunks_exact(size) {
                add(record, self);
                if self.rows.len() == BLOCK_ROWS {
                    each(self)?;
                    self.clear();
                }
            }
            Ok(())
        })?;
        each(self)?;
        self.clear();
        Ok(())
    }

    /// Adds a row with the bytes of its own codes and of the permuted ones.
    fn add(&mut self, row: u32, own: &[u8], taken: &[u8]) {
        let both = own.chunks_exact(size_of::<C>()).zip(taken.chunks_exact(size_of::<C>()));
        self.codes.set_row(self.rows.len(), both.map(|(own, taken)| [own, taken].map(pod_read_unaligned)));
        self.rows.push(row);
    }

    /// The rows in groups that are walked together, with the number of the first of each.
    fn groups(&self) -> impl Iterator<Item = (usize, &[u32])> {
        (0..).step_by(GROUP_ROWS).zip(self.rows.chunks(GROUP_ROWS))
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.marks.clear();
        self.columns.clear();
    }
}
