//! Shadows of features: the same codes in other rows.
//!
//! A shadow has the distribution of its feature, ties and missing values included, and says nothing about the targets.
//! One permutation of the rows makes the shadows of all features, so that they depend on each other as the features do.
//!
//! If rows have groups, groups change places as a whole: a row takes its codes from a row of another group, so that
//! a feature that is constant within groups has a shadow that is, too. Within a group the order is random. Where groups
//! have different sizes, rows of the other group are used several times or not at all.
//!
//! Memory: the shadows of all rows, or those of a window of rows where they are written to scratch files; four bytes for
//! each row.

use std::sync::Arc;

use arrow_buffer::ScalarBuffer;
use rand::seq::SliceRandom;
use rayon::prelude::*;

use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::random::Stream;

use super::bands::{BAND, Bands};
use super::entries::SparseCodes;
use super::{Chunk, CodeStore, Keep, Slot, Stored};
use crate::groups::Groups;

impl CodeStore {
    /// For each row the row that its shadows have their codes from.
    pub fn draw_shadows(&self, random: &mut Stream) -> Vec<u32> {
        match &self.groups {
            None => {
                let mut rows: Vec<u32> = (0..self.rows as u32).collect();
                rows.shuffle(random);
                rows
            }
            Some(groups) => draw_grouped(groups, random),
        }
    }

    /// The store with a shadow of each feature: feature n_features + i has the codes that feature i has in the rows
    /// `sources`. Shadows are in memory or, `window` rows at a time, in scratch files.
    ///
    /// Everything but the codes of the shadows, and of sparse features, is shared with this store, if its codes are
    /// [shared](Self::share).
    ///
    /// # Errors
    /// [`Error::File`] if the disk is full.
    pub fn with_shadows(&self, sources: &[u32], keep: Keep<'_>, window: usize) -> Result<CodeStore> {
        let mut chunks = Vec::with_capacity(self.chunks.len());
        let mut first_chunk = 0;
        while first_chunk < self.chunks.len() {
            let mut end = first_chunk + 1;
            let rows_to = |end: usize| self.firsts[end - 1] + self.chunks[end - 1].rows;
            while end < self.chunks.len() && rows_to(end + 1) - self.firsts[first_chunk] <= window {
                end += 1;
            }
            let sources = self.places(&sources[self.firsts[first_chunk]..rows_to(end)], keep);
            let mut narrow = self.shadows::<u8>(&sources, first_chunk..end, keep)?.into_iter();
            let mut wide = self.shadows::<u16>(&sources, first_chunk..end, keep)?.into_iter();
            for chunk in &self.chunks[first_chunk..end] {
                chunks.push(Chunk {
                    rows: chunk.rows,
                    narrow: chunk.narrow.followed_by(narrow.next().unwrap_or_default()),
                    wide: chunk.wide.followed_by(wide.next().unwrap_or_default()),
                });
            }
            first_chunk = end;
        }
        Ok(self.doubled(chunks, |sparse, slots| sparse.with_shadows(slots, sources)))
    }

    /// The store of a part of the rows with a shadow of each feature, whose codes are in `shadows`, chunk by chunk.
    ///
    /// # Errors
    /// [`Error::Data`] if they are of other rows.
    pub fn with_shadow_codes(&self, shadows: &[Chunk]) -> Result<CodeStore> {
        let rows = |chunks: &[Chunk]| chunks.iter().map(|chunk| chunk.rows).collect::<Vec<usize>>();
        if rows(&self.chunks) != rows(shadows) {
            return Err(Error::Data("the shadows of a part have other rows than the part".into()));
        }
        let chunks = self.chunks.iter().zip(shadows).map(|(chunk, shadows)| Chunk {
            rows: chunk.rows,
            narrow: chunk.narrow.followed_by(shadows.narrow.buffers()),
            wide: chunk.wide.followed_by(shadows.wide.buffers()),
        });
        // Parts have all codes of a row.
        Ok(self.doubled(chunks.collect(), |sparse, _| sparse.clone()))
    }

    /// The store with `chunks`, which have the codes of the features and of their shadows; `sparse_shadows` adds those
    /// of sparse features, given the slots of all.
    fn doubled(
        &self,
        chunks: Vec<Chunk>,
        sparse_shadows: impl FnOnce(&SparseCodes, &[Slot]) -> SparseCodes,
    ) -> CodeStore {
        let n_sparse = self.sparse.as_ref().map_or(0, |sparse| sparse.zeros.len());
        let (narrow, wide) = self.chunks.first().map_or((0, 0), |chunk| (chunk.narrow.len(), chunk.wide.len()));
        let shadow = |slot: &Slot| match slot {
            Slot::Narrow(place) => Slot::Narrow(narrow * BAND + place),
            Slot::Wide(place) => Slot::Wide(wide * BAND + place),
            Slot::Sparse(place) => Slot::Sparse(n_sparse + place),
        };
        let slots: Vec<Slot> = self.slots.iter().copied().chain(self.slots.iter().map(shadow)).collect();
        let sparse = self.sparse.as_ref().map(|sparse| Arc::new(sparse_shadows(sparse, &slots)));
        CodeStore {
            rows: self.rows,
            chunks,
            firsts: self.firsts.clone(),
            codings: [&self.codings[..], &self.codings[..]].concat(),
            slots,
            sparse,
            is_sparse: self.is_sparse,
            targets: Arc::clone(&self.targets),
            values: Arc::clone(&self.values),
            weights: Arc::clone(&self.weights),
            groups: self.groups.clone(),
        }
    }

    /// Makes the codes such that stores with shadows share them.
    pub fn share(&mut self) {
        for chunk in &mut self.chunks {
            chunk.narrow = std::mem::take(&mut chunk.narrow).into_shared();
            chunk.wide = std::mem::take(&mut chunk.wide).into_shared();
        }
    }

    /// The places of rows of a window: chunk, row in it, row in the window. In files they are read in order.
    fn places(&self, sources: &[u32], keep: Keep<'_>) -> Vec<[u32; 3]> {
        let place = |(row, &source): (usize, &u32)| {
            let chunk = self.firsts.partition_point(|&first| first <= source as usize) - 1;
            [chunk as u32, source - self.firsts[chunk] as u32, row as u32]
        };
        let mut places: Vec<[u32; 3]> =
            sources.par_iter().enumerate().map(|(row, source)| place((row, source))).collect();
        if matches!(keep, Keep::Scratch(_)) {
            places.par_sort_unstable();
        }
        places
    }

    /// The bands of shadows in each of `chunks`, whose rows `places` lists.
    fn shadows<C: Stored>(
        &self,
        places: &[[u32; 3]],
        chunks: std::ops::Range<usize>,
        keep: Keep<'_>,
    ) -> Result<Vec<Vec<ScalarBuffer<C>>>> {
        let bands: Vec<&Bands<C>> = self.chunks.iter().map(C::of).collect();
        let n_bands = bands.first().map_or(0, |bands| bands.len());
        let fill = |band: usize| {
            let from: Vec<&[[C; BAND]]> = bands.iter().map(|bands| bands.band(band)).collect();
            let mut cells = vec![[C::default(); BAND]; places.len()];
            for &[chunk, source, row] in places {
                cells[row as usize] = from[chunk as usize][source as usize];
            }
            cells.into_flattened()
        };
        let filled: Vec<ScalarBuffer<C>> = match keep {
            Keep::Memory => (0..n_bands).into_par_iter().map(|band| ScalarBuffer::from(fill(band))).collect(),
            Keep::Scratch(scratch) => {
                let cells: Vec<Vec<C>> = (0..n_bands).into_par_iter().map(fill).collect();
                let all = scratch.values(cells.iter())?;
                (0..n_bands).map(|band| all.slice(band * places.len() * BAND, places.len() * BAND)).collect()
            }
        };
        let first = self.firsts[chunks.start];
        let of_chunk = |chunk: usize| {
            let (start, rows) = (self.firsts[chunk] - first, self.chunks[chunk].rows);
            filled.iter().map(|band| band.slice(start * BAND, rows * BAND)).collect()
        };
        Ok(chunks.map(of_chunk).collect())
    }
}

/// For each row a row of the group whose place its own takes.
fn draw_grouped(groups: &Groups, random: &mut Stream) -> Vec<u32> {
    let mut members = groups.members();
    let mut others: Vec<usize> = (0..groups.len()).collect();
    others.shuffle(random);
    (0..groups.len()).for_each(|group| members.of_mut(group).shuffle(random));
    let mut taken = vec![0; groups.len()];
    let source = |&group: &u32| {
        let of_other = members.of(others[group as usize]);
        taken[group as usize] += 1;
        of_other[(taken[group as usize] - 1) % of_other.len()]
    };
    groups.of_row.iter().map(source).collect()
}

#[cfg(test)]
mod tests {
    use ferrank_runtime::random::{Purpose, stream};

    use super::*;
    use crate::values::Values;

    #[test]
    fn groups_change_places_as_a_whole() {
        let of_row = [0u64, 0, 1, 2, 1, 0, 2, 1, 2];
        let groups = Groups::new(&[Values::Held(of_row.to_vec())], "test", Keep::Memory).unwrap();
        for seed in 0..20 {
            let sources = draw_grouped(&groups, &mut stream(seed, Purpose::Shadows, 0, 0));
            let mut others = [None; 3];
            for (row, &source) in sources.iter().enumerate() {
                let other = of_row[source as usize];
                assert_eq!(*others[of_row[row] as usize].get_or_insert(other), other);
            }
            // Groups of one size: each row is taken once.
            let mut sorted = sources.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..9));
        }
    }
}
