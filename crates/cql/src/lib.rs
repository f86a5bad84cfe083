//! The first front end: statements of CQL to plans and commands, and what the engine gives to answers.

pub mod cql;
