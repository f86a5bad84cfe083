//! Filters, conditions and values in messages.

use super::bytes::{Decoder, Encoder, tags};
use super::error::DecodeError;
use super::limits::{FILTER_LEVELS_MAX, FILTERS_MAX, Limit, OPERANDS_MAX};
use crate::command::{Comparison, Filter, FilterTarget, Predicate, Value};
use crate::schema::analysis::{Analysis, LetterCase, Tokens};
use crate::schema::words::Language;

tags!(comparison, Comparison, "comparison", {
    1 = Comparison::Eq,
    2 = Comparison::Neq,
    3 = Comparison::Lt,
    4 = Comparison::Lte,
    5 = Comparison::Gt,
    6 = Comparison::Gte,
    7 = Comparison::In,
    8 = Comparison::Contains,
    9 = Comparison::ContainsKey,
    10 = Comparison::Like,
});

tags!(letter_case, LetterCase, "letter case", {
    1 = LetterCase::Kept,
    2 = LetterCase::Lower,
    3 = LetterCase::Upper,
});

/// How many nodes a filter has so far, and how deep the present one lies.
struct Size {
    nodes: usize,
    level: usize,
}

impl Size {
    /// The node beside or below, or the bound that it breaks.
    fn next(&mut self) -> Result<(), (Limit, usize)> {
        self.nodes += 1;
        for (limit, found) in [(FILTERS_MAX, self.nodes), (FILTER_LEVELS_MAX, self.level)] {
            if found > limit.most {
                return Err((limit, found));
            }
        }
        Ok(())
    }
}

impl Encoder {
    pub(super) fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.u8(1),
            Value::Unset => self.u8(2),
            Value::Bytes(bytes) => {
                self.u8(3);
                self.bytes(bytes);
            }
        }
    }

    fn language(&mut self, language: Language) {
        self.u16(u16::from_be_bytes(language.letters()));
    }

    fn analysis(&mut self, analysis: &Analysis) {
        let Analysis {
            tokens,
            case,
            normalize,
            ascii,
            skips,
            stems,
        } = analysis;
        match tokens {
            Tokens::Whole => self.u8(1),
            Tokens::Words => self.u8(2),
            Tokens::Delimited(delimiter) => {
                self.u8(3);
                self.u32(u32::from(*delimiter));
            }
        }
        self.letter_case(*case);
        self.bool(*normalize);
        self.bool(*ascii);
        self.option(*skips, Self::language);
        self.option(*stems, Self::language);
    }

    fn target(&mut self, target: &FilterTarget) {
        match target {
            FilterTarget::Column(place) => {
                self.u8(1);
                self.column(*place);
            }
            FilterTarget::Element(place, element) => {
                self.u8(2);
                self.column(*place);
                self.value(element);
            }
            FilterTarget::Field(place, field) => {
                self.u8(3);
                self.column(*place);
                self.number(*field);
            }
            FilterTarget::Analysed(place, analysis) => {
                self.u8(4);
                self.column(*place);
                self.analysis(analysis);
            }
            FilterTarget::Tuple(places) => {
                self.u8(5);
                self.columns(places);
            }
            FilterTarget::Token => self.u8(6),
        }
    }

    pub(super) fn predicate(&mut self, predicate: &Predicate) {
        let Predicate {
            target,
            comparison,
            operands,
            ty,
        } = predicate;
        self.target(target);
        self.comparison(*comparison);
        self.list(OPERANDS_MAX, operands, Self::value);
        self.cql_type(ty);
    }

    pub(super) fn filter(&mut self, filter: &Filter) {
        self.node(filter, &mut Size { nodes: 0, level: 1 });
    }

    fn node(&mut self, filter: &Filter, size: &mut Size) {
        if let Err((limit, found)) = size.next() {
            self.check(limit, found);
            return;
        }
        size.level += 1;
        match filter {
            Filter::Test(predicate) => {
                self.u8(1);
                self.predicate(predicate);
            }
            Filter::All(several) => {
                self.u8(2);
                self.list(FILTERS_MAX, several, |encoder, one| encoder.node(one, size));
            }
            Filter::Any(several) => {
                self.u8(3);
                self.list(FILTERS_MAX, several, |encoder, one| encoder.node(one, size));
            }
            Filter::Not(one) => {
                self.u8(4);
                self.node(one, size);
            }
        }
        size.level -= 1;
    }
}

impl Decoder {
    pub(super) fn value(&mut self) -> Result<Value, DecodeError> {
        match self.u8()? {
            1 => Ok(Value::Null),
            2 => Ok(Value::Unset),
            3 => self.bytes().map(Value::Bytes),
            found => Err(DecodeError::Tag { of: "value", found }),
        }
    }

    fn language(&mut self) -> Result<Language, DecodeError> {
        Ok(Language::of_letters(self.u16()?.to_be_bytes()))
    }

    fn analysis(&mut self) -> Result<Analysis, DecodeError> {
        Ok(Analysis {
            tokens: match self.u8()? {
                1 => Tokens::Whole,
                2 => Tokens::Words,
                3 => Tokens::Delimited(char::from_u32(self.u32()?).ok_or(DecodeError::Text)?),
                found => return Err(DecodeError::Tag { of: "tokens", found }),
            },
            case: self.letter_case()?,
            normalize: self.bool()?,
            ascii: self.bool()?,
            skips: self.option(Self::language)?,
            stems: self.option(Self::language)?,
        })
    }

    fn target(&mut self) -> Result<FilterTarget, DecodeError> {
        Ok(match self.u8()? {
            1 => FilterTarget::Column(self.column()?),
            2 => FilterTarget::Element(self.column()?, self.value()?),
            3 => FilterTarget::Field(self.column()?, self.number()?),
            4 => FilterTarget::Analysed(self.column()?, self.analysis()?),
            5 => FilterTarget::Tuple(self.columns()?),
            6 => FilterTarget::Token,
            found => {
                return Err(DecodeError::Tag {
                    of: "target of a filter",
                    found,
                });
            }
        })
    }

    pub(super) fn predicate(&mut self) -> Result<Predicate, DecodeError> {
        Ok(Predicate {
            target: self.target()?,
            comparison: self.comparison()?,
            operands: self.list(OPERANDS_MAX, Self::value)?,
            ty: self.cql_type()?,
        })
    }

    pub(super) fn filter(&mut self) -> Result<Filter, DecodeError> {
        self.node(&mut Size { nodes: 0, level: 1 })
    }

    fn node(&mut self, size: &mut Size) -> Result<Filter, DecodeError> {
        size.next().map_err(|(limit, found)| DecodeError::TooMany {
            items: limit.items,
            found,
            most: limit.most,
        })?;
        size.level += 1;
        let filter = match self.u8()? {
            1 => Filter::Test(self.predicate()?),
            2 => Filter::All(self.list(FILTERS_MAX, |decoder| decoder.node(size))?),
            3 => Filter::Any(self.list(FILTERS_MAX, |decoder| decoder.node(size))?),
            4 => Filter::Not(Box::new(self.node(size)?)),
            found => return Err(DecodeError::Tag { of: "filter", found }),
        };
        size.level -= 1;
        Ok(filter)
    }
}
