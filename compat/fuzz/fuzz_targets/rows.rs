//! libFuzzer drives the target `rows` of `helenus::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| helenus::fuzz::run("rows", data));
