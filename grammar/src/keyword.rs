//! The kinds of tokens, and the keywords.
//!
//! Most keywords of CQL can also be names; a [`Class`] tells of which objects. Other keywords must be quoted as names.
//!
//! Source: Cassandra 5.0.9's own list of reserved words; for the others, an experiment with each in every kind of name.

use std::borrow::Cow;

/// Whether a keyword may also be a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Only a quoted name.
    Reserved,
    /// A name of anything.
    Basic,
    /// A native type: a name of anything but a user-defined type.
    Native,
    /// A name of anything but a function or a user-defined type.
    Special,
}

macro_rules! keywords {
    ($($kind:ident, $text:literal, $shown:literal, $class:ident;)*) => {
        /// The kind of a token.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($kind,)*
            PositiveNan,
            NegativeNan,
            PositiveInfinity,
            NegativeInfinity,
            Ident,
            QuotedName,
            EmptyQuotedName,
            String,
            Integer,
            FloatLiteral,
            True,
            False,
            DurationLiteral,
            UuidLiteral,
            Hex,
            QuestionMark,
            Range,
            ExprOpen,
            NotEquals,
            Percent,
            ParenOpen,
            ParenClose,
            Plus,
            PlusEquals,
            Comma,
            Minus,
            MinusEquals,
            Dot,
            Slash,
            Colon,
            Semicolon,
            Less,
            LessEquals,
            Equals,
            Greater,
            GreaterEquals,
            BracketOpen,
            Star,
            BracketClose,
            BraceOpen,
            BraceClose,
            /// No token fits; always the last.
            Invalid,
            /// The end of the text; always the last.
            End,
        }

        impl Kind {
            /// A keyword's class.
            pub(crate) const fn class(self) -> Option<Class> {
                match self {
                    $(Self::$kind => Some(Class::$class),)*
                    Self::PositiveNan | Self::PositiveInfinity => Some(Class::Reserved),
                    _ => None,
                }
            }

            /// The name of this kind in Cassandra's error messages.
            pub(crate) const fn shown(self) -> &'static str {
                match self {
                    $(Self::$kind => $shown,)*
                    Self::PositiveNan => "K_POSITIVE_NAN",
                    Self::NegativeNan => "K_NEGATIVE_NAN",
                    Self::PositiveInfinity => "K_POSITIVE_INFINITY",
                    Self::NegativeInfinity => "K_NEGATIVE_INFINITY",
                    Self::Ident => "IDENT",
                    Self::QuotedName => "QUOTED_NAME",
                    Self::EmptyQuotedName => "EMPTY_QUOTED_NAME",
                    Self::String => "STRING_LITERAL",
                    Self::Integer => "INTEGER",
                    Self::FloatLiteral => "FLOAT",
                    Self::True | Self::False => "BOOLEAN",
                    Self::DurationLiteral => "DURATION",
                    Self::UuidLiteral => "UUID",
                    Self::Hex => "HEXNUMBER",
                    Self::QuestionMark => "QMARK",
                    Self::Range => "RANGE",
                    Self::ExprOpen => "'expr('",
                    Self::NotEquals => "'!='",
                    Self::Percent => "'%'",
                    Self::ParenOpen => "'('",
                    Self::ParenClose => "')'",
                    Self::Plus => "'+'",
                    Self::PlusEquals => "'+='",
                    Self::Comma => "','",
                    Self::Minus => "'-'",
                    Self::MinusEquals => "'-='",
                    Self::Dot => "'.'",
                    Self::Slash => "'/'",
                    Self::Colon => "':'",
                    Self::Semicolon => "';'",
                    Self::Less => "'<'",
                    Self::LessEquals => "'<='",
                    Self::Equals => "'='",
                    Self::Greater => "'>'",
                    Self::GreaterEquals => "'>='",
                    Self::BracketOpen => "'['",
                    Self::Star => "'\\*'",
                    Self::BracketClose => "']'",
                    Self::BraceOpen => "'{'",
                    Self::BraceClose => "'}'",
                    Self::Invalid => "INVALID",
                    Self::End => "EOF",
                }
            }
        }
    };
}

keywords! {
    Access, "ACCESS", "K_ACCESS", Basic;
    Add, "ADD", "K_ADD", Reserved;
    Aggregate, "AGGREGATE", "K_AGGREGATE", Basic;
    Aggregates, "AGGREGATES", "K_AGGREGATES", Basic;
    All, "ALL", "K_ALL", Basic;
    Allow, "ALLOW", "K_ALLOW", Reserved;
    Alter, "ALTER", "K_ALTER", Reserved;
    And, "AND", "K_AND", Reserved;
    Ann, "ANN", "K_ANN", Basic;
    Apply, "APPLY", "K_APPLY", Reserved;
    As, "AS", "K_AS", Basic;
    Asc, "ASC", "K_ASC", Reserved;
    Ascii, "ASCII", "K_ASCII", Native;
    Authorize, "AUTHORIZE", "K_AUTHORIZE", Reserved;
    Batch, "BATCH", "K_BATCH", Reserved;
    Begin, "BEGIN", "K_BEGIN", Reserved;
    Bigint, "BIGINT", "K_BIGINT", Native;
    Blob, "BLOB", "K_BLOB", Native;
    Boolean, "BOOLEAN", "K_BOOLEAN", Native;
    By, "BY", "K_BY", Reserved;
    Called, "CALLED", "K_CALLED", Basic;
    Cast, "CAST", "K_CAST", Special;
    Cidrs, "CIDRS", "K_CIDRS", Basic;
    Cluster, "CLUSTER", "K_CLUSTER", Basic;
    Clustering, "CLUSTERING", "K_CLUSTERING", Basic;
    Columnfamily, "COLUMNFAMILY", "K_COLUMNFAMILY", Reserved;
    Compact, "COMPACT", "K_COMPACT", Basic;
    Contains, "CONTAINS", "K_CONTAINS", Basic;
    Count, "COUNT", "K_COUNT", Special;
    Counter, "COUNTER", "K_COUNTER", Native;
    Create, "CREATE", "K_CREATE", Reserved;
    Custom, "CUSTOM", "K_CUSTOM", Basic;
    Datacenters, "DATACENTERS", "K_DATACENTERS", Basic;
    Date, "DATE", "K_DATE", Native;
    Decimal, "DECIMAL", "K_DECIMAL", Native;
    Default, "DEFAULT", "K_DEFAULT", Basic;
    Delete, "DELETE", "K_DELETE", Reserved;
    Desc, "DESC", "K_DESC", Reserved;
    Describe, "DESCRIBE", "K_DESCRIBE", Reserved;
    Distinct, "DISTINCT", "K_DISTINCT", Special;
    Double, "DOUBLE", "K_DOUBLE", Native;
    Drop, "DROP", "K_DROP", Reserved;
    Duration, "DURATION", "K_DURATION", Native;
    Entries, "ENTRIES", "K_ENTRIES", Reserved;
    Execute, "EXECUTE", "K_EXECUTE", Reserved;
    Exists, "EXISTS", "K_EXISTS", Basic;
    Filtering, "FILTERING", "K_FILTERING", Basic;
    Finalfunc, "FINALFUNC", "K_FINALFUNC", Basic;
    Float, "FLOAT", "K_FLOAT", Native;
    From, "FROM", "K_FROM", Reserved;
    Frozen, "FROZEN", "K_FROZEN", Basic;
    Full, "FULL", "K_FULL", Reserved;
    Function, "FUNCTION", "K_FUNCTION", Basic;
    Functions, "FUNCTIONS", "K_FUNCTIONS", Basic;
    Grant, "GRANT", "K_GRANT", Reserved;
    Group, "GROUP", "K_GROUP", Basic;
    Hashed, "HASHED", "K_HASHED", Basic;
    Identity, "IDENTITY", "K_IDENTITY", Basic;
    If, "IF", "K_IF", Reserved;
    In, "IN", "K_IN", Reserved;
    Index, "INDEX", "K_INDEX", Reserved;
    Inet, "INET", "K_INET", Native;
    Initcond, "INITCOND", "K_INITCOND", Basic;
    Input, "INPUT", "K_INPUT", Basic;
    Insert, "INSERT", "K_INSERT", Reserved;
    Int, "INT", "K_INT", Native;
    Internals, "INTERNALS", "K_INTERNALS", Basic;
    Into, "INTO", "K_INTO", Reserved;
    Is, "IS", "K_IS", Reserved;
    Json, "JSON", "K_JSON", Special;
    Key, "KEY", "K_KEY", Special;
    Keys, "KEYS", "K_KEYS", Basic;
    Keyspace, "KEYSPACE", "K_KEYSPACE", Reserved;
    Keyspaces, "KEYSPACES", "K_KEYSPACES", Basic;
    Language, "LANGUAGE", "K_LANGUAGE", Basic;
    Like, "LIKE", "K_LIKE", Basic;
    Limit, "LIMIT", "K_LIMIT", Reserved;
    List, "LIST", "K_LIST", Basic;
    Login, "LOGIN", "K_LOGIN", Basic;
    Map, "MAP", "K_MAP", Basic;
    Masked, "MASKED", "K_MASKED", Basic;
    Materialized, "MATERIALIZED", "K_MATERIALIZED", Reserved;
    Maxwritetime, "MAXWRITETIME", "K_MAXWRITETIME", Special;
    Mbean, "MBEAN", "K_MBEAN", Basic;
    Mbeans, "MBEANS", "K_MBEANS", Basic;
    Modify, "MODIFY", "K_MODIFY", Reserved;
    Nologin, "NOLOGIN", "K_NOLOGIN", Basic;
    Norecursive, "NORECURSIVE", "K_NORECURSIVE", Reserved;
    Nosuperuser, "NOSUPERUSER", "K_NOSUPERUSER", Basic;
    Not, "NOT", "K_NOT", Reserved;
    Null, "NULL", "K_NULL", Reserved;
    Of, "OF", "K_OF", Reserved;
    On, "ON", "K_ON", Reserved;
    Only, "ONLY", "K_ONLY", Basic;
    Options, "OPTIONS", "K_OPTIONS", Basic;
    Or, "OR", "K_OR", Reserved;
    Order, "ORDER", "K_ORDER", Reserved;
    Partition, "PARTITION", "K_PARTITION", Basic;
    Password, "PASSWORD", "K_PASSWORD", Basic;
    Per, "PER", "K_PER", Basic;
    Permission, "PERMISSION", "K_PERMISSION", Basic;
    Permissions, "PERMISSIONS", "K_PERMISSIONS", Basic;
    Primary, "PRIMARY", "K_PRIMARY", Reserved;
    Rename, "RENAME", "K_RENAME", Reserved;
    Replace, "REPLACE", "K_REPLACE", Basic;
    Returns, "RETURNS", "K_RETURNS", Basic;
    Revoke, "REVOKE", "K_REVOKE", Reserved;
    Role, "ROLE", "K_ROLE", Basic;
    Roles, "ROLES", "K_ROLES", Basic;
    Schema, "SCHEMA", "K_SCHEMA", Reserved;
    Select, "SELECT", "K_SELECT", Reserved;
    SelectMasked, "SELECT_MASKED", "K_SELECT_MASKED", Basic;
    Set, "SET", "K_SET", Reserved;
    Sfunc, "SFUNC", "K_SFUNC", Basic;
    Smallint, "SMALLINT", "K_SMALLINT", Native;
    Static, "STATIC", "K_STATIC", Basic;
    Storage, "STORAGE", "K_STORAGE", Basic;
    Stype, "STYPE", "K_STYPE", Basic;
    Superuser, "SUPERUSER", "K_SUPERUSER", Basic;
    Tables, "TABLES", "K_TABLES", Basic;
    Text, "TEXT", "K_TEXT", Native;
    Time, "TIME", "K_TIME", Native;
    Timestamp, "TIMESTAMP", "K_TIMESTAMP", Native;
    Timeuuid, "TIMEUUID", "K_TIMEUUID", Native;
    Tinyint, "TINYINT", "K_TINYINT", Native;
    To, "TO", "K_TO", Reserved;
    Token, "TOKEN", "K_TOKEN", Reserved;
    Trigger, "TRIGGER", "K_TRIGGER", Basic;
    Truncate, "TRUNCATE", "K_TRUNCATE", Reserved;
    Ttl, "TTL", "K_TTL", Special;
    Tuple, "TUPLE", "K_TUPLE", Basic;
    Type, "TYPE", "K_TYPE", Basic;
    Types, "TYPES", "K_TYPES", Basic;
    Unlogged, "UNLOGGED", "K_UNLOGGED", Reserved;
    Unmask, "UNMASK", "K_UNMASK", Basic;
    Unset, "UNSET", "K_UNSET", Basic;
    Update, "UPDATE", "K_UPDATE", Reserved;
    Use, "USE", "K_USE", Reserved;
    User, "USER", "K_USER", Basic;
    Users, "USERS", "K_USERS", Basic;
    Using, "USING", "K_USING", Reserved;
    Uuid, "UUID", "K_UUID", Native;
    Values, "VALUES", "K_VALUES", Basic;
    Varchar, "VARCHAR", "K_VARCHAR", Native;
    Varint, "VARINT", "K_VARINT", Native;
    Vector, "VECTOR", "K_VECTOR", Basic;
    View, "VIEW", "K_VIEW", Reserved;
    Where, "WHERE", "K_WHERE", Reserved;
    With, "WITH", "K_WITH", Reserved;
    Writetime, "WRITETIME", "K_WRITETIME", Special;
}

/// Every word that is a keyword, sorted.
#[rustfmt::skip]
const KEYWORDS: [(&[u8], Kind); 154] = [
    (b"ACCESS", Kind::Access),
    (b"ADD", Kind::Add),
    (b"AGGREGATE", Kind::Aggregate),
    (b"AGGREGATES", Kind::Aggregates),
    (b"ALL", Kind::All),
    (b"ALLOW", Kind::Allow),
    (b"ALTER", Kind::Alter),
    (b"AND", Kind::And),
    (b"ANN", Kind::Ann),
    (b"APPLY", Kind::Apply),
    (b"AS", Kind::As),
    (b"ASC", Kind::Asc),
    (b"ASCII", Kind::Ascii),
    (b"AUTHORIZE", Kind::Authorize),
    (b"BATCH", Kind::Batch),
    (b"BEGIN", Kind::Begin),
    (b"BIGINT", Kind::Bigint),
    (b"BLOB", Kind::Blob),
    (b"BOOLEAN", Kind::Boolean),
    (b"BY", Kind::By),
    (b"CALLED", Kind::Called),
    (b"CAST", Kind::Cast),
    (b"CIDRS", Kind::Cidrs),
    (b"CLUSTER", Kind::Cluster),
    (b"CLUSTERING", Kind::Clustering),
    (b"COLUMNFAMILIES", Kind::Tables),
    (b"COLUMNFAMILY", Kind::Columnfamily),
    (b"COMPACT", Kind::Compact),
    (b"CONTAINS", Kind::Contains),
    (b"COUNT", Kind::Count),
    (b"COUNTER", Kind::Counter),
    (b"CREATE", Kind::Create),
    (b"CUSTOM", Kind::Custom),
    (b"DATACENTERS", Kind::Datacenters),
    (b"DATE", Kind::Date),
    (b"DECIMAL", Kind::Decimal),
    (b"DEFAULT", Kind::Default),
    (b"DELETE", Kind::Delete),
    (b"DESC", Kind::Desc),
    (b"DESCRIBE", Kind::Describe),
    (b"DISTINCT", Kind::Distinct),
    (b"DOUBLE", Kind::Double),
    (b"DROP", Kind::Drop),
    (b"DURATION", Kind::Duration),
    (b"ENTRIES", Kind::Entries),
    (b"EXECUTE", Kind::Execute),
    (b"EXISTS", Kind::Exists),
    (b"FILTERING", Kind::Filtering),
    (b"FINALFUNC", Kind::Finalfunc),
    (b"FLOAT", Kind::Float),
    (b"FROM", Kind::From),
    (b"FROZEN", Kind::Frozen),
    (b"FULL", Kind::Full),
    (b"FUNCTION", Kind::Function),
    (b"FUNCTIONS", Kind::Functions),
    (b"GRANT", Kind::Grant),
    (b"GROUP", Kind::Group),
    (b"HASHED", Kind::Hashed),
    (b"IDENTITY", Kind::Identity),
    (b"IF", Kind::If),
    (b"IN", Kind::In),
    (b"INDEX", Kind::Index),
    (b"INET", Kind::Inet),
    (b"INFINITY", Kind::PositiveInfinity),
    (b"INITCOND", Kind::Initcond),
    (b"INPUT", Kind::Input),
    (b"INSERT", Kind::Insert),
    (b"INT", Kind::Int),
    (b"INTERNALS", Kind::Internals),
    (b"INTO", Kind::Into),
    (b"IS", Kind::Is),
    (b"JSON", Kind::Json),
    (b"KEY", Kind::Key),
    (b"KEYS", Kind::Keys),
    (b"KEYSPACE", Kind::Keyspace),
    (b"KEYSPACES", Kind::Keyspaces),
    (b"LANGUAGE", Kind::Language),
    (b"LIKE", Kind::Like),
    (b"LIMIT", Kind::Limit),
    (b"LIST", Kind::List),
    (b"LOGIN", Kind::Login),
    (b"MAP", Kind::Map),
    (b"MASKED", Kind::Masked),
    (b"MATERIALIZED", Kind::Materialized),
    (b"MAXWRITETIME", Kind::Maxwritetime),
    (b"MBEAN", Kind::Mbean),
    (b"MBEANS", Kind::Mbeans),
    (b"MODIFY", Kind::Modify),
    (b"NAN", Kind::PositiveNan),
    (b"NOLOGIN", Kind::Nologin),
    (b"NORECURSIVE", Kind::Norecursive),
    (b"NOSUPERUSER", Kind::Nosuperuser),
    (b"NOT", Kind::Not),
    (b"NULL", Kind::Null),
    (b"OF", Kind::Of),
    (b"ON", Kind::On),
    (b"ONLY", Kind::Only),
    (b"OPTIONS", Kind::Options),
    (b"OR", Kind::Or),
    (b"ORDER", Kind::Order),
    (b"PARTITION", Kind::Partition),
    (b"PASSWORD", Kind::Password),
    (b"PER", Kind::Per),
    (b"PERMISSION", Kind::Permission),
    (b"PERMISSIONS", Kind::Permissions),
    (b"PRIMARY", Kind::Primary),
    (b"RENAME", Kind::Rename),
    (b"REPLACE", Kind::Replace),
    (b"RETURNS", Kind::Returns),
    (b"REVOKE", Kind::Revoke),
    (b"ROLE", Kind::Role),
    (b"ROLES", Kind::Roles),
    (b"SCHEMA", Kind::Schema),
    (b"SELECT", Kind::Select),
    (b"SELECT_MASKED", Kind::SelectMasked),
    (b"SET", Kind::Set),
    (b"SFUNC", Kind::Sfunc),
    (b"SMALLINT", Kind::Smallint),
    (b"STATIC", Kind::Static),
    (b"STORAGE", Kind::Storage),
    (b"STYPE", Kind::Stype),
    (b"SUPERUSER", Kind::Superuser),
    (b"TABLE", Kind::Columnfamily),
    (b"TABLES", Kind::Tables),
    (b"TEXT", Kind::Text),
    (b"TIME", Kind::Time),
    (b"TIMESTAMP", Kind::Timestamp),
    (b"TIMEUUID", Kind::Timeuuid),
    (b"TINYINT", Kind::Tinyint),
    (b"TO", Kind::To),
    (b"TOKEN", Kind::Token),
    (b"TRIGGER", Kind::Trigger),
    (b"TRUNCATE", Kind::Truncate),
    (b"TTL", Kind::Ttl),
    (b"TUPLE", Kind::Tuple),
    (b"TYPE", Kind::Type),
    (b"TYPES", Kind::Types),
    (b"UNLOGGED", Kind::Unlogged),
    (b"UNMASK", Kind::Unmask),
    (b"UNSET", Kind::Unset),
    (b"UPDATE", Kind::Update),
    (b"USE", Kind::Use),
    (b"USER", Kind::User),
    (b"USERS", Kind::Users),
    (b"USING", Kind::Using),
    (b"UUID", Kind::Uuid),
    (b"VALUES", Kind::Values),
    (b"VARCHAR", Kind::Varchar),
    (b"VARINT", Kind::Varint),
    (b"VECTOR", Kind::Vector),
    (b"VIEW", Kind::View),
    (b"WHERE", Kind::Where),
    (b"WITH", Kind::With),
    (b"WRITETIME", Kind::Writetime),
];

/// Where in [`KEYWORDS`] the words of each first letter begin.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const FIRST_LETTER: [usize; 27] = {
    let mut starts = [0; 27];
    let (mut letter, mut first) = (0, b'A');
    while letter < 27 {
        let mut index = 0;
        while index < KEYWORDS.len() && KEYWORDS[index].0[0] < first {
            index += 1;
        }
        starts[letter] = index;
        letter += 1;
        first += 1;
    }
    starts
};

/// The keyword of a word, case-insensitive; `None` if it is no keyword.
pub(crate) fn keyword_kind(word: &[u8]) -> Option<Kind> {
    let letter = usize::from(word.first()?.to_ascii_uppercase().checked_sub(b'A')?);
    let range = *FIRST_LETTER.get(letter)?..*FIRST_LETTER.get(letter + 1)?;
    KEYWORDS
        .get(range)?
        .iter()
        .find(|(text, _)| text.eq_ignore_ascii_case(word))
        .map(|(_, kind)| *kind)
}

/// Whether `word`, case-insensitive, is reserved: a name only when quoted. Cassandra's own list,
/// `reserved_keywords.txt`.
#[must_use]
pub fn is_reserved(word: &str) -> bool {
    keyword_kind(word.as_bytes()).and_then(Kind::class) == Some(Class::Reserved)
}

/// A name as Cassandra prints it: in double quotes unless it is lower case and not reserved (`ColumnIdentifier.maybeQuote`).
#[must_use]
pub fn quote_if_needed(name: &str) -> Cow<'_, str> {
    if is_plain(name) && !is_reserved(name) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(quoted(name))
    }
}

/// `[a-z][a-z0-9_]*`
pub(crate) fn is_plain(name: &str) -> bool {
    name.as_bytes().first().is_some_and(u8::is_ascii_lowercase)
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// A name in double quotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
