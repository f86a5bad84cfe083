//! The `helenus` program. Its verbs are in the room `cli`.

use std::process::ExitCode;

/// Values are made by one thread and freed by another, which the C library's allocator is slow at. For the program only: a test
/// that embeds the server keeps its own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    helenus::cli::run()
}
