//! Parses tokens into statements. Java outside the subset is rejected here, by the name of the construct.

mod expression;

use std::sync::Arc;

use crate::error::{CompileError, Mistake};
use crate::lexer::{Kind, Token};
use crate::syntax::{Catch, Declared, Expr, ExprKind, Group, Stmt, StmtKind, TypeText, Word};

/// Maximum nesting of statements, expressions and types, in levels. Every function that walks a tree recurses this
/// deep.
pub(crate) const NESTING_LEVELS_MAX: u32 = 100;

type Parsed<T> = Result<T, CompileError>;

pub(crate) struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
    depth: u32,
}

const PRIMITIVES: [&str; 8] = ["boolean", "byte", "short", "char", "int", "long", "float", "double"];

const KEYWORDS: [&str; 53] = [
    "abstract",
    "assert",
    "boolean",
    "break",
    "byte",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extends",
    "final",
    "finally",
    "float",
    "for",
    "goto",
    "if",
    "implements",
    "import",
    "instanceof",
    "int",
    "interface",
    "long",
    "native",
    "new",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "short",
    "static",
    "strictfp",
    "super",
    "switch",
    "synchronized",
    "this",
    "throw",
    "throws",
    "transient",
    "try",
    "void",
    "volatile",
    "while",
    "true",
    "false",
    "null",
];

pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

static END: Token = Token {
    kind: Kind::End,
    line: 0,
};

impl<'t> Parser<'t> {
    pub(crate) fn new(tokens: &'t [Token]) -> Self {
        Self {
            tokens,
            at: 0,
            depth: 0,
        }
    }

    /// The whole body.
    pub(crate) fn body(mut self) -> Parsed<Vec<Stmt>> {
        let mut statements = Vec::new();
        while *self.kind() != Kind::End {
            statements.push(self.statement()?);
        }
        Ok(statements)
    }

    fn token_at(&self, ahead: usize) -> &'t Token {
        self.tokens
            .get(self.at + ahead)
            .or_else(|| self.tokens.last())
            .unwrap_or(&END)
    }

    fn kind(&self) -> &'t Kind {
        &self.token_at(0).kind
    }

    fn line(&self) -> u32 {
        self.token_at(0).line
    }

    fn fail<T>(&self, what: Mistake) -> Parsed<T> {
        Err(CompileError::one(self.line(), what))
    }

    fn unsupported<T>(&self, construct: &'static str) -> Parsed<T> {
        self.fail(Mistake::Unsupported(construct))
    }

    /// This token, as messages quote it.
    fn found(&self) -> String {
        match self.kind() {
            Kind::Word(word) => word.to_string(),
            Kind::Sign(sign) => (*sign).to_owned(),
            Kind::Integer { digits, .. } => digits.to_string(),
            Kind::Double(value) => value.to_string(),
            Kind::Float(value) => value.to_string(),
            Kind::Char(_) => "'".to_owned(),
            Kind::Text(text) => format!("\"{}\"", String::from_utf16_lossy(text)),
            Kind::End => String::new(),
        }
    }

    fn unexpected<T>(&self) -> Parsed<T> {
        if *self.kind() == Kind::End {
            return self.fail(Mistake::End);
        }
        self.fail(Mistake::Syntax(self.found()))
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.kind(), Kind::Sign(found) if *found == sign)
    }

    fn is_sign_at(&self, ahead: usize, sign: &str) -> bool {
        matches!(&self.token_at(ahead).kind, Kind::Sign(found) if *found == sign)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.kind(), Kind::Word(found) if **found == *word)
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let is = self.is_sign(sign);
        self.at += usize::from(is);
        is
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        self.at += usize::from(is);
        is
    }

    fn expect(&mut self, sign: &'static str) -> Parsed<()> {
        if self.take_sign(sign) {
            return Ok(());
        }
        if *self.kind() == Kind::End {
            return self.fail(Mistake::End);
        }
        self.fail(Mistake::Expected(sign, self.found()))
    }

    /// A name that is no keyword.
    fn name(&mut self) -> Parsed<Word> {
        match self.kind() {
            Kind::Word(word) if !is_keyword(word) => {
                self.at += 1;
                Ok(Arc::clone(word))
            }
            _ => self.unexpected(),
        }
    }

    /// Runs `parse` one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.deepen(1)?;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Stops where the tree would become too deep.
    fn deepen(&mut self, levels: u32) -> Parsed<()> {
        self.depth += levels;
        if self.depth > NESTING_LEVELS_MAX {
            return self.fail(Mistake::Nesting {
                levels_max: NESTING_LEVELS_MAX,
            });
        }
        Ok(())
    }

    fn block(&mut self) -> Parsed<Vec<Stmt>> {
        self.expect("{")?;
        let mut statements = Vec::new();
        while !self.take_sign("}") {
            statements.push(self.statement()?);
        }
        Ok(statements)
    }

    fn statement(&mut self) -> Parsed<Stmt> {
        self.nested(|parser| {
            let line = parser.line();
            Ok(Stmt {
                line,
                kind: parser.statement_kind()?,
            })
        })
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each word that begins a statement")]
    fn statement_kind(&mut self) -> Parsed<StmtKind> {
        if self.is_sign("{") {
            return self.block().map(StmtKind::Block);
        }
        if self.take_sign(";") {
            return Ok(StmtKind::Empty);
        }
        if self.is_sign("@") {
            return self.unsupported("Annotations are");
        }
        let Kind::Word(word) = self.kind() else {
            return self.expression_statement();
        };
        match &**word {
            "if" => self.if_statement(),
            "while" => {
                self.at += 1;
                let condition = self.parenthesized()?;
                Ok(StmtKind::While {
                    condition,
                    body: Box::new(self.statement()?),
                })
            }
            "do" => {
                self.at += 1;
                let body = Box::new(self.statement()?);
                if !self.take_word("while") {
                    return self.unexpected();
                }
                let condition = self.parenthesized()?;
                self.expect(";")?;
                Ok(StmtKind::Do { body, condition })
            }
            "for" => self.for_statement(),
            "switch" => self.switch_statement(),
            "try" => self.try_statement(),
            "return" => {
                self.at += 1;
                if self.take_sign(";") {
                    return Ok(StmtKind::Return(None));
                }
                let value = self.expression()?;
                self.expect(";")?;
                Ok(StmtKind::Return(Some(value)))
            }
            "throw" => {
                self.at += 1;
                let value = self.expression()?;
                self.expect(";")?;
                Ok(StmtKind::Throw(value))
            }
            "break" | "continue" => {
                let is_break = &**word == "break";
                self.at += 1;
                let label = if self.is_sign(";") { None } else { Some(self.name()?) };
                self.expect(";")?;
                Ok(if is_break {
                    StmtKind::Break(label)
                } else {
                    StmtKind::Continue(label)
                })
            }
            "class" | "interface" | "enum" | "abstract" | "static" => self.unsupported("Classes of one's own are"),
            "synchronized" => self.unsupported("synchronized is"),
            "assert" => self.unsupported("assert is"),
            _ if self.is_sign_at(1, ":") && !is_keyword(word) => {
                let label = self.name()?;
                self.at += 1;
                Ok(StmtKind::Labelled {
                    label,
                    body: Box::new(self.statement()?),
                })
            }
            _ if self.is_declaration() => {
                let declared = self.declaration()?;
                self.expect(";")?;
                Ok(declared)
            }
            _ => self.expression_statement(),
        }
    }

    fn parenthesized(&mut self) -> Parsed<Expr> {
        self.expect("(")?;
        let inner = self.expression()?;
        self.expect(")")?;
        Ok(inner)
    }

    fn expression_statement(&mut self) -> Parsed<StmtKind> {
        let statement = self.bare_statement()?;
        self.expect(";")?;
        Ok(statement.kind)
    }

    /// An expression that may be a statement: an assignment, an increment, a call, a constructor call.
    fn bare_statement(&mut self) -> Parsed<Stmt> {
        let line = self.line();
        let expression = self.expression()?;
        match &expression.kind {
            ExprKind::Assign { .. }
            | ExprKind::Compound { .. }
            | ExprKind::Step { .. }
            | ExprKind::Call { .. }
            | ExprKind::New { .. } => Ok(Stmt {
                line,
                kind: StmtKind::Expr(expression),
            }),
            _ => Err(CompileError::one(line, Mistake::NotAStatement)),
        }
    }

    fn if_statement(&mut self) -> Parsed<StmtKind> {
        self.at += 1;
        let condition = self.parenthesized()?;
        let then = Box::new(self.statement()?);
        let otherwise = if self.take_word("else") {
            Some(Box::new(self.statement()?))
        } else {
            None
        };
        Ok(StmtKind::If {
            condition,
            then,
            otherwise,
        })
    }

    fn for_statement(&mut self) -> Parsed<StmtKind> {
        self.at += 1;
        self.expect("(")?;
        if self.is_declaration() {
            let before = self.at;
            let is_final = self.take_word("final");
            let ty = self.type_text()?;
            let name = self.name()?;
            if self.take_sign(":") {
                let of = self.expression()?;
                self.expect(")")?;
                let body = Box::new(self.statement()?);
                return Ok(StmtKind::ForEach {
                    is_final,
                    ty,
                    name,
                    of,
                    body,
                });
            }
            self.at = before;
        }
        let line = self.line();
        let start = if self.is_sign(";") {
            Vec::new()
        } else if self.is_declaration() {
            vec![Stmt {
                line,
                kind: self.declaration()?,
            }]
        } else {
            self.bare_statements()?
        };
        self.expect(";")?;
        let condition = if self.is_sign(";") {
            None
        } else {
            Some(self.expression()?)
        };
        self.expect(";")?;
        let step = if self.is_sign(")") {
            Vec::new()
        } else {
            self.bare_statements()?
        };
        self.expect(")")?;
        Ok(StmtKind::For {
            start,
            condition,
            step,
            body: Box::new(self.statement()?),
        })
    }

    fn bare_statements(&mut self) -> Parsed<Vec<Stmt>> {
        let mut statements = vec![self.bare_statement()?];
        while self.take_sign(",") {
            statements.push(self.bare_statement()?);
        }
        Ok(statements)
    }

    fn switch_statement(&mut self) -> Parsed<StmtKind> {
        self.at += 1;
        let on = self.parenthesized()?;
        self.expect("{")?;
        let mut groups: Vec<Group> = Vec::new();
        while !self.take_sign("}") {
            let label = if self.take_word("default") {
                None
            } else if self.take_word("case") {
                Some(self.conditional()?)
            } else {
                return self.unexpected();
            };
            if self.is_sign("->") {
                return self.unsupported("Arrows in a switch are");
            }
            self.expect(":")?;
            let mut body = Vec::new();
            while !(self.is_sign("}") || self.is_word("case") || self.is_word("default")) {
                body.push(self.statement()?);
            }
            match groups.last_mut() {
                Some(last) if last.body.is_empty() => {
                    last.labels.push(label);
                    last.body = body;
                }
                _ => groups.push(Group {
                    labels: vec![label],
                    body,
                }),
            }
        }
        Ok(StmtKind::Switch { on, groups })
    }

    fn try_statement(&mut self) -> Parsed<StmtKind> {
        self.at += 1;
        if self.is_sign("(") {
            return self.unsupported("try with resources is");
        }
        let body = self.block()?;
        let mut catches = Vec::new();
        while self.take_word("catch") {
            self.expect("(")?;
            self.take_word("final");
            let mut types = vec![self.type_text()?];
            while self.take_sign("|") {
                types.push(self.type_text()?);
            }
            let name = self.name()?;
            self.expect(")")?;
            catches.push(Catch {
                types,
                name,
                body: self.block()?,
            });
        }
        let finally = if self.take_word("finally") {
            Some(self.block()?)
        } else {
            None
        };
        if catches.is_empty() && finally.is_none() {
            return self.unexpected();
        }
        Ok(StmtKind::Try { body, catches, finally })
    }

    /// Whether a declaration begins here: a type, then a name.
    fn is_declaration(&mut self) -> bool {
        if self.is_word("final") {
            return true;
        }
        let (at, depth) = (self.at, self.depth);
        let is = self.type_text().is_ok() && matches!(self.kind(), Kind::Word(word) if !is_keyword(word));
        (self.at, self.depth) = (at, depth);
        is
    }

    fn declaration(&mut self) -> Parsed<StmtKind> {
        let is_final = self.take_word("final");
        let ty = self.type_text()?;
        let mut declared = Vec::new();
        loop {
            let line = self.line();
            let name = self.name()?;
            let dimensions = self.dimensions()?;
            let value = match self.take_sign("=") {
                true if self.is_sign("{") => Some(self.elements(None)?),
                true => Some(self.expression()?),
                false => None,
            };
            declared.push(Declared {
                line,
                name,
                dimensions,
                value,
            });
            if !self.take_sign(",") {
                return Ok(StmtKind::Local { is_final, ty, declared });
            }
        }
    }

    /// `[][]`
    fn dimensions(&mut self) -> Parsed<u32> {
        let mut dimensions = 0;
        while self.is_sign("[") && self.is_sign_at(1, "]") {
            self.at += 2;
            dimensions += 1;
            if dimensions > NESTING_LEVELS_MAX {
                return self.fail(Mistake::Nesting {
                    levels_max: NESTING_LEVELS_MAX,
                });
            }
        }
        Ok(dimensions)
    }

    /// A type with its dimensions.
    fn type_text(&mut self) -> Parsed<TypeText> {
        let mut ty = self.element_type()?;
        ty.dimensions = self.dimensions()?;
        Ok(ty)
    }

    /// A type without dimensions.
    fn element_type(&mut self) -> Parsed<TypeText> {
        self.nested(|parser| {
            let line = parser.line();
            let mut ty = TypeText {
                line,
                name: String::new(),
                arguments: Vec::new(),
                is_diamond: false,
                dimensions: 0,
            };
            if let Kind::Word(word) = parser.kind()
                && PRIMITIVES.contains(&&**word)
            {
                parser.at += 1;
                ty.name = word.to_string();
                return Ok(ty);
            }
            if parser.is_sign("?") {
                return parser.unsupported("Wildcards are");
            }
            ty.name = parser.name()?.to_string();
            while parser.is_sign(".") && matches!(&parser.token_at(1).kind, Kind::Word(word) if !is_keyword(word)) {
                parser.at += 1;
                ty.name.push('.');
                ty.name.push_str(&parser.name()?);
            }
            if parser.take_sign("<") {
                if parser.take_sign(">") {
                    ty.is_diamond = true;
                    return Ok(ty);
                }
                ty.arguments.push(parser.type_text()?);
                while parser.take_sign(",") {
                    ty.arguments.push(parser.type_text()?);
                }
                parser.expect(">")?;
            }
            Ok(ty)
        })
    }
}
