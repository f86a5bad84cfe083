//! Bounds of messages. They are above what the protocol, the planner and the guardrails let through, so that they stop
//! damaged bytes and mistakes, not requests of clients.

/// A bound of a list: its name in errors, and most items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The items, in the plural.
    pub items: &'static str,
    /// Most of them.
    pub most: usize,
}

/// Most bytes of a message: twice the largest body of a request (`wire::frame::BODY_BYTES_MAX`), since keys and values
/// are written once more than a client sent them.
pub const MESSAGE_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Most bytes of a name of a keyspace, table, index, type or field, or of a marshal class. Source: `[string]` of the
/// native protocol.
pub const NAME_BYTES_MAX: usize = 65_535;

/// Writes of a message. Source: a batch counts its statements with an `[short]`.
pub const WRITES_MAX: Limit = Limit {
    items: "writes",
    most: 65_535,
};

/// Partition keys, rows or ranges of one command: ten times what the planner makes (`planner::key::KEYS_MAX`).
pub const KEYS_MAX: Limit = Limit {
    items: "keys",
    most: 1 << 20,
};

/// Columns that a command names.
pub const COLUMNS_MAX: Limit = Limit {
    items: "columns",
    most: 65_535,
};

/// Elements that a write puts into a collection. Each takes four bytes of the message at least.
pub const ELEMENTS_MAX: Limit = Limit {
    items: "elements",
    most: MESSAGE_BYTES_MAX / 4,
};

/// Nodes of a filter's tree, or tests of a condition.
pub const FILTERS_MAX: Limit = Limit {
    items: "filters",
    most: 65_535,
};

/// Levels of a filter's tree. A filter is evaluated by recursion.
pub const FILTER_LEVELS_MAX: Limit = Limit {
    items: "levels of a filter",
    most: 64,
};

/// Operands of one test: those of IN.
pub const OPERANDS_MAX: Limit = Limit {
    items: "operands",
    most: 1 << 20,
};

/// Index probes of a read.
pub const PROBES_MAX: Limit = Limit {
    items: "index probes",
    most: 1024,
};

/// Types in a type, with all their parts.
pub const TYPE_PARTS_MAX: Limit = Limit {
    items: "parts of a type",
    most: helenus_types::types::TYPE_PARTS_MAX,
};

/// Levels of types in types, as deep as a schema is loaded (`schema::record::load`).
pub const TYPE_LEVELS_MAX: Limit = Limit {
    items: "levels of a type",
    most: 256,
};
