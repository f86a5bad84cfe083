//! What the trace of a request begins with: its kind and its parameters, under Cassandra's names.

use super::{Execute, Id, Request, Requests, Session, WireValue, WireValues};
use crate::server::prepared::Entry;
use crate::server::trace::Trace;

/// Characters of a bound value that are shown.
const VALUE_CHARACTERS_MAX: usize = 1000;

impl Requests {
    /// Begins the trace of a request.
    pub(super) fn begin_trace(&self, session: &Session, request: &Request<'_>) -> Trace {
        let mut trace = match request {
            Request::Query(query) => {
                let mut trace = self.tracer.begin("Execute CQL3 query");
                trace.statement(query.text);
                trace.params(&query.params);
                trace.parsing(query.text);
                trace
            }
            Request::Execute(execute) => {
                let mut trace = self.tracer.begin("Execute CQL3 prepared query");
                let entry = <&Id>::try_from(execute.id)
                    .ok()
                    .and_then(|id| self.statements(session).get(id));
                if let Some(entry) = entry {
                    trace.statement(&entry.text);
                    if !trace.has_secret() {
                        for (name, value) in bound_variables(&entry, execute) {
                            trace.parameter(name, &value);
                        }
                    }
                }
                trace.params(&execute.params);
                trace
            }
            Request::Batch(batch) => {
                let mut trace = self.tracer.begin("Execute batch of CQL3 queries");
                trace.levels(batch.consistency, batch.serial_consistency);
                trace.parameter("statements", &batch.statements.len().to_string());
                trace
            }
            Request::Prepare(prepare) => {
                let mut trace = self.tracer.begin("Preparing CQL3 query");
                trace.statement(prepare.text);
                trace.parsing(prepare.text);
                trace
            }
            Request::Startup(_) | Request::AuthResponse(_) | Request::Options | Request::Register(_) => {
                self.tracer.begin("")
            }
        };
        trace.event("Executing the statement");
        trace
    }
}

/// `bound_var_0_k` and so on: the values of an EXECUTE. They are masked if the statement's table has a mask, because any role may be allowed
/// to read traces, and the name of a marker does not tell which column it is compared with.
fn bound_variables(entry: &Entry, execute: &Execute<'_>) -> Vec<(String, String)> {
    let is_masked = entry.statement.tables().iter().any(|table| table.is_masked());
    let value_of = |place: usize, name: &str| match &execute.params.values {
        WireValues::Positional(values) => values.get(place),
        WireValues::Named(values) => values.iter().find(|(of, _)| *of == name).map(|(_, value)| value),
    };
    let markers = entry.statement.markers();
    markers
        .iter()
        .enumerate()
        .filter_map(|(place, marker)| {
            let shown = match value_of(place, &marker.name)? {
                WireValue::Null => "null".to_owned(),
                WireValue::Unset => "<unset>".to_owned(),
                WireValue::Bytes(_) if is_masked => "****".to_owned(),
                WireValue::Bytes(bytes) => cut(marker.ty.to_literal(bytes)),
            };
            Some((format!("bound_var_{place}_{}", marker.name), shown))
        })
        .collect()
}

/// A long value ends as in Cassandra.
fn cut(shown: String) -> String {
    match shown.char_indices().nth(VALUE_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...'", shown.get(..end).unwrap_or_default()),
        None => shown,
    }
}
