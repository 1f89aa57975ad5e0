//! The programs of `examples/` run, and print what their documentation says.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs an example, which `cargo test` has built beside this test, from the root of the repository.
fn run(example: &str, arguments: &[&Path]) -> Output {
    let test = std::env::current_exe().expect("the test has a path");
    let profile = test.ancestors().nth(2).expect("tests are built in PROFILE/deps");
    Command::new(profile.join("examples").join(example))
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .unwrap_or_else(|error| panic!("{example}: {error}; `cargo test -p ferrank` builds it"))
}

fn printed(example: &str, arguments: &[&Path]) -> String {
    let output = run(example, arguments);
    assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("examples print UTF-8")
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(name)
}

#[test]
fn rank_file_prints_both_rankings() {
    let text = printed("rank_file", &[&data("iris.arff")]);
    let scores: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(scores, ["genie3: classification of 150 rows", "relief: classification of 150 rows"]);
    assert_eq!(text.lines().filter(|line| line.contains("petallength")).count(), 2);
}

#[test]
fn merge_shares_gives_the_ranking_of_one_run() {
    let text = printed("merge_shares", &[]);
    assert!(text.starts_with("100 trees, the ranking of one run: ["), "{text}");
}

#[test]
fn svmlight_source_ranks_the_feature_that_is_the_target_first() {
    let mut text = String::new();
    for row in 0..300 {
        let (noise, signal) = (row * 37 % 101, row * 53 % 97);
        writeln!(text, "{signal} 1:{noise} 3:{signal}").expect("strings can be written to");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("rows.svm");
    std::fs::write(&file, text).expect("the file can be written");
    let ranks: Vec<String> = printed("svmlight_source", &[&file]).lines().map(|line| line.trim().to_owned()).collect();
    assert_eq!(ranks, ["2 x1", "3 x2", "1 x3"]);

    std::fs::write(&file, "1 0:2\n").expect("the file can be written");
    let failed = run("svmlight_source", &[&file]);
    assert!(!failed.status.success());
    assert!(String::from_utf8_lossy(&failed.stderr).contains("'1 0:2' is not of the form"));
}
