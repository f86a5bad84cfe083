//! The value of a `Matcher`.

use std::sync::Arc;

use super::Text;
use crate::regex::Pattern;

/// A pattern at work on a text.
#[derive(Clone, Debug)]
pub(crate) struct Matcher {
    pub(crate) pattern: Arc<Pattern>,
    pub(crate) units: Text,
    /// The ends of each group; empty where the last match failed, or none was tried.
    pub(crate) groups: Vec<Option<usize>>,
    /// Where the last match ended.
    pub(crate) last: usize,
    /// How far the text was appended.
    pub(crate) appended: usize,
}
