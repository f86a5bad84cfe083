//! Types in the checker: primitives, classes with type arguments, arrays.

use std::fmt;

/// A primitive type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Boolean,
    Byte,
    Short,
    Char,
    Int,
    Long,
    Float,
    Double,
}

impl Kind {
    pub(crate) const ALL: [Self; 8] = [
        Self::Boolean,
        Self::Byte,
        Self::Short,
        Self::Char,
        Self::Int,
        Self::Long,
        Self::Float,
        Self::Double,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Byte => "byte",
            Self::Short => "short",
            Self::Char => "char",
            Self::Int => "int",
            Self::Long => "long",
            Self::Float => "float",
            Self::Double => "double",
        }
    }

    pub(crate) const fn class(self) -> Class {
        match self {
            Self::Boolean => Class::Boolean,
            Self::Byte => Class::Byte,
            Self::Short => Class::Short,
            Self::Char => Class::Character,
            Self::Int => Class::Integer,
            Self::Long => Class::Long,
            Self::Float => Class::Float,
            Self::Double => Class::Double,
        }
    }

    pub(crate) fn is_numeric(self) -> bool {
        self != Self::Boolean
    }

    pub(crate) fn is_integral(self) -> bool {
        matches!(self, Self::Byte | Self::Short | Self::Char | Self::Int | Self::Long)
    }

    /// Whether a value widens to `to` implicitly (JLS §5.1.2).
    pub(crate) fn widens_to(self, to: Self) -> bool {
        match (self, to) {
            (Self::Boolean, _) | (_, Self::Boolean | Self::Char) => false,
            (Self::Char, to) => to >= Self::Int,
            (from, to) => from < to,
        }
    }

    /// The result type of an operator with two operands (JLS §5.6).
    pub(crate) fn promoted(self, other: Self) -> Self {
        self.max(other).max(Self::Int)
    }

    /// The number of frame slots that a value occupies.
    pub(crate) fn slots(self) -> usize {
        if matches!(self, Self::Long | Self::Double) {
            2
        } else {
            1
        }
    }
}

macro_rules! classes {
    ($($class:ident $simple:literal $full:literal $parameters:literal [$($above:ident)*],)*) => {
        /// A class or interface.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(clippy::enum_variant_names, reason = "classes have the names that Java gives them")]
        pub(crate) enum Class { $($class),* }

        impl Class {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$class),*];

            /// Its name without the package.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$class => $simple),* }
            }

            /// Its name with the package.
            pub(crate) const fn full_name(self) -> &'static str {
                match self { $(Self::$class => $full),* }
            }

            /// The number of type parameters.
            pub(crate) const fn parameters(self) -> usize {
                match self { $(Self::$class => $parameters),* }
            }

            /// Its superclass and interfaces; `Object` is implied.
            pub(crate) const fn above(self) -> &'static [Self] {
                match self { $(Self::$class => &[$(Self::$above),*]),* }
            }
        }
    };
}

classes! {
    Object "Object" "java.lang.Object" 0 [],
    Comparable "Comparable" "java.lang.Comparable" 1 [],
    CharSequence "CharSequence" "java.lang.CharSequence" 0 [],
    Number "Number" "java.lang.Number" 0 [],
    Boolean "Boolean" "java.lang.Boolean" 0 [Comparable],
    Byte "Byte" "java.lang.Byte" 0 [Number Comparable],
    Short "Short" "java.lang.Short" 0 [Number Comparable],
    Character "Character" "java.lang.Character" 0 [Comparable],
    Integer "Integer" "java.lang.Integer" 0 [Number Comparable],
    Long "Long" "java.lang.Long" 0 [Number Comparable],
    Float "Float" "java.lang.Float" 0 [Number Comparable],
    Double "Double" "java.lang.Double" 0 [Number Comparable],
    String "String" "java.lang.String" 0 [CharSequence Comparable],
    StringBuilder "StringBuilder" "java.lang.StringBuilder" 0 [CharSequence],
    StringBuffer "StringBuffer" "java.lang.StringBuffer" 0 [StringBuilder],
    Math "Math" "java.lang.Math" 0 [],
    Iterable "Iterable" "java.lang.Iterable" 1 [],
    ClassOf "Class" "java.lang.Class" 1 [],
    Collection "Collection" "java.util.Collection" 1 [Iterable],
    List "List" "java.util.List" 1 [Collection],
    ArrayList "ArrayList" "java.util.ArrayList" 1 [List],
    LinkedList "LinkedList" "java.util.LinkedList" 1 [List],
    Set "Set" "java.util.Set" 1 [Collection],
    HashSet "HashSet" "java.util.HashSet" 1 [Set],
    LinkedHashSet "LinkedHashSet" "java.util.LinkedHashSet" 1 [HashSet],
    TreeSet "TreeSet" "java.util.TreeSet" 1 [Set],
    Map "Map" "java.util.Map" 2 [],
    HashMap "HashMap" "java.util.HashMap" 2 [Map],
    LinkedHashMap "LinkedHashMap" "java.util.LinkedHashMap" 2 [HashMap],
    TreeMap "TreeMap" "java.util.TreeMap" 2 [Map],
    Entry "Entry" "java.util.Map$Entry" 2 [],
    Iterator "Iterator" "java.util.Iterator" 1 [],
    Arrays "Arrays" "java.util.Arrays" 0 [],
    Collections "Collections" "java.util.Collections" 0 [],
    Objects "Objects" "java.util.Objects" 0 [],
    System "System" "java.lang.System" 0 [],
    Random "Random" "java.util.Random" 0 [],
    Optional "Optional" "java.util.Optional" 1 [],
    Base64 "Base64" "java.util.Base64" 0 [],
    Encoder "Encoder" "java.util.Base64$Encoder" 0 [],
    Decoder "Decoder" "java.util.Base64$Decoder" 0 [],
    StringTokenizer "StringTokenizer" "java.util.StringTokenizer" 0 [],
    Locale "Locale" "java.util.Locale" 0 [],
    TimeZone "TimeZone" "java.util.TimeZone" 0 [],
    Calendar "Calendar" "java.util.Calendar" 0 [Comparable],
    GregorianCalendar "GregorianCalendar" "java.util.GregorianCalendar" 0 [Calendar],
    DateFormat "DateFormat" "java.text.DateFormat" 0 [],
    SimpleDateFormat "SimpleDateFormat" "java.text.SimpleDateFormat" 0 [DateFormat],
    Day "LocalDate" "java.time.LocalDate" 0 [Comparable],
    Instant "Instant" "java.time.Instant" 0 [Comparable],
    DayOfWeek "DayOfWeek" "java.time.DayOfWeek" 0 [Comparable],
    Month "Month" "java.time.Month" 0 [Comparable],
    ChronoUnit "ChronoUnit" "java.time.temporal.ChronoUnit" 0 [Comparable],
    Pattern "Pattern" "java.util.regex.Pattern" 0 [],
    Matcher "Matcher" "java.util.regex.Matcher" 0 [],
    Uuid "UUID" "java.util.UUID" 0 [Comparable],
    Date "Date" "java.util.Date" 0 [Comparable],
    BigInteger "BigInteger" "java.math.BigInteger" 0 [Number Comparable],
    BigDecimal "BigDecimal" "java.math.BigDecimal" 0 [Number Comparable],
    RoundingMode "RoundingMode" "java.math.RoundingMode" 0 [],
    InetAddress "InetAddress" "java.net.InetAddress" 0 [],
    ByteBuffer "ByteBuffer" "java.nio.ByteBuffer" 0 [Comparable],
    LocalDate "LocalDate" "org.apache.cassandra.cql3.functions.types.LocalDate" 0 [],
    Duration "Duration" "org.apache.cassandra.cql3.Duration" 0 [],
    TupleValue "TupleValue" "org.apache.cassandra.cql3.functions.types.TupleValue" 0 [],
    UdtValue "UDTValue" "org.apache.cassandra.cql3.functions.types.UDTValue" 0 [],
    UdfContext "UDFContext" "org.apache.cassandra.cql3.functions.UDFContext" 0 [],
    Throwable "Throwable" "java.lang.Throwable" 0 [],
    Exception "Exception" "java.lang.Exception" 0 [Throwable],
    Error "Error" "java.lang.Error" 0 [Throwable],
    RuntimeException "RuntimeException" "java.lang.RuntimeException" 0 [Exception],
    IllegalArgument "IllegalArgumentException" "java.lang.IllegalArgumentException" 0 [RuntimeException],
    NumberFormat "NumberFormatException" "java.lang.NumberFormatException" 0 [IllegalArgument],
    IllegalState "IllegalStateException" "java.lang.IllegalStateException" 0 [RuntimeException],
    Arithmetic "ArithmeticException" "java.lang.ArithmeticException" 0 [RuntimeException],
    NullPointer "NullPointerException" "java.lang.NullPointerException" 0 [RuntimeException],
    ClassCast "ClassCastException" "java.lang.ClassCastException" 0 [RuntimeException],
    IndexOutOfBounds "IndexOutOfBoundsException" "java.lang.IndexOutOfBoundsException" 0 [RuntimeException],
    StringIndex "StringIndexOutOfBoundsException" "java.lang.StringIndexOutOfBoundsException" 0 [IndexOutOfBounds],
    ArrayIndex "ArrayIndexOutOfBoundsException" "java.lang.ArrayIndexOutOfBoundsException" 0 [IndexOutOfBounds],
    NegativeSize "NegativeArraySizeException" "java.lang.NegativeArraySizeException" 0 [RuntimeException],
    Unsupported "UnsupportedOperationException" "java.lang.UnsupportedOperationException" 0 [RuntimeException],
    NoSuchElement "NoSuchElementException" "java.util.NoSuchElementException" 0 [RuntimeException],
    ConcurrentModification "ConcurrentModificationException" "java.util.ConcurrentModificationException" 0 [RuntimeException],
    ArrayStore "ArrayStoreException" "java.lang.ArrayStoreException" 0 [RuntimeException],
    BufferOverflow "BufferOverflowException" "java.nio.BufferOverflowException" 0 [RuntimeException],
    BufferUnderflow "BufferUnderflowException" "java.nio.BufferUnderflowException" 0 [RuntimeException],
    ReadOnlyBuffer "ReadOnlyBufferException" "java.nio.ReadOnlyBufferException" 0 [Unsupported],
    DateTime "DateTimeException" "java.time.DateTimeException" 0 [RuntimeException],
    DateTimeParse "DateTimeParseException" "java.time.format.DateTimeParseException" 0 [DateTime],
    PatternSyntax "PatternSyntaxException" "java.util.regex.PatternSyntaxException" 0 [IllegalArgument],
    IllegalFormat "IllegalFormatException" "java.util.IllegalFormatException" 0 [IllegalArgument],
    FormatConversion "IllegalFormatConversionException" "java.util.IllegalFormatConversionException" 0 [IllegalFormat],
    FormatPrecision "IllegalFormatPrecisionException" "java.util.IllegalFormatPrecisionException" 0 [IllegalFormat],
    FormatFlags "FormatFlagsConversionMismatchException" "java.util.FormatFlagsConversionMismatchException" 0 [IllegalFormat],
    IllegalFlags "IllegalFormatFlagsException" "java.util.IllegalFormatFlagsException" 0 [IllegalFormat],
    MissingFormatArgument "MissingFormatArgumentException" "java.util.MissingFormatArgumentException" 0 [IllegalFormat],
    MissingFormatWidth "MissingFormatWidthException" "java.util.MissingFormatWidthException" 0 [IllegalFormat],
    UnknownConversion "UnknownFormatConversionException" "java.util.UnknownFormatConversionException" 0 [IllegalFormat],
    DuplicateFlags "DuplicateFormatFlagsException" "java.util.DuplicateFormatFlagsException" 0 [IllegalFormat],
    Parse "ParseException" "java.text.ParseException" 0 [Exception],
    DriverFailure "DriverException" "org.apache.cassandra.cql3.functions.types.exceptions.DriverException" 0 [RuntimeException],
    CodecNotFound "CodecNotFoundException" "org.apache.cassandra.cql3.functions.types.exceptions.CodecNotFoundException" 0 [DriverFailure],
    InvalidType "InvalidTypeException" "org.apache.cassandra.cql3.functions.types.exceptions.InvalidTypeException" 0 [DriverFailure],
    StackOverflow "StackOverflowError" "java.lang.StackOverflowError" 0 [Error],
}

impl Class {
    /// The class of this name: a simple one of `java.lang` or `java.util` (or of Cassandra's imports), or a full one.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let full = |class: &&Self| class.full_name().replace('$', ".") == name;
        let simple = |class: &&Self| class.name() == name && class.is_imported();
        let nested = |class: &&Self| {
            let inner = class.full_name().strip_prefix("java.util.").unwrap_or_default();
            inner.contains('$') && inner.replace('$', ".") == name
        };
        let is = |class: &&Self| simple(class) || full(class) || nested(class);
        Self::ALL.iter().find(is).copied()
    }

    /// Whether its simple name is known without an import.
    fn is_imported(self) -> bool {
        let full = self.full_name();
        let package = full.rsplit_once('.').map_or("", |(package, _)| package);
        let nested = full.contains('$');
        let is_ours = matches!(
            self,
            Self::TupleValue | Self::UdtValue | Self::UdfContext | Self::ByteBuffer
        );
        !nested && (is_ours || matches!(package, "java.lang" | "java.util"))
    }

    /// Whether each value of this class is also one of `other`.
    pub(crate) fn is(self, other: Self) -> bool {
        self == other || other == Self::Object || self.above().iter().any(|above| above.is(other))
    }

    /// The primitive type that it boxes.
    pub(crate) fn unboxed(self) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.class() == self)
    }

    /// Whether `new` can create values of exactly this class.
    pub(crate) fn is_abstract(self) -> bool {
        matches!(
            self,
            Self::Comparable
                | Self::CharSequence
                | Self::Number
                | Self::Iterable
                | Self::Collection
                | Self::List
                | Self::Set
                | Self::Map
                | Self::Entry
                | Self::Iterator
                | Self::Calendar
                | Self::DateFormat
                | Self::TimeZone
        )
    }

    /// Whether a value of any other class may also have this one: it is an interface.
    pub(crate) fn is_interface(self) -> bool {
        self.is_abstract() && !matches!(self, Self::Number | Self::Calendar | Self::DateFormat | Self::TimeZone)
    }

    /// Whether it is a checked exception; a function cannot declare any.
    pub(crate) fn is_checked(self) -> bool {
        self.is(Self::Throwable) && !self.is(Self::RuntimeException) && !self.is(Self::Error)
    }

    /// The name that Java's messages about null have: `java.lang` is left out of String and Object only.
    pub(crate) fn null_name(self) -> &'static str {
        match self {
            Self::String => "String",
            Self::Object => "Object",
            other => other.full_name(),
        }
    }
}

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ty {
    /// The type of a faulty expression. It fits everything, so that each mistake is reported once.
    Unknown,
    Void,
    Null,
    Prim(Kind),
    /// A class with its type arguments; raw if it has type parameters and the arguments are missing.
    Ref(Class, Vec<Ty>),
    Array(Box<Ty>),
}

impl Ty {
    pub(crate) const INT: Self = Self::Prim(Kind::Int);
    pub(crate) const BOOLEAN: Self = Self::Prim(Kind::Boolean);

    pub(crate) fn class(class: Class) -> Self {
        Self::Ref(class, Vec::new())
    }

    pub(crate) fn string() -> Self {
        Self::class(Class::String)
    }

    pub(crate) fn object() -> Self {
        Self::class(Class::Object)
    }

    /// The primitive type that it is or boxes.
    pub(crate) fn primitive(&self) -> Option<Kind> {
        match self {
            Self::Prim(kind) => Some(*kind),
            Self::Ref(class, _) => class.unboxed(),
            _ => None,
        }
    }

    pub(crate) fn is_reference(&self) -> bool {
        matches!(self, Self::Null | Self::Ref(..) | Self::Array(_))
    }

    pub(crate) fn is_string(&self) -> bool {
        matches!(self, Self::Ref(Class::String, _))
    }

    pub(crate) fn boxed(&self) -> Self {
        match self {
            Self::Prim(kind) => Self::class(kind.class()),
            other => other.clone(),
        }
    }

    pub(crate) fn slots(&self) -> usize {
        match self {
            Self::Prim(kind) => kind.slots(),
            _ => 1,
        }
    }

    /// Whether a reference of this type converts to `to` without a cast. Raw types convert both ways, unchecked.
    pub(crate) fn is_subtype(&self, to: &Self) -> bool {
        match (self, to) {
            (Self::Unknown, _) | (_, Self::Unknown) => true,
            (Self::Null, to) => to.is_reference(),
            (Self::Array(_), Self::Ref(Class::Object, _)) => true,
            (Self::Array(a), Self::Array(b)) => a == b || (a.is_reference() && a.is_subtype(b)),
            (Self::Ref(from, given), Self::Ref(class, wanted)) => {
                from.is(*class)
                    && (given.is_empty() || wanted.is_empty() || given.len() != wanted.len() || given == wanted)
            }
            _ => false,
        }
    }
}

/// As messages have it: `Map<String,Integer>`.
impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown"),
            Self::Void => f.write_str("void"),
            Self::Null => f.write_str("null"),
            Self::Prim(kind) => f.write_str(kind.name()),
            Self::Ref(class, arguments) => {
                f.write_str(match class {
                    Class::Entry => "Map.Entry",
                    Class::Encoder => "Base64.Encoder",
                    Class::Decoder => "Base64.Decoder",
                    class => class.name(),
                })?;
                if let Some((first, rest)) = arguments.split_first() {
                    write!(f, "<{first}")?;
                    rest.iter().try_for_each(|other| write!(f, ",{other}"))?;
                    f.write_str(">")?;
                }
                Ok(())
            }
            Self::Array(of) => write!(f, "{of}[]"),
        }
    }
}
