//! Azure Table storage: entities with a PartitionKey and a RowKey, over HTTP, on the partitions of Helenus.
//!
//! ```text
//! edm, entity, fault     values, entities and their limits, refusals: plain data
//! filter                 `$filter` as a tree, and whether an entity matches it
//! operation              what requests ask of the store
//! address, call, token   what a request asks for
//! auth, cors             who may ask it
//! json, xml, multipart   bodies
//! frame                  what every answer has
//! service, batch         a request to its answer
//! keyspace               where the tables of an account are
//! plan, index, row       filters → parts of the order of keys, lookups; entities ⇄ rows
//! rate, reload           how many entities a second are served; ranges that are loaded elsewhere
//! store                  what requests mean, by commands of the engine
//! ```
//! This room knows no CQL text, no frames of the native protocol and no sockets: a request comes as a head and a body, and an answer
//! leaves as the same. Deliberately absent: Atom bodies, `$metadata`, analytics tables, versions before 2013-08-15.
//!
//! Source: the Azure Storage REST reference, and recorded answers of the service.

pub mod address;
pub mod auth;
mod batch;
pub mod call;
pub mod cors;
pub mod edm;
pub mod entity;
pub mod fault;
pub mod filter;
pub mod frame;
mod index;
pub mod json;
pub mod keyspace;
pub mod multipart;
pub mod operation;
mod plan;
pub mod rate;
mod reload;
mod row;
pub mod service;
pub mod store;
pub mod token;
pub mod xml;
