//! The targets of `fuzz/` on any toolchain: the corpus, and changes of it at random.
//!
//! `FERRANK_FUZZ_SECONDS` is the time for each target, 2 by default. What fails is written to the temporary folder.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

#[path = "../../../fuzz/src/lib.rs"]
#[allow(unreachable_pub, dead_code)]
mod targets;

/// Longest input that is made.
const LONGEST: usize = 1 << 16;
const NUMBERS: [u64; 10] =
    [0, 1, 7, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 0x7fff_ffff_ffff_ffff, 0xffff_ffff_ffff_fff8];

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

fn inputs(target: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = std::fs::read_dir(corpus(target)).unwrap().map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// One to a few changes, or a piece of another input in its place.
fn change(inputs: &[Vec<u8>], rng: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let mut bytes = inputs[rng.random_range(0..inputs.len())].clone();
    for _ in 0..rng.random_range(1..6) {
        if bytes.is_empty() {
            return bytes;
        }
        let at = rng.random_range(0..bytes.len());
        let end = (at + rng.random_range(1..40)).min(bytes.len());
        match rng.random_range(0..8) {
            0 => bytes[at] ^= 1 << rng.random_range(0..8),
            1 => bytes[at] = rng.random(),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => bytes.truncate(at),
            5 => {
                let number = NUMBERS[rng.random_range(0..NUMBERS.len())].to_le_bytes();
                let width = rng.random_range(1..=8).min(bytes.len() - at);
                bytes[at..at + width].copy_from_slice(&number[..width]);
            }
            6 => {
                let other = &inputs[rng.random_range(0..inputs.len())];
                let from = rng.random_range(0..=other.len());
                let piece = &other[from..(from + 64).min(other.len())];
                bytes.splice(at..end, piece.iter().copied());
            }
            _ => rng.fill_bytes(&mut bytes[at..end]),
        }
        bytes.truncate(LONGEST);
    }
    bytes
}

/// A test for each target, so that they run side by side.
macro_rules! tests {
    ($($name:ident)*) => {
        const TESTED: &[&str] = &[$(stringify!($name)),*];
        $(#[test]
        fn $name() {
            let name = stringify!($name);
            let (_, target) = targets::TARGETS.into_iter().find(|&(other, _)| other == name).unwrap();
            fuzz(name, target);
        })*
    };
}

tests! { arff numbers hierarchy label_xml ipc json profile accumulator ledger kept_forest parquet }

#[test]
fn each_target_is_tested() {
    assert_eq!(targets::TARGETS.map(|(name, _)| name), *TESTED);
}

fn fuzz(name: &str, target: targets::Target) {
    let seconds = std::env::var("FERRANK_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2.0);
    let seed = std::env::var("FERRANK_FUZZ_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let inputs = inputs(name);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (end, mut cases) = (Instant::now() + Duration::from_secs_f64(seconds), 0);
    let mut next = inputs.iter().cloned();
    while cases < inputs.len() || Instant::now() < end {
        let bytes = next.next().unwrap_or_else(|| change(&inputs, &mut rng));
        if catch_unwind(AssertUnwindSafe(|| target(&bytes))).is_err() {
            let path = std::env::temp_dir().join(format!("ferrank-fuzz-{name}"));
            std::fs::write(&path, &bytes).unwrap();
            panic!("{name}: case {cases} fails, see {}", path.display());
        }
        cases += 1;
    }
    println!("{name}: {cases} cases");
}

/// Writes the inputs that only the engine can make, after a change of their format.
#[test]
#[ignore = "writes to the corpus"]
fn write_ledgers() {
    let (ledger, accumulator) = targets::whole_ledger();
    std::fs::write(corpus("ledger").join("whole"), ledger).unwrap();
    std::fs::write(corpus("accumulator").join("forest"), accumulator).unwrap();
}

#[test]
fn the_whole_ledger_is_read() {
    let (ledger, accumulator) = (inputs("ledger"), inputs("accumulator"));
    let (whole, added) = targets::whole_ledger();
    assert!(ledger.contains(&whole) && accumulator.contains(&added), "run write_ledgers");
}
