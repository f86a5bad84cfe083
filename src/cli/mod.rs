//! The `cli` room: what the `helenus` program does around a server. `main` parses the arguments and calls these.
//!
//! A server writes a [`record::ServerRecord`] once it serves: one line of JSON with every address, the account and its key, the
//! certificate and the process id. Test harnesses read it (`--ready-json`), and so do `helenus shell` and `helenus status`, which find it
//! in the data directory. The record holds a password, so only its owner may read it. It is removed when the server stops; a killed
//! server leaves it behind, and its reader notices when it connects.

pub mod backups;
pub mod parent;
pub mod record;
pub mod shell;
pub mod warnings;
