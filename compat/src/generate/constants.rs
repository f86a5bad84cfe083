//! The constants of each native type: values that occur, in the three forms in which they can be sent.
//!
//! Of the numbers that are equal but differ in their bytes (1.0 and 1.00, -0.0 and 0.0, NaNs) there is only one each: which bytes stay
//! is known to differ (compat/DIFFERENCES.md). So decimals are strings in JSON where Cassandra would make a double of the number first,
//! which gives -0.000001 and 1E+10 a zero more.

/// Constants of one type, the plainest first: literal, bound value, JSON.
pub(super) type Constants = &'static [(&'static str, &'static str, &'static str)];

pub(super) const ASCII: Constants = &[
    ("'a'", "ascii(a)", "\"a\""),
    ("'b'", "ascii(b)", "\"b\""),
    ("''", "ascii('')", "\"\""),
    ("'ab'", "ascii(ab)", "\"ab\""),
    ("'A'", "ascii(A)", "\"A\""),
    ("'it''s'", "ascii('it''s')", "\"it's\""),
    ("'a~'", "ascii('a~')", "\"a~\""),
];

pub(super) const TEXT: Constants = &[
    ("'a'", "text(a)", "\"a\""),
    ("'b'", "text(b)", "\"b\""),
    ("''", "text('')", "\"\""),
    ("'ab'", "text(ab)", "\"ab\""),
    ("'B'", "text(B)", "\"B\""),
    ("'it''s'", "text('it''s')", "\"it's\""),
    ("'é'", "text('é')", "\"é\""),
    ("'漢 \"x\"'", "text('漢 \"x\"')", "\"漢 \\\"x\\\"\""),
    ("'\u{1F600}'", "text('\u{1F600}')", "\"\u{1F600}\""),
    ("'10'", "text('10')", "\"10\""),
];

pub(super) const TINYINT: Constants = &[
    ("1", "tinyint(1)", "1"),
    ("0", "tinyint(0)", "0"),
    ("-1", "tinyint(-1)", "-1"),
    ("2", "tinyint(2)", "2"),
    ("127", "tinyint(127)", "127"),
    ("-128", "tinyint(-128)", "-128"),
];

pub(super) const SMALLINT: Constants = &[
    ("1", "smallint(1)", "1"),
    ("0", "smallint(0)", "0"),
    ("-1", "smallint(-1)", "-1"),
    ("2", "smallint(2)", "2"),
    ("300", "smallint(300)", "300"),
    ("32767", "smallint(32767)", "32767"),
    ("-32768", "smallint(-32768)", "-32768"),
];

pub(super) const INT: Constants = &[
    ("1", "int(1)", "1"),
    ("0", "int(0)", "0"),
    ("-1", "int(-1)", "-1"),
    ("2", "int(2)", "2"),
    ("3", "int(3)", "3"),
    ("10", "int(10)", "10"),
    ("2147483647", "int(2147483647)", "2147483647"),
    ("-2147483648", "int(-2147483648)", "-2147483648"),
];

pub(super) const BIGINT: Constants = &[
    ("1", "bigint(1)", "1"),
    ("0", "bigint(0)", "0"),
    ("-1", "bigint(-1)", "-1"),
    ("2", "bigint(2)", "2"),
    ("5000000000", "bigint(5000000000)", "5000000000"),
    (
        "9223372036854775807",
        "bigint(9223372036854775807)",
        "9223372036854775807",
    ),
    (
        "-9223372036854775808",
        "bigint(-9223372036854775808)",
        "-9223372036854775808",
    ),
];

pub(super) const VARINT: Constants = &[
    ("1", "varint(1)", "1"),
    ("0", "varint(0)", "0"),
    ("-1", "varint(-1)", "-1"),
    ("255", "varint(255)", "255"),
    ("-256", "varint(-256)", "-256"),
    (
        "100000000000000000000",
        "varint(100000000000000000000)",
        "100000000000000000000",
    ),
    (
        "-100000000000000000000",
        "varint(-100000000000000000000)",
        "-100000000000000000000",
    ),
];

pub(super) const DECIMAL: Constants = &[
    ("1", "decimal(1 0)", "1"),
    ("0", "decimal(0 0)", "0"),
    ("-1.5", "decimal(-15 1)", "-1.5"),
    ("2.25", "decimal(225 2)", "2.25"),
    ("1000.001", "decimal(1000001 3)", "1000.001"),
    ("1E+10", "decimal(1 -10)", "\"1E+10\""),
    ("-0.000001", "decimal(-1 6)", "\"-0.000001\""),
];

pub(super) const DOUBLE: Constants = &[
    ("1.0", "double(1.0)", "1.0"),
    ("0.0", "double(0.0)", "0.0"),
    ("-1.5", "double(-1.5)", "-1.5"),
    ("2.25", "double(2.25)", "2.25"),
    ("1e300", "double(1e300)", "1e300"),
    ("Infinity", "double(inf)", "\"Infinity\""),
    ("-Infinity", "double(-inf)", "\"-Infinity\""),
    ("NaN", "double(NaN)", "\"NaN\""),
    ("1e-7", "double(1e-7)", "1e-7"),
];

pub(super) const FLOAT: Constants = &[
    ("1.0", "float(1.0)", "1.0"),
    ("0.0", "float(0.0)", "0.0"),
    ("-1.5", "float(-1.5)", "-1.5"),
    ("2.25", "float(2.25)", "2.25"),
    ("1e30", "float(1e30)", "1e30"),
    ("Infinity", "float(inf)", "\"Infinity\""),
    ("NaN", "float(NaN)", "\"NaN\""),
    ("0.1", "float(0.1)", "0.1"),
];

pub(super) const BOOLEAN: Constants = &[("true", "boolean(true)", "true"), ("false", "boolean(false)", "false")];

pub(super) const BLOB: Constants = &[
    ("0x01", "hex(01)", "\"0x01\""),
    ("0x", "hex()", "\"0x\""),
    ("0x00", "hex(00)", "\"0x00\""),
    ("0x0102", "hex(0102)", "\"0x0102\""),
    ("0xff", "hex(ff)", "\"0xff\""),
    ("0xff00", "hex(ff00)", "\"0xff00\""),
];

pub(super) const DATE: Constants = &[
    ("'2020-02-29'", "date(2147501969)", "\"2020-02-29\""),
    ("'1970-01-01'", "date(2147483648)", "\"1970-01-01\""),
    ("'1969-12-31'", "date(2147483647)", "\"1969-12-31\""),
    ("'2026-11-21'", "date(2147504426)", "\"2026-11-21\""),
    ("0", "date(0)", "\"-5877641-06-23\""),
    ("4294967295", "date(4294967295)", "\"5881580-07-11\""),
];

pub(super) const TIME: Constants = &[
    ("'12:34:56'", "time(45296000000000)", "\"12:34:56\""),
    ("'00:00:00'", "time(0)", "\"00:00:00\""),
    ("'23:59:59.999999999'", "time(86399999999999)", "\"23:59:59.999999999\""),
    ("'08:00:00.5'", "time(28800500000000)", "\"08:00:00.5\""),
];

pub(super) const TIMESTAMP: Constants = &[
    ("1582979696789", "timestamp(1582979696789)", "1582979696789"),
    ("0", "timestamp(0)", "\"1970-01-01 00:00:00.000+0000\""),
    ("-1", "timestamp(-1)", "\"1969-12-31 23:59:59.999Z\""),
    (
        "'2020-02-29 12:34:56.789+0000'",
        "timestamp(1582979696789)",
        "\"2020-02-29 12:34:56.789Z\"",
    ),
    (
        "'2026-11-21T00:00:00Z'",
        "timestamp(1795219200000)",
        "\"2026-11-21T00:00:00Z\"",
    ),
];

pub(super) const TIMEUUID: Constants = &[
    (
        "50554d6e-29bb-11e5-b345-feff819cdc9f",
        "timeuuid(50554d6e-29bb-11e5-b345-feff819cdc9f)",
        "\"50554d6e-29bb-11e5-b345-feff819cdc9f\"",
    ),
    (
        "50554d6f-29bb-11e5-b345-feff819cdc9f",
        "timeuuid(50554d6f-29bb-11e5-b345-feff819cdc9f)",
        "\"50554d6f-29bb-11e5-b345-feff819cdc9f\"",
    ),
    (
        "00000000-0000-1000-8080-808080808080",
        "timeuuid(00000000-0000-1000-8080-808080808080)",
        "\"00000000-0000-1000-8080-808080808080\"",
    ),
    (
        "ffffffff-ffff-1fff-bf7f-7f7f7f7f7f7f",
        "timeuuid(ffffffff-ffff-1fff-bf7f-7f7f7f7f7f7f)",
        "\"ffffffff-ffff-1fff-bf7f-7f7f7f7f7f7f\"",
    ),
    (
        "50554d6e-29bb-11e6-8345-000000000001",
        "timeuuid(50554d6e-29bb-11e6-8345-000000000001)",
        "\"50554d6e-29bb-11e6-8345-000000000001\"",
    ),
];

pub(super) const UUID: Constants = &[
    (
        "123e4567-e89b-42d3-a456-426614174000",
        "uuid(123e4567-e89b-42d3-a456-426614174000)",
        "\"123e4567-e89b-42d3-a456-426614174000\"",
    ),
    (
        "00000000-0000-0000-0000-000000000000",
        "uuid(00000000-0000-0000-0000-000000000000)",
        "\"00000000-0000-0000-0000-000000000000\"",
    ),
    (
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "uuid(ffffffff-ffff-ffff-ffff-ffffffffffff)",
        "\"ffffffff-ffff-ffff-ffff-ffffffffffff\"",
    ),
    (
        "50554d6e-29bb-11e5-b345-feff819cdc9f",
        "uuid(50554d6e-29bb-11e5-b345-feff819cdc9f)",
        "\"50554d6e-29bb-11e5-b345-feff819cdc9f\"",
    ),
    (
        "923e4567-e89b-42d3-a456-426614174000",
        "uuid(923e4567-e89b-42d3-a456-426614174000)",
        "\"923e4567-e89b-42d3-a456-426614174000\"",
    ),
];

pub(super) const INET: Constants = &[
    ("'127.0.0.1'", "inet(127.0.0.1)", "\"127.0.0.1\""),
    ("'::1'", "inet(::1)", "\"::1\""),
    ("'10.0.0.1'", "inet(10.0.0.1)", "\"10.0.0.1\""),
    ("'255.255.255.255'", "inet(255.255.255.255)", "\"255.255.255.255\""),
    ("'fe80::1:2'", "inet(fe80::1:2)", "\"fe80::1:2\""),
];

pub(super) const DURATION: Constants = &[
    ("1mo2d3ns", "duration(1 2 3)", "\"1mo2d3ns\""),
    ("0ns", "duration(0 0 0)", "\"0s\""),
    ("-1d", "duration(0 -1 0)", "\"-1d\""),
    ("2y3h", "duration(24 0 10800000000000)", "\"2y3h\""),
];
