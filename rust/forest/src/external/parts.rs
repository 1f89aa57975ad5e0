//! Growth over rows whose codes stay in parts of the data set, on other machines.
//!
//! A request names the open nodes, or the buckets, of some upper trees, and the splits on the way to them. Each part adds
//! up the sums of its own rows, which are exact, so that the sums of all parts have the bits of all rows.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::access::Parts;
use super::bucket::Bucket;
use super::buckets::Buckets;
use super::upper_tree::{FeatureSums, State, UpperNode, UpperTree};
use crate::code_records::CodeRecords;
use crate::companions::is_companion;
use crate::context::GrowContext;
use crate::contrasts::Contrasts;
use crate::criterion::Criterion;
use crate::oob::{GatheredCodes, LeafTotals, OutOfBagRows, Targets};
use crate::split::node_sums::{NodeSums, SumLayout};
use crate::tree_buffer::{BufferedSplit, CodeTest};
use ferrank_data::store::{Chunk, CodeStore};
use ferrank_runtime::error::{Error, Result, check};
use ferrank_runtime::scratch::Scratch;

/// Upper trees as far as parts must know them: the number of each, and its nodes.
pub(super) type Request = Vec<(u64, Vec<Asked>)>;

#[derive(Serialize, Deserialize)]
pub(super) enum Asked {
    /// A test, the side of missing values and the children.
    Split {
        feature: u32,
        test: Test,
        missing_left: bool,
        children: [u32; 2],
    },
    /// Sums are wanted for these features.
    Open(Vec<u32>),
    /// The rows are wanted.
    Bucket,
    Other,
}

/// Rows, and what is wanted of them.
#[derive(Serialize, Deserialize)]
pub(super) enum RowsRequest {
    /// The codes of the rows with these numbers, which ascend.
    Codes(Vec<usize>),
    /// The codes of the rows out of the bag of a tree.
    OutOfBag(u64),
    /// For each bucket how many rows reach it, and the number and the multiplicity of each, all as u32.
    Members(Request),
}

#[derive(Serialize, Deserialize)]
pub(super) enum Test {
    Cut(u16),
    Subset(Vec<u16>),
}

fn bytes_of(request: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(request).expect("requests are plain data")
}

/// What of `trees` is waiting: sums of open nodes, and the rows of nodes that `are_wanted`.
fn request(trees: &[UpperTree], are_wanted: impl Fn(&State) -> bool) -> Request {
    let asked = |node: &UpperNode| match &node.state {
        State::Split { split, children, .. } => {
            let test = match &split.test {
                CodeTest::Cut(code) => Test::Cut(*code),
                CodeTest::Subset(codes) => Test::Subset(codes.clone()),
            };
            let BufferedSplit { feature, missing_left, .. } = *split;
            Asked::Split { feature, test, missing_left, children: *children }
        }
        State::Open { next, .. } if !next.is_empty() => Asked::Open(next.iter().map(|sums| sums.feature).collect()),
        state if are_wanted(state) => Asked::Bucket,
        _ => Asked::Other,
    };
    trees.iter().map(|tree| (tree.number, tree.nodes.iter().map(asked).collect())).collect()
}

fn is_bucket(state: &State) -> bool {
    matches!(state, State::Bucket(_))
}

fn wrong() -> Error {
    Error::Data("a request for sums or rows is damaged".into())
}

pub(super) fn read<T: DeserializeOwned>(request: &[u8]) -> Result<T> {
    serde_json::from_slice(request).map_err(|_| wrong())
}

/// The trees that `request` describes, with sums of 0 and empty buckets.
pub(super) fn requested(context: GrowContext<'_>, request: Request) -> Result<Vec<UpperTree>> {
    let layout = SumLayout::new(&Criterion::new(context.space));
    let codings = &context.store.codings;
    let sums = |feature: u32| {
        let n_codes = codings.get(feature as usize).ok_or_else(wrong)?.n_codes();
        Ok(FeatureSums { feature, sums: NodeSums::new(layout, n_codes) })
    };
    let tree = |(number, nodes): (u64, Vec<Asked>)| {
        let n_nodes = nodes.len();
        let node = |(place, asked)| {
            let state = match asked {
                Asked::Split { feature, test, missing_left, children } => {
                    let follow = children.iter().all(|&child| child as usize > place && (child as usize) < n_nodes);
                    if !follow || feature as usize >= codings.len() {
                        return Err(wrong());
                    }
                    let test = match test {
                        Test::Cut(code) => CodeTest::Cut(code),
                        Test::Subset(codes) => CodeTest::Subset(codes),
                    };
                    let split = BufferedSplit { feature, test, missing_left, gain: 0.0 };
                    State::Split { split, children, gains: Vec::new(), contrasts: Contrasts::default() }
                }
                Asked::Open(features) => {
                    State::Open { next: features.into_iter().map(sums).collect::<Result<_>>()?, done: Vec::new() }
                }
                Asked::Bucket => State::Bucket(Bucket::default()),
                Asked::Other => State::Leaf(LeafTotals::default()),
            };
            Ok(UpperNode { depth: 0, path: 0, sums: Vec::new(), constant_features: Vec::new(), state })
        };
        let nodes = nodes.into_iter().enumerate().map(node).collect::<Result<Vec<UpperNode>>>()?;
        if nodes.is_empty() { Err(wrong()) } else { Ok(UpperTree { number, nodes }) }
    };
    request.into_iter().map(tree).collect()
}

/// The sums of the open nodes that wait for them, in order.
pub(super) fn waiting(trees: &mut [UpperTree]) -> impl Iterator<Item = &mut NodeSums> {
    let nodes = trees.iter_mut().flat_map(|tree| &mut tree.nodes);
    nodes
        .flat_map(|node| match &mut node.state {
            State::Open { next, .. } => next.iter_mut(),
            _ => [].iter_mut(),
        })
        .map(|feature| &mut feature.sums)
}

/// The buckets of `trees`, in order.
pub(super) fn buckets(trees: &mut [UpperTree]) -> impl Iterator<Item = &mut Bucket> {
    let nodes = trees.iter_mut().flat_map(|tree| &mut tree.nodes);
    nodes.filter_map(|node| match &mut node.state {
        State::Bucket(bucket) => Some(bucket),
        _ => None,
    })
}

/// Takes the sums of the open nodes of `trees` from `parts`.
pub(super) fn sum(trees: &mut [UpperTree], parts: &dyn Parts) -> Result<()> {
    let found = parts.sums(&bytes_of(&request(trees, |_| false)))?;
    let n_cells: usize = waiting(trees).map(|sums| sums.cells().len()).sum();
    check(found.len() == n_cells, format!("{} sums of parts were found, {n_cells} are wanted", found.len()))?;
    let mut first = 0;
    for sums in waiting(trees) {
        let cells = sums.cells_mut();
        cells.copy_from_slice(&found[first..first + cells.len()]);
        first += cells.len();
    }
    Ok(())
}

/// Takes the rows of the buckets of `trees` from `parts`, into `file`.
pub(super) fn collect(trees: &mut [UpperTree], parts: &dyn Parts, file: &Buckets<'_>) -> Result<()> {
    let request = bytes_of(&request(trees, is_bucket));
    let mut all: Vec<&mut Bucket> = buckets(trees).collect();
    if all.is_empty() {
        return Ok(());
    }
    parts.collect(&request, &mut |pieces| {
        check(
            pieces.len() == all.len(),
            format!("a part gave the rows of {} nodes, {} are wanted", pieces.len(), all.len()),
        )?;
        all.iter_mut().zip(pieces).try_for_each(|(bucket, piece)| file.add_records(bucket, piece))
    })
}

/// Adds up the `targets` of the rows in the leaves of `trees`, which `parts` find. Totals are added up in the order of
/// rows, because sums of targets are not exact.
pub(super) fn total(trees: &mut [UpperTree], parts: &dyn Parts, targets: &Targets<'_>, n_rows: usize) -> Result<()> {
    let request = RowsRequest::Members(request(trees, |state| matches!(state, State::Leaf(_))));
    let nodes = trees.iter_mut().flat_map(|tree| &mut tree.nodes);
    let mut leaves: Vec<&mut LeafTotals> = nodes
        .filter_map(|node| match &mut node.state {
            State::Leaf(totals) => Some(totals),
            _ => None,
        })
        .collect();
    if leaves.is_empty() {
        return Ok(());
    }
    leaves.iter_mut().for_each(|totals| **totals = LeafTotals::new(targets));
    parts.rows(&bytes_of(&request), &mut |bytes| {
        let mut words = bytes.chunks_exact(size_of::<u32>()).map(bytemuck::pod_read_unaligned::<u32>);
        let mut next = || words.next().ok_or_else(|| Error::Data("a part gave too few rows of leaves".into()));
        for totals in &mut leaves {
            for _ in 0..next()? {
                let (row, count) = (next()? as usize, next()?);
                if row >= n_rows {
                    return Err(Error::Data(format!("a part gave row {row} of {n_rows}")));
                }
                totals.add(targets, row, count);
            }
        }
        Ok(())
    })
}

/// The codes of `rows`, which are out of the bag of tree number `tree`.
pub(super) fn out_of_bag(
    store: &CodeStore,
    tree: u64,
    rows: &OutOfBagRows,
    parts: &dyn Parts,
    scratch: &Scratch,
) -> Result<GatheredCodes> {
    GatheredCodes::take(store, rows, scratch, |each| match is_companion(tree) {
        true => parts.few_rows(&bytes_of(&RowsRequest::Codes(rows.iter().collect())), each),
        false => parts.rows(&bytes_of(&RowsRequest::OutOfBag(tree)), each),
    })
}

/// The codes of `rows`, which ascend.
pub(crate) fn codes_of(store: &CodeStore, rows: &[usize], parts: &dyn Parts) -> Result<Chunk> {
    let mut bytes = Vec::new();
    parts.few_rows(&bytes_of(&RowsRequest::Codes(rows.to_vec())), &mut |some| {
        bytes.extend_from_slice(some);
        Ok(())
    })?;
    CodeRecords::new(store).read(rows.len(), &bytes)
}
