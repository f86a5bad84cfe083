//! libFuzzer drives the target `messages` of `helenus::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| helenus::fuzz::run("messages", data));
