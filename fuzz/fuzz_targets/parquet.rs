#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ferrank_fuzz::guided(ferrank_fuzz::parquet, bytes));
