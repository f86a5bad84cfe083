//! What the parser knows of one text: its tokens, how far it has read, and counts.

use std::cell::{Cell, RefCell};

use crate::keyword::Kind;
use crate::lexical::{LexicalError, Token, Tokens};

/// State that all positions of one text share.
pub(crate) struct Context<'a> {
    /// The text.
    pub(crate) text: &'a str,
    pub(crate) tokens: Tokens,
    pub(crate) furthest: Cell<usize>,
    pub(crate) markers: Cell<usize>,
    pub(crate) operators: Cell<usize>,
    pub(crate) reported: RefCell<Option<String>>,
}

impl<'a> Context<'a> {
    /// The whole text.
    pub(crate) fn new(text: &'a str, tokens: Tokens) -> Self {
        Self {
            text,
            tokens,
            furthest: Cell::new(0),
            markers: Cell::new(0),
            operators: Cell::new(0),
            reported: RefCell::new(None),
        }
    }

    /// A token by its index; the last token also stands for all indices after it.
    pub(crate) fn token(&self, index: usize) -> Token {
        let all = &self.tokens.all;
        all.get(index).or(all.last()).copied().unwrap_or(Token {
            kind: Kind::End,
            start: 0,
            end: 0,
        })
    }

    /// The index of the last token that the parser read.
    pub(crate) fn furthest(&self) -> usize {
        self.furthest.get().min(self.tokens.all.len().saturating_sub(1))
    }

    /// The lexer's error, if the parser got that far.
    pub(crate) fn lexical_error(&self) -> Option<&LexicalError> {
        self.tokens
            .error
            .as_ref()
            .filter(|_| self.furthest.get() + 1 >= self.tokens.all.len())
    }

    /// The first error that a production reported.
    pub(crate) fn reported(&self) -> Option<String> {
        self.reported.borrow().clone()
    }
}
