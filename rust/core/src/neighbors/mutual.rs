//! How far all rows of a table seem to be from each other by their bytes, each pair compared once.
//!
//! Where rows are wide, comparing them costs more than writing down what came of it. It is written in 16 bits, in
//! steps that are as coarse as they must be for the farthest that rows can be.

use pulp::Arch;
use rayon::prelude::*;

use super::bytes::{Bytes, WithBytes, apart, dispatch};
use super::coarse::{STEPS, n_bytes, serves};
use super::kernel::Lines;
use super::panels::{LANES, Layout, Panel, Panels};
use crate::error::Result;
use crate::monitor::Monitor;
use crate::pages::Large;

/// Rows of fewer bytes are compared as fast as they are looked up.
const FEWEST_BYTES: usize = 256;
/// Pairs of two panels.
const TILE: usize = LANES * LANES;

/// The least distances of all pairs of rows, in bytes' steps.
#[derive(Debug)]
pub(crate) struct Mutual {
    n_panels: usize,
    /// Steps of a byte that one of the numbers here stands for.
    step: f32,
    /// For each panel its tiles with itself and those after it: the panel's rows x the others'.
    tiles: Large<u16>,
}

/// Bytes that those of `n` panels take; `None` where they would not serve.
pub(crate) fn bytes(layout: &Layout, n: usize) -> Option<usize> {
    let serve = serves(layout) && n_bytes(layout) >= FEWEST_BYTES;
    serve.then(|| size_of::<u16>() * TILE * (n * (n + 1) / 2))
}

impl Mutual {
    /// Those of `panels`, which have bytes.
    ///
    /// # Errors
    /// [`Interrupted`](crate::Error::Interrupted) on request.
    pub(crate) fn new(layout: &Layout, panels: &Panels, arch: Arch, monitor: &Monitor) -> Result<Self> {
        let n_panels = panels.len();
        let farthest = STEPS as usize * n_bytes(layout);
        let step = (farthest / usize::from(u16::MAX) + 1).next_power_of_two() as f32;
        let mut mutual = Mutual { n_panels, step, tiles: Large::zeros(TILE * (n_panels * (n_panels + 1) / 2)) };
        let mut rest = &mut mutual.tiles[..];
        let mut of_panels = Vec::with_capacity(n_panels);
        for number in 0..n_panels {
            let (own, others) = rest.split_at_mut(TILE * (n_panels - number));
            of_panels.push(own);
            rest = others;
        }
        let panels: Vec<Panel<'_>> = (0..n_panels).map(|number| panels.panel(layout, number)).collect();
        of_panels.into_par_iter().enumerate().try_for_each(|(number, tiles)| {
            monitor.check()?;
            let tiles = tiles.as_chunks_mut().0;
            dispatch(arch, Compare { one: panels[number], others: &panels[number..], step, tiles });
            Ok(())
        })?;
        Ok(mutual)
    }

    /// Writes how many steps of a byte the rows of panel `one`, a line each, are from those of panel `other`.
    #[inline(always)]
    pub(super) fn read(&self, one: usize, other: usize, out: &mut Lines) {
        let (low, high) = (one.min(other), one.max(other));
        let before = low * self.n_panels - low * low.saturating_sub(1) / 2;
        let tile = &self.tiles[TILE * (before + high - low)..][..TILE];
        let mut turned = [0; TILE];
        let tile = if one <= other {
            tile
        } else {
            for (row, lines) in tile.as_chunks::<LANES>().0.iter().enumerate() {
                for lane in 0..LANES {
                    turned[lane * LANES + row] = lines[lane];
                }
            }
            &turned
        };
        for (out, steps) in out.as_flattened_mut().iter_mut().zip(tile) {
            *out = f32::from(*steps) * self.step;
        }
    }
}

/// Compares the rows of a panel with those of others, each of which has a tile.
struct Compare<'a> {
    one: Panel<'a>,
    others: &'a [Panel<'a>],
    step: f32,
    tiles: &'a mut [[u16; TILE]],
}

impl WithBytes for Compare<'_> {
    #[inline(always)]
    fn run<S: Bytes, const V: usize, const W: usize, const Q: usize>(self, simd: S) {
        let Compare { one, others, step, tiles } = self;
        let share = 1.0 / step;
        for (other, tile) in others.iter().zip(tiles) {
            let mut lines: Lines = [[0.0; LANES]; LANES];
            for first in (0..LANES).step_by(Q) {
                let apart = apart::<S, V, W, Q>(simd, one.coarse.octets, other.coarse.octets, first);
                for q in 0..Q {
                    S::as_mut_simd_f32s(&mut lines[first + q]).0.copy_from_slice(&apart[q]);
                }
            }
            for (tile, steps) in tile.iter_mut().zip(lines.as_flattened()) {
                *tile = (steps * share) as u16;
            }
        }
    }
}
