//! Server errors in cqlsh's words: the Python driver's class, and its text around the server's.

/// The code of ALREADY_EXISTS (native_protocol_v4.spec §9).
pub(super) const ALREADY_EXISTS: i32 = 0x2400;

/// Code, class, and the driver's summary where the class prints one (`cassandra/protocol.py` of the driver 3.29).
const CLASSES: &[(i32, &str, Option<&str>)] = &[
    (0x0000, "ServerError", None),
    (0x000A, "ProtocolException", None),
    (0x1000, "Unavailable", Some("Unavailable exception")),
    (0x1001, "OverloadedErrorMessage", None),
    (0x1002, "IsBootstrappingErrorMessage", None),
    (0x1003, "TruncateError", None),
    (
        0x1100,
        "WriteTimeout",
        Some("Coordinator node timed out waiting for replica nodes' responses"),
    ),
    (
        0x1200,
        "ReadTimeout",
        Some("Coordinator node timed out waiting for replica nodes' responses"),
    ),
    (0x1300, "ReadFailure", Some("Replica(s) failed to execute read")),
    (0x1400, "FunctionFailure", Some("User Defined Function failure")),
    (0x1500, "WriteFailure", Some("Replica(s) failed to execute write")),
    (0x2000, "SyntaxException", None),
    (0x2100, "Unauthorized", Some("Unauthorized")),
    (0x2200, "InvalidRequest", Some("Invalid query")),
    (0x2300, "ConfigurationException", None),
];

/// The line that cqlsh prints. `exists`: the keyspace and the table of [`ALREADY_EXISTS`].
///
/// Differs: what follows ` info=` of timeouts and failures is left out.
pub(super) fn text(code: i32, message: &str, exists: &(String, String)) -> String {
    if code == ALREADY_EXISTS {
        return match exists {
            (keyspace, table) if table.is_empty() => format!("AlreadyExists: Keyspace '{keyspace}' already exists"),
            (keyspace, table) => format!("AlreadyExists: Table '{keyspace}.{table}' already exists"),
        };
    }
    match CLASSES.iter().find(|(known, ..)| *known == code) {
        Some((_, class, Some(summary))) => {
            format!("{class}: Error from server: code={code:04x} [{summary}] message=\"{message}\"")
        }
        Some((_, class, None)) => format!("{class}: {message}"),
        None => format!("ErrorMessage: Error from server: code={code:04x} [Unknown] message=\"{message}\""),
    }
}
