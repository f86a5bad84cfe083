//! Values of CQL, the functions on them, and the native protocol that carries them: bytes to messages and back. It knows nothing
//! of tables and nothing of sockets.

pub mod consistency;
pub mod functions;
pub mod token;
pub mod types;
pub mod wire;
