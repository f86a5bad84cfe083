//! libFuzzer drives the target `paging` of `helenus::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| helenus::fuzz::run("paging", data));
