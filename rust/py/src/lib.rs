//! Python bindings of ferrank: the extension module `ferrank._core`.
//!
//! Each function takes its arguments, releases the GIL, calls the crate `ferrank` and converts the result.
//! Work that reads data runs on a thread of its own behind a [`run::Run`], so that Python's main
//! thread stays free for Ctrl-C and a progress line.

mod accumulator;
mod apart;
mod arrays;
mod data;
mod error;
mod exit;
mod factory;
mod held_bytes;
mod input;
mod json;
mod kept;
mod logs;
mod measures;
mod rank;
mod reader;
mod replay;
mod results;
mod roles;
mod run;
mod selection;
mod settings;
mod sparse;
mod stream;
mod tests_apart;
mod trees;

use pyo3::prelude::*;

/// The engine behind `ferrank`.
#[pymodule]
mod _core {
    use std::panic::{set_hook, take_hook};

    use ferrank::source::is_decoding;
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::accumulator::{Accumulator, Coded, cores, default_memory, derive_cuts, merge_profiles, n_keys};
    #[pymodule_export]
    use super::apart::{Apart, Coder, needs, rounds};
    #[pymodule_export]
    use super::data::{
        class_roles, closed_sets, convert, inspect, integer_targets, neighbors, read_json, spill, was_text,
    };
    #[pymodule_export]
    use super::input::Source;
    #[pymodule_export]
    use super::kept::{Forest, accumulate_and_keep};
    #[pymodule_export]
    use super::logs::take_events;
    #[pymodule_export]
    use super::measures::{multilabel_measures, precision_recall_area};
    #[pymodule_export]
    use super::rank::{
        accumulate, count, grow_tree, join_evidence, profile, q_values, rank_intervals, rank_until, sample, verdicts,
    };
    #[pymodule_export]
    use super::run::Run;
    #[pymodule_export]
    use super::selection::{beside, nearest, obstacle, queries, search, taking_part, values};
    #[pymodule_export]
    use super::settings::{default_settings_json, distance_weights, score_definitions, settings_json};
    #[pymodule_export]
    use super::stream::Stream;
    #[pymodule_export]
    use super::tests_apart::TestsApart;
    #[pymodule_export]
    use super::trees::{Tree, grow_relief_tree, tree_settings_json};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // The message of a panic while a file is decoded is in the error that it becomes; the terminal shows all other panics.
        let hook = take_hook();
        set_hook(Box::new(move |panic| {
            if !is_decoding() {
                hook(panic)
            }
        }));
        let end_runs = wrap_pyfunction!(super::exit::end_runs, module)?;
        module.py().import("atexit")?.call_method1("register", (end_runs,))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
