//! Ranks the features of an Arrow or ARFF file by a forest and by Relief.
//!
//! `cargo run --release -p ferrank --example rank_file -- tests/data/iris.arff`

use std::path::Path;

use ferrank::prelude::*;
use ferrank::source::open;

fn main() -> Result<()> {
    let file = std::env::args().nth(1).unwrap_or_else(|| "tests/data/iris.arff".into());
    let source = open(Path::new(&file), None)?;
    let roles = Roles::new(Targets::Last(1));
    for settings in [Settings::from(ForestParams::default()), Settings::from(ReliefParams::default())] {
        let ranking = rank(&*source, &roles, &settings, &RunOptions::default(), &Monitor::default())?;
        let score = &ranking.scores[0];
        println!("{}: {} of {} rows", score.score, ranking.task.name(), ranking.n_rows);
        for (feature, importance) in ranking.features.iter().zip(&score.importance) {
            println!("  {feature:30} {importance:8.4}");
        }
    }
    Ok(())
}
