//! The prepared statements, as `system.prepared_statements` lists them.

use super::Requests;
use crate::server::prepared::Statements;
use crate::server::secrets;
use helenus_engine::views::live::PreparedText;

impl Requests {
    /// The prepared statements of all nodes, without secrets. Those that a change of the schema has invalidated are evicted first: their
    /// next EXECUTE would evict them.
    pub(crate) fn prepared_texts(&self) -> Vec<PreparedText> {
        let all = std::iter::once(&self.statements).chain(&self.statements_of_others);
        let mut texts: Vec<PreparedText> = all.flat_map(|statements| self.texts_of(statements)).collect();
        texts.sort_unstable_by_key(|text| text.id);
        texts.dedup_by_key(|text| text.id);
        texts
    }

    fn texts_of(&self, statements: &Statements) -> Vec<PreparedText> {
        let entries = statements.all().into_iter();
        let current = entries.filter_map(|entry| self.current(statements, entry));
        current
            .map(|entry| PreparedText {
                id: entry.prepared.id,
                keyspace: entry.keyspace.as_deref().map(str::to_owned),
                text: secrets::in_trace(&entry.text).unwrap_or_else(|| entry.text.as_ref().to_owned()),
            })
            .collect()
    }
}
