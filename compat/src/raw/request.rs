//! Bodies of requests.

use super::{put_bytes, put_long_string, put_short_bytes, put_string};

/// A value for a marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// These bytes, which may be none at all (the empty value).
    Bytes(Vec<u8>),
    /// Null, length −1.
    Null,
    /// Not set, length −2.
    Unset,
}

impl Bound {
    /// As `[value]`.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Bytes(bytes) => put_bytes(out, bytes),
            Self::Null => out.extend_from_slice(&(-1i32).to_be_bytes()),
            Self::Unset => out.extend_from_slice(&(-2i32).to_be_bytes()),
        }
    }
}

/// What goes with a QUERY, EXECUTE or BATCH.
#[derive(Debug, Clone, Default)]
pub struct Params {
    /// Consistency level; `None` is ONE.
    pub consistency: Option<u16>,
    /// Values of markers, each with a name or none with one.
    pub values: Vec<Bound>,
    /// Names of the values; empty when they go by position.
    pub names: Vec<String>,
    /// Asks for rows without column specifications.
    pub skip_metadata: bool,
    /// Rows per page.
    pub page_size: Option<i32>,
    /// Where to go on.
    pub paging_state: Option<Vec<u8>>,
    /// Serial consistency level.
    pub serial: Option<u16>,
    /// Default write timestamp, µs.
    pub timestamp: Option<i64>,
    /// Keyspace of this request (version 5).
    pub keyspace: Option<String>,
    /// What the server shall take for now, seconds (version 5).
    pub now: Option<i32>,
}

impl Params {
    /// Appends `<query_parameters>`.
    pub fn put(&self, out: &mut Vec<u8>, version: u8) {
        self.put_head(out, version, true);
        if !self.values.is_empty() {
            put_count(out, self.values.len());
            for (i, value) in self.values.iter().enumerate() {
                if let Some(name) = self.names.get(i) {
                    put_string(out, name);
                }
                value.put(out);
            }
        }
        if let Some(size) = self.page_size {
            out.extend_from_slice(&size.to_be_bytes());
        }
        if let Some(state) = &self.paging_state {
            put_bytes(out, state);
        }
        self.put_tail(out, version);
    }

    /// Appends what ends a BATCH.
    pub fn put_batch(&self, out: &mut Vec<u8>, version: u8) {
        self.put_head(out, version, false);
        self.put_tail(out, version);
    }

    fn put_head(&self, out: &mut Vec<u8>, version: u8, query: bool) {
        out.extend_from_slice(&self.consistency.unwrap_or(1).to_be_bytes());
        let bit = |on: bool, bit: u32| if on { bit } else { 0 };
        let mut flags = bit(self.serial.is_some(), 0x10) | bit(self.timestamp.is_some(), 0x20);
        if query {
            flags |= bit(!self.values.is_empty(), 0x01)
                | bit(self.skip_metadata, 0x02)
                | bit(self.page_size.is_some(), 0x04)
                | bit(self.paging_state.is_some(), 0x08)
                | bit(!self.names.is_empty(), 0x40);
        }
        if version >= 5 {
            flags |= bit(self.keyspace.is_some(), 0x80) | bit(self.now.is_some(), 0x100);
            out.extend_from_slice(&flags.to_be_bytes());
        } else {
            out.push(u8::try_from(flags & 0xFF).unwrap_or(0));
        }
    }

    fn put_tail(&self, out: &mut Vec<u8>, version: u8) {
        if let Some(serial) = self.serial {
            out.extend_from_slice(&serial.to_be_bytes());
        }
        if let Some(timestamp) = self.timestamp {
            out.extend_from_slice(&timestamp.to_be_bytes());
        }
        if version >= 5 {
            if let Some(keyspace) = &self.keyspace {
                put_string(out, keyspace);
            }
            if let Some(now) = self.now {
                out.extend_from_slice(&now.to_be_bytes());
            }
        }
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
}

/// What names a prepared statement to the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prepared {
    /// Its id.
    pub id: Vec<u8>,
    /// The id of its result metadata (version 5).
    pub metadata_id: Vec<u8>,
}

/// A statement of a BATCH.
#[derive(Debug, Clone)]
pub enum InBatch {
    /// By its text.
    Text(String, Vec<Bound>),
    /// By its id.
    Prepared(Prepared, Vec<Bound>),
}

/// Body of STARTUP.
pub fn startup(options: &[(&str, &str)]) -> Vec<u8> {
    let mut body = Vec::new();
    put_count(&mut body, options.len());
    for (key, value) in options {
        put_string(&mut body, key);
        put_string(&mut body, value);
    }
    body
}

/// Body of QUERY.
pub fn query(version: u8, text: &str, params: &Params) -> Vec<u8> {
    let mut body = Vec::new();
    put_long_string(&mut body, text);
    params.put(&mut body, version);
    body
}

/// Body of PREPARE.
pub fn prepare(version: u8, text: &str, keyspace: Option<&str>) -> Vec<u8> {
    let mut body = Vec::new();
    put_long_string(&mut body, text);
    if version >= 5 {
        body.extend_from_slice(&u32::from(keyspace.is_some()).to_be_bytes());
        if let Some(keyspace) = keyspace {
            put_string(&mut body, keyspace);
        }
    }
    body
}

/// Body of EXECUTE.
pub fn execute(version: u8, prepared: &Prepared, params: &Params) -> Vec<u8> {
    let mut body = Vec::new();
    put_short_bytes(&mut body, &prepared.id);
    if version >= 5 {
        put_short_bytes(&mut body, &prepared.metadata_id);
    }
    params.put(&mut body, version);
    body
}

/// Body of BATCH; `kind` is 0 logged, 1 unlogged, 2 counter.
pub fn batch(version: u8, kind: u8, statements: &[InBatch], params: &Params) -> Vec<u8> {
    let mut body = vec![kind];
    put_count(&mut body, statements.len());
    for statement in statements {
        let values = match statement {
            InBatch::Text(text, values) => {
                body.push(0);
                put_long_string(&mut body, text);
                values
            }
            InBatch::Prepared(prepared, values) => {
                body.push(1);
                put_short_bytes(&mut body, &prepared.id);
                values
            }
        };
        put_count(&mut body, values.len());
        for value in values {
            value.put(&mut body);
        }
    }
    params.put_batch(&mut body, version);
    body
}

/// Body of REGISTER.
pub fn register(events: &[&str]) -> Vec<u8> {
    let mut body = Vec::new();
    put_count(&mut body, events.len());
    for event in events {
        put_string(&mut body, event);
    }
    body
}
