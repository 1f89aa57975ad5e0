//! Shadows of features: the same codes in other rows.
//!
//! A shadow has the distribution of its feature, ties and missing values included, and says nothing about the targets.
//! One permutation of the rows makes the shadows of all features, so that they depend on each other as the features do.
//!
//! If rows have groups, groups change places with groups of about the same size: where sizes are equal, a row takes its
//! codes from a row of one other group, so that a feature that is constant within groups has a shadow that is, too. Within
//! a group the order is random. Each row is taken once: a shadow with fewer categories than its feature would be too
//! weak, and features of many categories look relevant beside it.
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

/// Fewest groups among which groups change places.
const FEWEST_ALIKE: usize = 8;

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

/// For each row a row of another group of about the same size, as far as there are some; each row once.
fn draw_grouped(groups: &Groups, random: &mut Stream) -> Vec<u32> {
    let mut members = groups.members();
    (0..groups.len()).for_each(|group| members.of_mut(group).shuffle(random));
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.shuffle(random);
    order.sort_by_key(|&group| groups.sizes[group]);
    let mut sources = vec![0; groups.of_row.len()];
    for alike in of_like_size(&mut order, &groups.sizes) {
        alike.shuffle(random);
        let takers: Vec<u32> = alike.iter().flat_map(|&group| members.of(group)).copied().collect();
        let next = alike.first().map_or(0, |&group| members.of(group).len());
        let givers = takers.iter().cycle().skip(next);
        takers.iter().zip(givers).for_each(|(&taker, &giver)| sources[taker as usize] = giver);
    }
    sources
}

/// Groups, which ascend by size, in parts with all groups of a size and at least [`FEWEST_ALIKE`] groups.
fn of_like_size<'a>(mut order: &'a mut [usize], sizes: &[u64]) -> Vec<&'a mut [usize]> {
    let mut parts = Vec::new();
    while !order.is_empty() {
        let least = order.len().min(FEWEST_ALIKE);
        let last = sizes[order[least - 1]];
        let end = order.partition_point(|&group| sizes[group] <= last);
        let end = if order.len() - end < FEWEST_ALIKE { order.len() } else { end };
        let (part, rest) = order.split_at_mut(end);
        parts.push(part);
        order = rest;
    }
    parts
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

    #[test]
    fn each_row_is_taken_once_by_a_group_of_about_the_same_size() {
        let of_row: Vec<u64> = (0..2_000u64).map(|row| (row * row) % 97 * (row % 3 + 1)).collect();
        let groups = Groups::new(&[Values::Held(of_row)], "test", Keep::Memory).unwrap();
        let sources = draw_grouped(&groups, &mut stream(1, Purpose::Shadows, 0, 0));
        let mut sorted = sources.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..2_000));
        let group = |row: usize| groups.of_row[row] as usize;
        let own = sources.iter().enumerate().filter(|&(row, &source)| group(row) == group(source as usize)).count();
        assert!(own < 100, "{own}");
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|&group| groups.sizes[group]);
        let parts = of_like_size(&mut order, &groups.sizes);
        assert!(parts.len() > 3 && parts.iter().all(|part| part.len() >= FEWEST_ALIKE));
        let range = |part: &&mut [usize]| [part[0], part[part.len() - 1]].map(|group| groups.sizes[group]);
        assert!(parts.windows(2).all(|pair| range(&pair[0])[1] < range(&pair[1])[0]));
    }
}
