//! Expressions, by precedence.

use super::{PRIMITIVES, Parsed, Parser, is_keyword};
use crate::error::Mistake;
use crate::lexer::Kind;
use crate::syntax::{Expr, ExprKind, TypeText};

/// Binary operators and their precedence; `instanceof` has that of the comparisons.
const BINARY: [(&str, u8); 19] = [
    ("||", 1),
    ("&&", 2),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("==", 6),
    ("!=", 6),
    ("<=", 7),
    (">=", 7),
    ("<", 7),
    (">", 7),
    ("<<", 8),
    (">>>", 8),
    (">>", 8),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];
const COMPARISON: u8 = 7;

const COMPOUND: [(&str, &str); 11] = [
    ("+=", "+"),
    ("-=", "-"),
    ("*=", "*"),
    ("/=", "/"),
    ("%=", "%"),
    ("&=", "&"),
    ("|=", "|"),
    ("^=", "^"),
    ("<<=", "<<"),
    (">>=", ">>"),
    (">>>=", ">>>"),
];

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        self.nested(Self::assignment)
    }

    fn assignment(&mut self) -> Parsed<Expr> {
        if self.is_lambda() {
            return self.unsupported("Lambda expressions are");
        }
        let place = self.conditional()?;
        let line = place.line;
        if self.take_sign("=") {
            let value = Box::new(self.expression()?);
            return Ok(Expr {
                line,
                kind: ExprKind::Assign {
                    place: Box::new(place),
                    value,
                },
            });
        }
        let Some((written, operator)) = self.compound_operator() else {
            return Ok(place);
        };
        self.at += written;
        let value = Box::new(self.expression()?);
        Ok(Expr {
            line,
            kind: ExprKind::Compound {
                place: Box::new(place),
                operator,
                value,
            },
        })
    }

    /// The operator of a compound assignment, and its number of tokens.
    fn compound_operator(&self) -> Option<(usize, &'static str)> {
        let (signs, written) = self.angles("=");
        let named = |sign: &str| COMPOUND.iter().find(|(compound, _)| *compound == sign);
        if signs > 1
            && let Some((_, operator)) = named(&written)
        {
            return Some((signs, operator));
        }
        match self.kind() {
            Kind::Sign(sign) => named(sign).map(|(_, operator)| (1, *operator)),
            _ => None,
        }
    }

    /// Consecutive `>` tokens, which the lexer keeps apart, and an `end` after them: the number of tokens, and their
    /// text.
    fn angles(&self, end: &str) -> (usize, String) {
        let mut count = 0;
        while count < 3 && self.is_sign_at(count, ">") {
            count += 1;
        }
        let mut text = ">".repeat(count);
        if count > 0 && !end.is_empty() && self.is_sign_at(count, end) {
            text.push_str(end);
            count += 1;
        }
        (count, text)
    }

    fn is_lambda(&self) -> bool {
        if matches!(self.kind(), Kind::Word(_)) && self.is_sign_at(1, "->") {
            return true;
        }
        if !self.is_sign("(") {
            return false;
        }
        // `(a, b) ->`: only names, commas and types inside.
        let mut ahead = 1;
        let mut open = 1;
        while open > 0 {
            match &self.token_at(ahead).kind {
                Kind::Sign("(") => open += 1,
                Kind::Sign(")") => open -= 1,
                Kind::Sign(";" | "{") | Kind::End => return false,
                _ => {}
            }
            ahead += 1;
        }
        self.is_sign_at(ahead, "->")
    }

    pub(super) fn conditional(&mut self) -> Parsed<Expr> {
        let condition = self.binary(1)?;
        if !self.take_sign("?") {
            return Ok(condition);
        }
        let line = condition.line;
        let then = Box::new(self.expression()?);
        self.expect(":")?;
        if self.is_lambda() {
            return self.unsupported("Lambda expressions are");
        }
        let otherwise = Box::new(self.nested(Self::conditional)?);
        Ok(Expr {
            line,
            kind: ExprKind::Conditional {
                condition: Box::new(condition),
                then,
                otherwise,
            },
        })
    }

    /// The binary operator here: itself, its precedence, its number of tokens.
    fn operator(&self) -> Option<(&'static str, u8, usize)> {
        let named = |sign: &str| BINARY.iter().find(|(operator, _)| *operator == sign);
        if self.is_sign(">") {
            let (signs, written) = self.angles("");
            if self.is_sign_at(signs, "=") {
                // `>=`, or a compound assignment.
                return (signs == 1).then_some((">=", COMPARISON, 2));
            }
            let (operator, level) = named(&written)?;
            return Some((operator, *level, signs));
        }
        match self.kind() {
            Kind::Sign(sign) => named(sign).map(|(operator, level)| (*operator, *level, 1)),
            _ => None,
        }
    }

    fn binary(&mut self, least: u8) -> Parsed<Expr> {
        let mut left = self.unary()?;
        let depth = self.depth;
        loop {
            let line = left.line;
            if self.is_word("instanceof") && least <= COMPARISON {
                self.at += 1;
                let ty = self.type_text()?;
                if matches!(self.kind(), Kind::Word(word) if !is_keyword(word)) {
                    return self.unsupported("Patterns in instanceof are");
                }
                left = Expr {
                    line,
                    kind: ExprKind::InstanceOf { of: Box::new(left), ty },
                };
                continue;
            }
            let Some((operator, level, signs)) = self.operator().filter(|(_, level, _)| *level >= least) else {
                self.depth = depth;
                return Ok(left);
            };
            self.at += signs;
            // Each operator of a chain makes the tree one level deeper.
            self.deepen(1)?;
            let right = self.nested(|parser| parser.binary(level + 1))?;
            let kind = ExprKind::Binary {
                operator,
                left: Box::new(left),
                right: Box::new(right),
            };
            left = Expr { line, kind };
        }
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let line = self.line();
        let sign = match self.kind() {
            Kind::Sign(sign @ ("-" | "+" | "!" | "~" | "++" | "--")) => *sign,
            Kind::Sign("(") if self.is_cast() => {
                self.at += 1;
                let ty = self.type_text()?;
                if self.is_sign("&") {
                    return self.unsupported("Casts to several types are");
                }
                self.expect(")")?;
                let of = Box::new(self.nested(Self::unary)?);
                return Ok(Expr {
                    line,
                    kind: ExprKind::Cast { ty, of },
                });
            }
            _ => return self.postfix(),
        };
        self.at += 1;
        let of = Box::new(self.nested(Self::unary)?);
        let kind = match sign {
            "++" => ExprKind::Step {
                place: of,
                up: true,
                prefix: true,
            },
            "--" => ExprKind::Step {
                place: of,
                up: false,
                prefix: true,
            },
            operator => ExprKind::Unary { operator, of },
        };
        Ok(Expr { line, kind })
    }

    /// Whether `(` opens a cast: a type and `)`, then something that cannot be an operator.
    fn is_cast(&mut self) -> bool {
        let (at, depth) = (self.at, self.depth);
        self.at += 1;
        let is_primitive = matches!(self.kind(), Kind::Word(word) if PRIMITIVES.contains(&&**word));
        let mut has_array = self.type_text().map(|ty| ty.dimensions > 0);
        // `(a & b)` without an operand after it is an operation, not a cast to two types.
        while has_array.is_ok() && self.take_sign("&") {
            has_array = self.type_text().map(|ty| ty.dimensions > 0);
        }
        let is = match has_array {
            Ok(is_array) if self.is_sign(")") => is_array || is_primitive || self.starts_operand(1),
            _ => false,
        };
        (self.at, self.depth) = (at, depth);
        is
    }

    fn starts_operand(&self, ahead: usize) -> bool {
        match &self.token_at(ahead).kind {
            Kind::Word(word) => &**word != "instanceof",
            Kind::Sign(sign) => matches!(*sign, "(" | "!" | "~"),
            Kind::End => false,
            _ => true,
        }
    }

    fn postfix(&mut self) -> Parsed<Expr> {
        let mut of = self.primary()?;
        let depth = self.depth;
        loop {
            let line = of.line;
            if self.is_sign("++") || self.is_sign("--") {
                let up = self.is_sign("++");
                self.at += 1;
                of = Expr {
                    line,
                    kind: ExprKind::Step {
                        place: Box::new(of),
                        up,
                        prefix: false,
                    },
                };
            } else if self.take_sign("[") {
                let at = Box::new(self.expression()?);
                self.expect("]")?;
                of = Expr {
                    line,
                    kind: ExprKind::Index { of: Box::new(of), at },
                };
            } else if self.is_sign("::") {
                return self.unsupported("Method references are");
            } else if self.take_sign(".") {
                if self.is_sign("<") {
                    return self.unsupported("Type arguments of methods are");
                }
                if self.is_word("class") || self.is_word("this") || self.is_word("new") {
                    return self.unexpected();
                }
                let line = self.line();
                let name = self.name()?;
                let of_member = Box::new(of);
                of = if self.is_sign("(") {
                    Expr {
                        line,
                        kind: ExprKind::Call {
                            of: Some(of_member),
                            name,
                            arguments: self.arguments()?,
                        },
                    }
                } else {
                    Expr {
                        line,
                        kind: ExprKind::Field { of: of_member, name },
                    }
                };
            } else {
                self.depth = depth;
                return Ok(of);
            }
            self.deepen(1)?;
        }
    }

    fn arguments(&mut self) -> Parsed<Vec<Expr>> {
        self.expect("(")?;
        let mut arguments = Vec::new();
        if !self.is_sign(")") {
            arguments.push(self.expression()?);
            while self.take_sign(",") {
                arguments.push(self.expression()?);
            }
        }
        self.expect(")")?;
        Ok(arguments)
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let line = self.line();
        let literal = match self.kind() {
            Kind::Integer { digits, decimal, long } => ExprKind::Integer {
                digits: digits.clone(),
                decimal: *decimal,
                long: *long,
            },
            Kind::Double(value) => ExprKind::Double(*value),
            Kind::Float(value) => ExprKind::Float(*value),
            Kind::Char(value) => ExprKind::Char(*value),
            Kind::Text(text) => ExprKind::Text(text.clone()),
            Kind::Sign("(") => {
                self.at += 1;
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Kind::Word(word) => return self.word(line, &word.clone()),
            Kind::Sign(_) | Kind::End => return self.unexpected(),
        };
        self.at += 1;
        Ok(Expr { line, kind: literal })
    }

    fn word(&mut self, line: u32, word: &str) -> Parsed<Expr> {
        let constant = match word {
            "null" => Some(ExprKind::Null),
            "true" => Some(ExprKind::Boolean(true)),
            "false" => Some(ExprKind::Boolean(false)),
            _ => None,
        };
        if let Some(kind) = constant {
            self.at += 1;
            return Ok(Expr { line, kind });
        }
        match word {
            "new" => return self.construction(line),
            "this" | "super" => return self.fail(Mistake::Unsupported("this and super are")),
            "switch" => return self.unsupported("switch as an expression is"),
            _ => {}
        }
        if let Some(ty) = self.class_literal() {
            return Ok(Expr {
                line,
                kind: ExprKind::Class(ty),
            });
        }
        let name = self.name()?;
        let kind = if self.is_sign("(") {
            ExprKind::Call {
                of: None,
                name,
                arguments: self.arguments()?,
            }
        } else {
            ExprKind::Name(name)
        };
        Ok(Expr { line, kind })
    }

    /// `Integer.class`
    fn class_literal(&mut self) -> Option<TypeText> {
        let (at, depth) = (self.at, self.depth);
        let found = self.type_text().ok();
        if found.is_some()
            && self.is_sign(".")
            && matches!(&self.token_at(1).kind, Kind::Word(word) if &**word == "class")
        {
            self.at += 2;
            return found;
        }
        (self.at, self.depth) = (at, depth);
        None
    }

    fn construction(&mut self, line: u32) -> Parsed<Expr> {
        self.at += 1;
        let mut ty = self.element_type()?;
        if self.is_sign("[") {
            let mut sizes = Vec::new();
            while self.is_sign("[") && !self.is_sign_at(1, "]") {
                self.at += 1;
                sizes.push(self.expression()?);
                self.expect("]")?;
            }
            ty.dimensions = u32::try_from(sizes.len())
                .unwrap_or(u32::MAX)
                .saturating_add(self.dimensions()?);
            self.deepen(ty.dimensions)?;
            self.depth -= ty.dimensions;
            if sizes.is_empty() {
                return self.elements(Some(ty));
            }
            return Ok(Expr {
                line,
                kind: ExprKind::NewArray { ty, sizes },
            });
        }
        let arguments = self.arguments()?;
        if self.is_sign("{") {
            return self.unsupported("Classes of one's own are");
        }
        Ok(Expr {
            line,
            kind: ExprKind::New { ty, arguments },
        })
    }

    /// `{a, b}`
    pub(super) fn elements(&mut self, ty: Option<TypeText>) -> Parsed<Expr> {
        let line = self.line();
        self.expect("{")?;
        let mut elements = Vec::new();
        while !self.take_sign("}") {
            let element = if self.is_sign("{") {
                self.nested(|parser| parser.elements(None))?
            } else {
                self.expression()?
            };
            elements.push(element);
            if !self.take_sign(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(Expr {
            line,
            kind: ExprKind::Elements { ty, elements },
        })
    }
}
