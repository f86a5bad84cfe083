//! What a database is made of and what is asked of it: keyspaces, tables and roles; typed commands; and the planner, which makes
//! commands of statements. It executes nothing.

pub mod command;
pub mod guardrails;
pub mod planner;
pub mod profile;
pub mod roles;
pub mod schema;
