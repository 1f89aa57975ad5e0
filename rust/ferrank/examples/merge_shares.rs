//! Grows a forest in two shares, as two processes would, and merges their contributions.
//!
//! `cargo run --release -p ferrank --example merge_shares`

use std::path::Path;

use ferrank::prelude::*;
use ferrank::run::read_accumulator;
use ferrank::source::open;

fn main() -> Result<()> {
    let source = open(Path::new("tests/data/iris.arff"), None)?;
    let roles = Roles::new(Targets::Last(1));
    let settings = Settings::from(ForestParams::default());
    let monitor = Monitor::default();
    let share = |keys| accumulate(&*source, &roles, &settings, &RunOptions::default().with_keys(Some(keys)), &monitor);
    let (mut one, two) = (share(0..50)?, share(50..100)?);
    // Shares travel as Arrow streams.
    one.merge(&read_accumulator(two.to_ipc()?, "the other share")?)?;
    let whole = rank(&*source, &roles, &settings, &RunOptions::default(), &monitor)?;
    assert_eq!(one.ranking()?, whole);
    println!("{} trees, the ranking of one run: {:?}", one.keys().count(), whole.scores[0].rank);
    Ok(())
}
