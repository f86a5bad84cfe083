//! The server from outside: frames of the native protocol, the profile `cosmos`, replica sets, the admin port, and the program itself.

mod admin;
mod advice;
mod backup;
mod client_certificates;
mod cosmos;
#[cfg(unix)]
mod cqlsh;
mod feed;
mod front;
mod handshake;
mod harness;
mod hostile_cql;
mod malformed;
mod memory;
mod profile;
mod program;
#[path = "../raw/mod.rs"]
mod raw;
mod record;
mod replicas;
mod roles;
mod salvage;
mod security;
mod serve;
mod shapes;
mod shell;
mod sizes;
#[expect(dead_code, reason = "the tests of the database use more of it")]
#[path = "../support/mod.rs"]
mod support;
mod tables;
mod verbs;
mod wire_oracles;
