//! The codes of many numbers at once.

use pulp::{Arch, Simd, WithSimd};

/// Looks for the codes of values by a grid over the cut points.
///
/// The cell of a value is a monotone function of it in spite of rounding, and the cells of cuts are computed in the same
/// way. So cuts in lower cells are below the value, and cuts in higher cells are above it.
pub(crate) struct Lookup<F> {
    n_cuts: usize,
    /// The cuts in ascending order.
    cut: F,
    grid: Grid,
    search: Search,
}

/// Cells of one width, a power of two of them.
#[derive(Clone, Copy, Default)]
pub(super) struct Grid {
    low: f64,
    /// Cells for each unit.
    scale: f64,
    n_cells: usize,
}

enum Search {
    /// Few cells have several cuts.
    ///
    /// Values are looked up one by one, which takes 0.9 ns for a value among 254 cuts, with vectors 2.1 to 2.8 ns (AMD
    /// Zen 5, which gathers slowly).
    Single(Vec<Cell>, Vec<f64>),
    Several(Steps),
}

/// The cuts of a cell.
#[derive(Clone, Copy)]
struct Cell {
    /// The lowest; infinity if there is none.
    cut: f64,
    /// How many cuts are in the cells before.
    before: u32,
    /// How many cuts there are besides the lowest.
    more: u32,
}

/// A search that starts at the cuts of a cell, and never takes more steps than one over all cuts.
///
/// If there are more cuts than values, the grid is over every 2^fine-th cut only, and the last steps look at the cuts
/// themselves: for exact codes of a matrix of 1M x 50, which comes in batches of 8,000 rows, a grid over all cuts took twice
/// the time.
struct Steps {
    /// n_cells; cuts in the cells before.
    starts: Vec<u32>,
    /// The cuts, and infinity up to a power of two beyond what any search looks at.
    padded: Vec<f64>,
    /// The search is over 2^steps − 1 cuts.
    steps: u32,
    /// The steps among the cuts between two of the grid.
    fine: u32,
}

/// Above it, there are no fractions in an f64.
const TO_INTEGER: f64 = (1u64 << 52) as f64;
/// Fewer cells than this take as long to fill.
const LEAST_CELLS: usize = 1 << 10;
/// More cells than this do not stay in the cache near a core.
const MOST_CELLS: usize = 1 << 13;
/// The share of cuts, and so about of values, that are in one cell with others, up to which values are looked up one by
/// one. Two cuts may always be: few values lie between those that set 0 apart.
const MOST_CROWDED: f64 = 0.05;

impl<F: Fn(usize) -> f64> Lookup<F> {
    /// Prepares the search for the codes of `n_values` values among cuts that ascend.
    pub(super) fn new(n_cuts: usize, cut: F, n_values: usize) -> Self {
        let fine = (n_cuts / n_values.max(1)).next_power_of_two().trailing_zeros();
        let mut padded = Vec::with_capacity(2 * (n_cuts >> fine).next_power_of_two());
        padded.extend((1..=n_cuts >> fine).map(|number| cut((number << fine) - 1)));
        let most = (n_values / 2).max(1);
        let n_cells = most.min(4 * padded.len()).max(1).next_power_of_two();
        let sizes = std::iter::successors(Some(n_cells.max(LEAST_CELLS)), |n_cells| Some(2 * n_cells));
        let sizes = sizes.take_while(|&n_cells| n_cells <= most.min(MOST_CELLS));
        let mut grids = sizes.map(|n_cells| Grid::new(&padded, n_cells));
        if fine == 0
            && let Some(grid) = grids.find(|grid| grid.is_loose(&padded))
        {
            let search = Search::Single(grid.cells(&padded), padded);
            return Lookup { n_cuts, cut, grid, search };
        }
        let grid = Grid::new(&padded, n_cells);
        let search = Search::Several(Steps::new(&grid, padded, fine));
        Lookup { n_cuts, cut, grid, search }
    }

    /// Codes of `values`, by `emit`; NaN becomes `missing`.
    pub(crate) fn encode(&self, values: &[f64], missing: u16, emit: impl FnMut(usize, u16)) {
        match &self.search {
            Search::Single(cells, cuts) => self.grid.encode(cells, cuts, values, missing, emit),
            Search::Several(search) => {
                Arch::new().dispatch(Encode { lookup: self, search, values, missing, emit });
            }
        }
    }
}

impl Grid {
    fn new(cuts: &[f64], n_cells: usize) -> Self {
        Grid::over(cuts.first().copied().unwrap_or(0.0), cuts.last().copied().unwrap_or(0.0), n_cells)
    }

    /// `n_cells`, a power of two, from `low` to `high`.
    pub(super) fn over(low: f64, high: f64, n_cells: usize) -> Self {
        Grid { low, scale: n_cells as f64 / (high - low), n_cells }
    }

    /// The cells of `values`, which are known, in `cells`, which is as long.
    pub(super) fn cells_of(self, values: &[f64], cells: &mut [u32]) {
        Arch::new().dispatch(Places { grid: self, values, places: cells });
    }

    /// The cell of a value that is known.
    #[inline(always)]
    pub(super) fn cell(&self, value: f64) -> u32 {
        let last = (self.n_cells - 1) as f64;
        // What is no number, as 0 times infinity, goes to the first.
        let place = ((value - self.low) * self.scale).max(0.0).min(last);
        // The lowest bits of a number that is as large are its integer part. Conversions to integers are no vectors.
        (place + TO_INTEGER).to_bits() as u32
    }

    /// Whether few of the cuts, which ascend, are in cells with others.
    fn is_loose(&self, cuts: &[f64]) -> bool {
        let crowded = cuts.windows(2).filter(|pair| self.cell(pair[0]) == self.cell(pair[1])).count();
        crowded as f64 <= (MOST_CROWDED * cuts.len() as f64).max(2.0)
    }

    /// The cuts, which ascend, by cell.
    fn cells(&self, cuts: &[f64]) -> Vec<Cell> {
        let mut cells = vec![Cell { cut: f64::INFINITY, before: 0, more: 0 }; self.n_cells];
        let mut before = 0;
        let mut known = cuts.chunk_by(|&low, &high| self.cell(low) == self.cell(high)).peekable();
        for (number, cell) in cells.iter_mut().enumerate() {
            cell.before = before;
            if let Some(here) = known.next_if(|here| self.cell(here[0]) as usize == number) {
                (cell.cut, cell.more) = (here[0], here.len() as u32 - 1);
                before += here.len() as u32;
            }
        }
        cells
    }

    fn encode(&self, cells: &[Cell], cuts: &[f64], values: &[f64], missing: u16, mut emit: impl FnMut(usize, u16)) {
        const BLOCK: usize = 256;
        let arch = Arch::new();
        let mut places = [0; BLOCK];
        // The mask changes no index; with it the compiler needs no bounds checks.
        let last = cells.len() - 1;
        let cells = &cells[..last + 1];
        for (block, values) in values.chunks(BLOCK).enumerate() {
            arch.dispatch(Places { grid: *self, values, places: &mut places });
            for (row, (&value, &place)) in values.iter().zip(&places).enumerate() {
                let Cell { cut, before, more } = cells[place as usize & last];
                let mut code = before + u32::from(cut < value);
                if more > 0 {
                    let cuts = &cuts[before as usize..][..1 + more as usize];
                    code = before + cuts.iter().map(|&cut| u32::from(cut < value)).sum::<u32>();
                }
                emit(block * BLOCK + row, if value.is_nan() { missing } else { code as u16 });
            }
        }
    }
}

impl Steps {
    fn new(grid: &Grid, mut padded: Vec<f64>, fine: u32) -> Self {
        let mut counts = vec![0u32; grid.n_cells];
        padded.iter().for_each(|&cut| counts[grid.cell(cut) as usize] += 1);
        let next = |before: &mut u32, count: &u32| Some(std::mem::replace(before, *before + count));
        let starts = counts.iter().scan(0, next).collect();
        let steps = u32::BITS - counts.iter().fold(0, |most, &count| most.max(count)).leading_zeros();
        padded.resize((padded.len() + (1 << steps)).next_power_of_two(), f64::INFINITY);
        Steps { starts, padded, steps, fine }
    }
}

/// Finding the cells of values, as many side by side as the machine's vectors hold.
struct Places<'a> {
    grid: Grid,
    values: &'a [f64],
    /// At least as many as values.
    places: &'a mut [u32],
}

impl WithSimd for Places<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Places { grid, values, places } = self;
        places.iter_mut().zip(values).for_each(|(place, &value)| *place = grid.cell(value));
    }
}

/// Looking up the codes of values, several side by side, as wide as the machine's vectors.
struct Encode<'a, F, E> {
    lookup: &'a Lookup<F>,
    search: &'a Steps,
    values: &'a [f64],
    missing: u16,
    emit: E,
}

impl<F: Fn(usize) -> f64, E: FnMut(usize, u16)> WithSimd for Encode<'_, F, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        const LANES: usize = 16;
        let (&Steps { ref starts, ref padded, steps, fine }, grid) = (self.search, self.lookup.grid);
        let (n_cuts, cut_at) = (self.lookup.n_cuts, &self.lookup.cut);
        // The masks change no index; with them the compiler needs no bounds checks.
        let (last_cell, last) = (starts.len() - 1, padded.len() - 1);
        let (starts, padded) = (&starts[..last_cell + 1], &padded[..last + 1]);
        for (block, values) in self.values.chunks(LANES).enumerate() {
            let mut wanted = [f64::NAN; LANES];
            wanted[..values.len()].copy_from_slice(values);
            let mut code = [0usize; LANES];
            for lane in 0..LANES {
                code[lane] = starts[grid.cell(wanted[lane]) as usize & last_cell] as usize;
            }
            for step in (0..steps).rev() {
                let half = 1usize << step;
                for lane in 0..LANES {
                    let above = padded[(code[lane] + half - 1) & last] < wanted[lane];
                    code[lane] += half * usize::from(above);
                }
            }
            code.iter_mut().for_each(|code| *code <<= fine);
            for step in (0..fine).rev() {
                let half = 1usize << step;
                for lane in 0..LANES {
                    let cut = code[lane] + half - 1;
                    let above = cut < n_cuts && cut_at(cut) < wanted[lane];
                    code[lane] += half * usize::from(above);
                }
            }
            for (lane, value) in values.iter().enumerate() {
                let code = if value.is_nan() { self.missing } else { code[lane] as u16 };
                (self.emit)(block * LANES + lane, code);
            }
        }
    }
}
