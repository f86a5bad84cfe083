//! The `helenus` program. Its verbs are in the module `cli`.

use std::process::ExitCode;

/// Values are often allocated by one thread and freed by another, which is slow with the C library's allocator. For the
/// program only: a test that embeds the server keeps its own allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    helenus::cli::run()
}
