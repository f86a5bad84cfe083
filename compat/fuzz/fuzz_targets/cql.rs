//! libFuzzer drives the target `cql` of `helenus::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| helenus::fuzz::run("cql", data));
