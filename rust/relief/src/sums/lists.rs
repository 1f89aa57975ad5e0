//! Sums of long lists of neighbors that have equal shares: for each query and list, rather than pair by pair.
//!
//! Where a row is left out of a list, the mean of the others takes its place.

use pulp::{Arch, Simd, WithSimd};

use super::Block;

/// The sums of a list of neighbors of a query, by the group of the neighbors.
#[derive(Debug)]
pub(crate) struct ListSums {
    /// Length of a vector.
    width: usize,
    /// Vectors of a group: the weights of a scheme.
    n_units: usize,
    groups: Vec<Group>,
    total: Group,
}

/// The sums of the rows of a group.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    n_rows: usize,
    /// Sum of the weights of the rows.
    mass: f64,
    /// What the influence of the pairs misses to 1.
    missed: f64,
    /// n_units − 1; sums of the weights that contain distances of the targets.
    targets: Vec<f64>,
    /// n_units x width; sums of the weighted differences.
    pub(crate) vectors: Vec<f64>,
}

impl Group {
    fn clear(&mut self) {
        (self.n_rows, self.mass, self.missed) = (0, 0.0, 0.0);
        self.targets.fill(0.0);
        self.vectors.fill(0.0);
    }

    /// Adds `n_rows` rows of this `mass` with these weights, n_rows x n_units, without their differences.
    pub(crate) fn add_weights(&mut self, (n_rows, mass): (usize, f64), weights: &[f64], missed: f64) {
        self.n_rows += n_rows;
        self.mass += mass;
        self.missed += missed;
        if !self.targets.is_empty() {
            for weights in weights.chunks_exact(1 + self.targets.len()) {
                self.targets.iter_mut().zip(&weights[1..]).for_each(|(sum, weight)| *sum += weight);
            }
        }
    }

    #[inline(always)]
    fn add(&mut self, other: &Group) {
        self.n_rows += other.n_rows;
        self.mass += other.mass;
        self.missed += other.missed;
        add_times(&mut self.targets, 1.0, &other.targets);
        add_times(&mut self.vectors, 1.0, &other.vectors);
    }
}

#[inline(always)]
fn add_times(sums: &mut [f64], factor: f64, values: &[f64]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value);
}

/// Adds `factor` times what `group` is beyond its `share` of `total`.
#[inline(always)]
fn change(sums: &mut [f64], (factor, share): (f64, f64), group: &[f64], total: &[f64]) {
    for ((sum, group), total) in sums.iter_mut().zip(group).zip(total) {
        *sum += factor * (group - share * total);
    }
}

impl ListSums {
    /// An empty list of rows of `n_groups` groups.
    pub(crate) fn new(n_groups: usize, n_units: usize, width: usize) -> Self {
        let (targets, vectors) = (vec![0.0; n_units - 1], vec![0.0; n_units * width]);
        let total = Group { n_rows: 0, mass: 0.0, missed: 0.0, targets, vectors };
        ListSums { width, n_units, groups: vec![total.clone(); n_groups], total }
    }

    /// Bytes of a list.
    pub(crate) fn bytes(n_groups: usize, n_units: usize, width: usize) -> usize {
        size_of::<f64>() * (n_groups + 1) * n_units * (width + 1)
    }

    /// The sums of a group, to be added to.
    pub(crate) fn group(&mut self, group: usize) -> &mut Group {
        &mut self.groups[group]
    }

    /// Removes all rows.
    #[inline(always)]
    fn clear(&mut self) {
        self.groups.iter_mut().filter(|group| group.n_rows > 0).for_each(Group::clear);
        self.total.clear();
    }
}

/// Adds a list, in loops that are compiled for the vector instructions of the machine: MultiSURF of 5,000 x 100 takes 0.97 of the
/// time.
struct AddList<'a> {
    block: &'a mut Block,
    scheme: usize,
    weight: f64,
    list: &'a mut ListSums,
}

impl WithSimd for AddList<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let AddList { block, scheme, weight, list } = self;
        block.add_list_here(scheme, weight, list);
    }
}

impl Block {
    /// Adds the rows of `list`, of a query of this `weight`, to the sums of scheme number `scheme`, each with a share
    /// proportional to its weight, and empties the list.
    pub(crate) fn add_list(&mut self, scheme: usize, weight: f64, list: &mut ListSums) {
        Arch::new().dispatch(AddList { block: self, scheme, weight, list });
    }

    #[inline(always)]
    fn add_list_here(&mut self, scheme: usize, weight: f64, list: &mut ListSums) {
        let ListSums { width, n_units, groups, total, .. } = list;
        let (width, n_units) = (*width, *n_units);
        groups.iter().filter(|group| group.n_rows > 0).for_each(|group| total.add(group));
        let Block { n_metrics, sums, groups: changes, .. } = self;
        let (n_metrics, n_schemes) = (*n_metrics, sums.queries.len());
        let n = total.mass;
        if total.n_rows > 0 {
            let length = n_units * width;
            sums.queries[scheme] -= weight * (total.missed / n);
            add_times(&mut sums.targets[scheme * n_metrics..][..n_metrics], weight / n, &total.targets);
            add_times(&mut sums.vectors[scheme * length..][..length], weight / n, &total.vectors);
            // Without groups there are no slots for changes.
            let with_slot = groups.iter().enumerate().take(changes.queries.len() / n_schemes);
            for (number, group) in with_slot.filter(|(number, group)| *number != changes.own && group.n_rows > 0) {
                // A row of mean weight leaves, whose place the others take; the only row has no others.
                let (factor, share) = match total.n_rows {
                    1 => (weight / n, 0.0),
                    n_rows => (weight / (n - n / n_rows as f64), group.mass / n),
                };
                let slot = number * n_schemes + scheme;
                changes.queries[slot] -= factor * (group.missed - share * total.missed);
                let targets = &mut changes.targets[slot * n_metrics..][..n_metrics];
                change(targets, (factor, share), &group.targets, &total.targets);
                let vectors = &mut changes.vectors[slot * length..][..length];
                change(vectors, (factor, share), &group.vectors, &total.vectors);
            }
        }
        list.clear();
    }

    /// Takes a query of this `weight` out of scheme number `scheme`, in which it has no neighbors.
    pub(crate) fn skip_query(&mut self, scheme: usize, weight: f64) {
        self.sums.queries[scheme] -= weight;
    }

    /// The sums over features, each of which is in one of the columns so far, or in none and 0.
    pub(crate) fn with_features(mut self, columns: &[Option<usize>]) -> Self {
        let width = self.differences.len();
        let arrange = |vectors: &[f64]| -> Vec<f64> {
            let features = |vector: &[f64]| -> Vec<f64> {
                columns.iter().map(|column| column.map_or(0.0, |column| vector[column])).collect()
            };
            vectors.chunks_exact(width).flat_map(features).collect()
        };
        self.sums.vectors = arrange(&self.sums.vectors);
        self.groups.vectors = arrange(&self.groups.vectors);
        self.differences = vec![0.0; columns.len()];
        self
    }
}
