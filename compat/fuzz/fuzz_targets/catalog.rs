//! libFuzzer drives the target `catalog` of `helenus::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| helenus::fuzz::run("catalog", data));
