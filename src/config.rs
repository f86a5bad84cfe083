//! Settings, with units and origins.
