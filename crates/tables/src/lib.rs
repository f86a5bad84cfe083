//! The second front end: requests of Azure Table storage to commands, and what the engine gives to answers.

pub mod tables;
