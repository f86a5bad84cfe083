//! Text to tokens, by Cassandra's rules: the whole text once, into one vector, before any production looks at it.
//!
//! A token keeps its kind and its place; its text is cut out when somebody needs it. Blanks and comments leave no token. A text that
//! no token fits ends the vector with [`Kind::Invalid`], and the complaint is kept beside it: Cassandra lexes as it parses, so a
//! complaint of the parser about an earlier token comes first, and which one it is only shows later.
//!
//! Deliberately absent: maximal munch. Cassandra's lexer decides which token it is in from the fewest characters that tell, and
//! then insists: `1and` is a broken uuid, not a number and a keyword. Source: experiments on Cassandra 5.0.9.

use std::borrow::Cow;

/// Whether a keyword may also be a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Never, unless quoted.
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
        /// What a token is.
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

            /// What Cassandra's complaints call a token of this kind.
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
const FIRST_LETTER: [usize; 27] = {
    let mut starts = [0; 27];
    let mut letter = 0;
    while letter < 27 {
        let mut index = 0;
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
        while index < KEYWORDS.len() && KEYWORDS[index].0[0] < b'A' + letter as u8 {
            index += 1;
        }
        starts[letter] = index;
        letter += 1;
    }
    starts
};

/// The keyword a word is, whatever its case.
fn keyword_of(word: &[u8]) -> Option<Kind> {
    let letter = usize::from(word.first()?.to_ascii_uppercase().checked_sub(b'A')?);
    let range = *FIRST_LETTER.get(letter)?..*FIRST_LETTER.get(letter + 1)?;
    KEYWORDS
        .get(range)?
        .iter()
        .find(|(text, _)| text.eq_ignore_ascii_case(word))
        .map(|(_, kind)| *kind)
}

/// A token and its place in the text, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    /// What it is.
    pub(crate) kind: Kind,
    /// Its first byte.
    pub(crate) start: u32,
    /// The byte after its last.
    pub(crate) end: u32,
}

/// Why no token fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LexicalError {
    /// The byte the lexer stumbled over; the text's length at its end.
    pub(crate) at: usize,
    /// The complaint, but for the character.
    pub(crate) complaint: Complaint,
}

/// What the lexer has against a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Complaint {
    /// Nothing begins or goes on like this.
    NoViableAlternative,
    /// Just this could follow.
    Expecting(&'static str),
    /// A digit had to follow.
    MissingDigits,
}

/// All tokens of a text, and what stopped the lexer, if anything did.
#[derive(Debug)]
pub(crate) struct Tokens {
    /// In order; the last is [`Kind::End`] or [`Kind::Invalid`].
    pub(crate) all: Vec<Token>,
    /// Why the last is [`Kind::Invalid`].
    pub(crate) error: Option<LexicalError>,
}

/// Cuts `text` into tokens. With `hidden`, blanks and comments leave tokens of kind [`Kind::Invalid`] too: complaints quote the
/// text by counting those.
pub(crate) fn lex(text: &str, hidden: bool) -> Tokens {
    let bytes = text.as_bytes();
    let mut all = Vec::with_capacity(bytes.len() / 4 + 4);
    let mut at = 0;
    loop {
        let start = at;
        let kind = match next(bytes, at) {
            Ok(Some((kind, end))) => {
                at = end;
                kind
            }
            Ok(None) => {
                break all.push(Token {
                    kind: Kind::End,
                    start: place(start),
                    end: place(start),
                });
            }
            Err(error) => {
                all.push(Token {
                    kind: Kind::Invalid,
                    start: place(start),
                    end: place(start),
                });
                return Tokens {
                    all,
                    error: Some(error),
                };
            }
        };
        if kind != Kind::Invalid || hidden {
            all.push(Token {
                kind,
                start: place(start),
                end: place(at),
            });
        }
    }
    Tokens { all, error: None }
}

/// A place in the text; the text's length is bounded before it is lexed.
fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

type Lexed = Result<Option<(Kind, usize)>, LexicalError>;

fn wrong(at: usize, complaint: Complaint) -> Lexed {
    Err(LexicalError { at, complaint })
}

fn found(kind: Kind, end: usize) -> Lexed {
    Ok(Some((kind, end)))
}

/// The token at `at` and its end; blanks and comments are [`Kind::Invalid`].
fn next(bytes: &[u8], at: usize) -> Lexed {
    let Some(&first) = bytes.get(at) else { return Ok(None) };
    let second = bytes.get(at + 1).copied();
    let pair = |expected: u8, long: Kind, short: Kind| {
        if second == Some(expected) {
            found(long, at + 2)
        } else {
            found(short, at + 1)
        }
    };
    match first {
        b' ' | b'\t' | b'\n' | b'\r' => found(
            Kind::Invalid,
            run(bytes, at, |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')),
        ),
        b'a'..=b'z' | b'A'..=b'Z' => word(bytes, at),
        b'0'..=b'9' => number(bytes, at, at),
        b'\'' => string(bytes, at),
        b'"' => quoted_name(bytes, at),
        b'$' => dollar_string(bytes, at),
        b'-' => minus(bytes, at),
        b'/' => match second {
            Some(b'/') => line_comment(bytes, at),
            Some(b'*') => block_comment(bytes, at),
            _ => found(Kind::Slash, at + 1),
        },
        b'!' if second == Some(b'=') => found(Kind::NotEquals, at + 2),
        b'!' => wrong(at + 1, Complaint::Expecting("'='")),
        b'<' => pair(b'=', Kind::LessEquals, Kind::Less),
        b'>' => pair(b'=', Kind::GreaterEquals, Kind::Greater),
        b'+' => pair(b'=', Kind::PlusEquals, Kind::Plus),
        b'.' => pair(b'.', Kind::Range, Kind::Dot),
        b'?' => found(Kind::QuestionMark, at + 1),
        b'%' => found(Kind::Percent, at + 1),
        b'(' => found(Kind::ParenOpen, at + 1),
        b')' => found(Kind::ParenClose, at + 1),
        b',' => found(Kind::Comma, at + 1),
        b':' => found(Kind::Colon, at + 1),
        b';' => found(Kind::Semicolon, at + 1),
        b'=' => found(Kind::Equals, at + 1),
        b'[' => found(Kind::BracketOpen, at + 1),
        b'*' => found(Kind::Star, at + 1),
        b']' => found(Kind::BracketClose, at + 1),
        b'{' => found(Kind::BraceOpen, at + 1),
        b'}' => found(Kind::BraceClose, at + 1),
        _ => wrong(at, Complaint::NoViableAlternative),
    }
}

/// The end of the bytes from `at` on that satisfy `of`.
fn run(bytes: &[u8], at: usize, of: impl Fn(u8) -> bool) -> usize {
    bytes
        .iter()
        .skip(at)
        .position(|&byte| !of(byte))
        .map_or(bytes.len(), |length| at + length)
}

fn digits(bytes: &[u8], at: usize) -> usize {
    run(bytes, at, |byte| byte.is_ascii_digit())
}

/// A name, a keyword, a boolean, or a uuid or period that begins with a letter.
fn word(bytes: &[u8], at: usize) -> Lexed {
    let end = run(bytes, at, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let text = bytes.get(at..end).unwrap_or_default();
    if end - at == 8 && bytes.get(end) == Some(&b'-') && text.iter().all(u8::is_ascii_hexdigit) {
        return uuid(bytes, at);
    }
    if text.first() == Some(&b'P')
        && let Some(period) = period(bytes, at)
    {
        return period;
    }
    // A token of its own, so that an index expression needs no keyword.
    if text == b"expr" && bytes.get(end) == Some(&b'(') {
        return found(Kind::ExprOpen, end + 1);
    }
    let kind = if text.eq_ignore_ascii_case(b"true") {
        Kind::True
    } else if text.eq_ignore_ascii_case(b"false") {
        Kind::False
    } else {
        keyword_of(text).unwrap_or(Kind::Ident)
    };
    found(kind, end)
}

/// `-`, `-=`, a comment, or a negative number, duration or infinity.
fn minus(bytes: &[u8], at: usize) -> Lexed {
    match bytes.get(at + 1) {
        Some(b'=') => found(Kind::MinusEquals, at + 2),
        Some(b'-') => line_comment(bytes, at),
        Some(b'0'..=b'9') => number(bytes, at, at + 1),
        Some(b'P') => {
            period(bytes, at + 1).unwrap_or_else(|| wrong(period_prefix(bytes, at + 1), Complaint::NoViableAlternative))
        }
        Some(b'n' | b'N') => insist(bytes, at, b"nan", Kind::NegativeNan),
        Some(b'i' | b'I') => insist(bytes, at, b"infinity", Kind::NegativeInfinity),
        _ => found(Kind::Minus, at + 1),
    }
}

/// `word` behind the sign at `at`: after its first letter nothing else can follow.
fn insist(bytes: &[u8], at: usize, word: &[u8], kind: Kind) -> Lexed {
    for (offset, letter) in word.iter().enumerate() {
        if bytes
            .get(at + 1 + offset)
            .is_none_or(|byte| !byte.eq_ignore_ascii_case(letter))
        {
            return wrong(at + 1 + offset, Complaint::Expecting("set null"));
        }
    }
    found(kind, at + 1 + word.len())
}

/// A number, duration, uuid or blob that begins with a digit at `from`; `at` is its sign, or `from`.
fn number(bytes: &[u8], at: usize, from: usize) -> Lexed {
    let end = digits(bytes, from);
    let (count, signed) = (end - from, at != from);
    let may_be_uuid = count < 8 && !signed;
    match bytes.get(end).map(u8::to_ascii_lowercase) {
        Some(b'x') if count == 1 && !signed && bytes.get(from) == Some(&b'0') => {
            found(Kind::Hex, run(bytes, end + 1, |byte| byte.is_ascii_hexdigit()))
        }
        Some(b'-') if count == 8 && !signed && bytes.get(end + 1).is_some_and(u8::is_ascii_hexdigit) => uuid(bytes, at),
        Some(b'.') => fraction(bytes, end),
        Some(b'e' | b'd') if may_be_uuid => exponent_or_uuid(bytes, at, end),
        Some(b'e') => exponent(bytes, end),
        Some(b'a'..=b'c' | b'f') if may_be_uuid => uuid(bytes, at),
        Some(b'y' | b'm' | b'w' | b'd' | b'h' | b's' | b'u' | b'n' | 0xC2) => units(bytes, end),
        _ => found(Kind::Integer, end),
    }
}

/// What follows `1.`: `1..` is a number and a range, `1...` a number with a point and a range.
fn fraction(bytes: &[u8], point: usize) -> Lexed {
    if bytes.get(point + 1) == Some(&b'.') {
        return if bytes.get(point + 2) == Some(&b'.') {
            found(Kind::FloatLiteral, point + 1)
        } else {
            found(Kind::Integer, point)
        };
    }
    let end = digits(bytes, point + 1);
    if bytes.get(end).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'e')) {
        return exponent(bytes, end);
    }
    found(Kind::FloatLiteral, end)
}

/// `e`, perhaps a sign, and digits.
fn exponent(bytes: &[u8], letter: usize) -> Lexed {
    let sign = usize::from(matches!(bytes.get(letter + 1), Some(b'+' | b'-')));
    let first = letter + 1 + sign;
    let end = digits(bytes, first);
    if end == first {
        wrong(end, Complaint::MissingDigits)
    } else {
        found(Kind::FloatLiteral, end)
    }
}

/// Digits and then `e` or `d`: a float, a duration or a uuid, whichever the next characters leave.
fn exponent_or_uuid(bytes: &[u8], at: usize, letter: usize) -> Lexed {
    let is_exponent = bytes.get(letter).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'e'));
    let mut end = letter + 1;
    let mut after_letter = true;
    loop {
        let inside_uuid = end - at < 8;
        match bytes.get(end).map(u8::to_ascii_lowercase) {
            Some(b'0'..=b'9') => after_letter = false,
            Some(b'+') if is_exponent && after_letter => return exponent(bytes, letter),
            Some(b'-') if is_exponent && after_letter && end - at != 8 => return exponent(bytes, letter),
            Some(b'-') if end - at == 8 => return uuid(bytes, at),
            Some(b'd') if !is_exponent && !after_letter => after_letter = true,
            Some(b'a'..=b'f') if inside_uuid => return uuid(bytes, at),
            Some(b'y' | b'm' | b'w' | b'h' | b's' | b'u' | b'n' | 0xC2) if !is_exponent && !after_letter => {
                return units(bytes, letter);
            }
            _ if is_exponent && !after_letter => return exponent(bytes, letter),
            _ if !is_exponent && after_letter => return units(bytes, letter),
            _ => return wrong(end, Complaint::NoViableAlternative),
        }
        end += 1;
    }
}

/// The units of a duration such as `1y2mo3d`, from its first on.
fn units(bytes: &[u8], first: usize) -> Lexed {
    let mut at = first;
    loop {
        let second = bytes.get(at + 1).map(u8::to_ascii_lowercase);
        at += match bytes.get(at).map(u8::to_ascii_lowercase) {
            Some(b'm') if matches!(second, Some(b'o' | b's')) => 2,
            Some(b'y' | b'm' | b'w' | b'd' | b'h' | b's') => 1,
            Some(b'u' | b'n') if second == Some(b's') => 2,
            Some(b'u' | b'n') => return wrong(at + 1, Complaint::Expecting("set null")),
            // The micro sign is two bytes.
            Some(0xC2)
                if second == Some(0xB5) && bytes.get(at + 2).is_some_and(|byte| byte.eq_ignore_ascii_case(&b's')) =>
            {
                3
            }
            Some(0xC2) if second == Some(0xB5) => return wrong(at + 2, Complaint::Expecting("set null")),
            _ => return wrong(at, Complaint::NoViableAlternative),
        };
        let end = digits(bytes, at);
        if end == at {
            return found(Kind::DurationLiteral, at);
        }
        at = end;
    }
}

/// A uuid, after which nothing else can be meant: five runs of hexadecimal digits.
fn uuid(bytes: &[u8], at: usize) -> Lexed {
    let mut end = at;
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            if bytes.get(end) != Some(&b'-') {
                return wrong(end, Complaint::Expecting("'-'"));
            }
            end += 1;
        }
        for _ in 0..length {
            if !bytes.get(end).is_some_and(u8::is_ascii_hexdigit) {
                return wrong(end, Complaint::Expecting("set null"));
            }
            end += 1;
        }
    }
    found(Kind::UuidLiteral, end)
}

/// An ISO 8601 duration whose `P` is at `at`: `P1Y2M3DT4H5M6S`, `P2W`, `P0001-02-03T04:05:06`; `None` if it is none.
fn period(bytes: &[u8], at: usize) -> Option<Lexed> {
    let mut end = at + 1;
    let years = digits(bytes, end);
    if years == end + 4 && bytes.get(years) == Some(&b'-') {
        return Some(alternative_period(bytes, end));
    }
    if years > end && bytes.get(years) == Some(&b'W') {
        return Some(found(Kind::DurationLiteral, years + 1));
    }
    let date = designated(bytes, &mut end, b"YMD");
    let mut time = end + 1;
    if bytes.get(end) == Some(&b'T') && designated(bytes, &mut time, b"HMS") {
        end = time;
    } else if !date {
        return None;
    }
    Some(found(Kind::DurationLiteral, end))
}

/// How far the characters from `P` on could begin an ISO 8601 duration.
fn period_prefix(bytes: &[u8], at: usize) -> usize {
    let end = at + 1;
    if bytes.get(end) == Some(&b'T') {
        digits(bytes, end + 1)
    } else {
        digits(bytes, end)
    }
}

/// Numbers followed by letters of `order`, each at most once and in that order; moves `at` behind them.
fn designated(bytes: &[u8], at: &mut usize, order: &[u8]) -> bool {
    let begin = *at;
    for letter in order {
        let end = digits(bytes, *at);
        if end > *at && bytes.get(end) == Some(letter) {
            *at = end + 1;
        }
    }
    *at > begin
}

/// `0001-02-03T04:05:06`, which is already known to be one.
fn alternative_period(bytes: &[u8], at: usize) -> Lexed {
    for (offset, &expected) in b"0000-00-00T00:00:00".iter().enumerate() {
        let byte = bytes.get(at + offset).copied();
        if expected == b'0' {
            if !byte.is_some_and(|byte| byte.is_ascii_digit()) {
                return wrong(at + offset, Complaint::Expecting("set null"));
            }
        } else if byte != Some(expected) {
            let shown = match expected {
                b'-' => "'-'",
                b'T' => "'T'",
                _ => "':'",
            };
            return wrong(at + offset, Complaint::Expecting(shown));
        }
    }
    found(Kind::DurationLiteral, at + 19)
}

/// `'it''s'`
fn string(bytes: &[u8], at: usize) -> Lexed {
    match closing(bytes, at + 1, b'\'') {
        Some(end) => found(Kind::String, end),
        None => wrong(bytes.len(), Complaint::Expecting("'''")),
    }
}

/// `"a ""quoted"" name"`; `""` is a token of its own.
fn quoted_name(bytes: &[u8], at: usize) -> Lexed {
    match closing(bytes, at + 1, b'"') {
        Some(end) if end == at + 2 => found(Kind::EmptyQuotedName, end),
        Some(end) => found(Kind::QuotedName, end),
        None => wrong(bytes.len(), Complaint::Expecting("'\"'")),
    }
}

/// The byte behind the `quote` that closes what began before `at`; two quotes are one inside.
fn closing(bytes: &[u8], mut at: usize, quote: u8) -> Option<usize> {
    loop {
        at = run(bytes, at, |byte| byte != quote) + 1;
        if at > bytes.len() {
            return None;
        }
        if bytes.get(at) != Some(&quote) {
            return Some(at);
        }
        at += 1;
    }
}

/// `$$text$$`
fn dollar_string(bytes: &[u8], at: usize) -> Lexed {
    if bytes.get(at + 1) != Some(&b'$') {
        return wrong(at + 1, Complaint::Expecting("'$'"));
    }
    let body = bytes.get(at + 2..).unwrap_or_default();
    match body.windows(2).position(|two| two == b"$$") {
        Some(length) => found(Kind::String, at + 2 + length + 2),
        // The closing signs are missed where they could last have stood: at the last character.
        None => {
            let mut last = bytes.len().saturating_sub(1).max(at + 2);
            while last > at + 2 && bytes.get(last).is_some_and(|byte| byte & 0xC0 == 0x80) {
                last -= 1;
            }
            if body == b"$" {
                last = bytes.len();
            }
            wrong(last, Complaint::Expecting("'$'"))
        }
    }
}

/// `--` or `//`, and a line's end: a comment that the text's end cuts off is an error.
fn line_comment(bytes: &[u8], at: usize) -> Lexed {
    let end = run(bytes, at, |byte| byte != b'\n' && byte != b'\r');
    if end == bytes.len() {
        wrong(end, Complaint::Expecting("set null"))
    } else {
        found(Kind::Invalid, end + 1)
    }
}

/// `/* … */`
fn block_comment(bytes: &[u8], at: usize) -> Lexed {
    let body = bytes.get(at + 2..).unwrap_or_default();
    match body.windows(2).position(|two| two == b"*/") {
        Some(length) => found(Kind::Invalid, at + 2 + length + 2),
        None => wrong(bytes.len(), Complaint::Expecting("'*'")),
    }
}

/// What a token says: a string or quoted name without its quotes, anything else as written.
pub(crate) fn token_text(text: &str, token: Token) -> Cow<'_, str> {
    let raw = text.get(token.start as usize..token.end as usize).unwrap_or_default();
    let inner = |quotes: usize| raw.get(quotes..raw.len().saturating_sub(quotes)).unwrap_or_default();
    match token.kind {
        Kind::String if raw.starts_with('$') => Cow::Borrowed(inner(2)),
        Kind::String => unquoted(inner(1), "''", "'"),
        Kind::QuotedName => unquoted(inner(1), "\"\"", "\""),
        _ => Cow::Borrowed(raw),
    }
}

fn unquoted<'a>(inner: &'a str, twice: &str, once: &str) -> Cow<'a, str> {
    if inner.contains(twice) {
        Cow::Owned(inner.replace(twice, once))
    } else {
        Cow::Borrowed(inner)
    }
}

/// Whether `word`, whatever its case, is reserved: a name only when quoted. Cassandra's own list, `reserved_keywords.txt`.
#[must_use]
pub fn is_reserved(word: &str) -> bool {
    keyword_of(word.as_bytes()).and_then(Kind::class) == Some(Class::Reserved)
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

/// What kind of token a word is; `None` if it is no keyword.
pub(crate) fn keyword_kind(word: &str) -> Option<Kind> {
    keyword_of(word.as_bytes())
}
