//! A part of the rows answers what growth over parts asks.

use std::mem::take;

use super::parts::{RowsRequest, buckets, read, requested, waiting};
use super::pass::Passes;
use super::upper_tree::UpperTree;
use crate::bag::BagPlan;
use crate::code_records::CodeRecords;
use crate::context::GrowContext;
use crate::oob::OutOfBagRows;
use ferrank_data::store::CodeStore;
use ferrank_runtime::error::Result;

/// A part of the rows of all bags: its own store in `context`, and the number of its first row.
pub(crate) struct Part<'a> {
    pub(crate) context: GrowContext<'a>,
    pub(crate) bags: BagPlan<'a>,
    pub(crate) first: usize,
}

impl Part<'_> {
    /// The sums that `asked` asks for, of the rows of the part.
    pub(crate) fn sums(&self, asked: &[u8]) -> Result<Vec<f64>> {
        let mut trees = requested(self.context, read(asked)?)?;
        Passes::of_part(self.context, self.bags, self.first).sum(&mut trees)?;
        Ok(waiting(&mut trees).flat_map(|sums| sums.cells().to_vec()).collect())
    }

    /// The records of each bucket that `asked` asks for.
    pub(crate) fn collect(&self, asked: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut trees = requested(self.context, read(asked)?)?;
        Passes::of_part(self.context, self.bags, self.first).records(&mut trees)?;
        Ok(buckets(&mut trees).map(|bucket| take(&mut bucket.records.waiting)).collect())
    }

    /// What `asked` asks for of the rows of the part.
    pub(crate) fn rows(&self, asked: &[u8]) -> Result<Vec<u8>> {
        let own = self.first..self.first + self.context.store.rows;
        match read(asked)? {
            RowsRequest::Codes(rows) => {
                let rows: Vec<usize> = rows.into_iter().filter(|row| own.contains(row)).collect();
                Ok(self.codes(rows.len(), rows.into_iter().map(|row| row - own.start)))
            }
            RowsRequest::OutOfBag(tree) => {
                let rows = OutOfBagRows::among(self.bags, tree, own, self.context.monitor)?;
                Ok(self.codes(rows.len(), rows.iter()))
            }
            RowsRequest::Members(request) => self.members(requested(self.context, request)?),
        }
    }

    /// The codes of `n` rows, numbered from the first of the part.
    fn codes(&self, n: usize, rows: impl Iterator<Item = usize>) -> Vec<u8> {
        let CodeStore { chunks, firsts, .. } = self.context.store;
        let records = CodeRecords::new(self.context.store);
        let mut bytes = Vec::with_capacity(n * records.row_bytes());
        for row in rows {
            let number = firsts.partition_point(|&first| first <= row) - 1;
            records.write(&chunks[number], row - firsts[number], &mut bytes);
        }
        bytes
    }

    /// The rows that reach each bucket of `trees`.
    fn members(&self, mut trees: Vec<UpperTree>) -> Result<Vec<u8>> {
        Passes::of_part(self.context, self.bags, self.first).members(&mut trees)?;
        let mut bytes = Vec::new();
        for bucket in buckets(&mut trees) {
            bytes.extend_from_slice(bytemuck::bytes_of(&(bucket.rows as u32)));
            bytes.append(&mut bucket.records.waiting);
        }
        Ok(bytes)
    }
}
