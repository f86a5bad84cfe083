//! `system_views.sai_column_indexes`.

use super::super::cells::Cells;
use super::super::view::{Sources, View};
use super::indexes::indexes;
use helenus_schema::schema::IndexFamily;
use helenus_schema::schema::encode::{boolean, text};
use helenus_types::types::{CqlType, Native};

pub(super) const VIEW: View = View::of("system_views", "sai_column_indexes", sai_column_indexes);

/// Storage-attached indexes, including those under construction.
fn sai_column_indexes(sources: Sources<'_>) -> Vec<Cells> {
    let of_sai = indexes(sources)
        .into_iter()
        .filter(|placed| placed.index.family() == Some(IndexFamily::Sai));
    of_sai
        .map(|placed| {
            let column = placed
                .index
                .target_column()
                .and_then(|(_, name)| placed.table.column(&name));
            let of_texts = |ty: &CqlType| matches!(ty, CqlType::Native(Native::Text | Native::Ascii));
            let target = placed.index.target(placed.table);
            let option = |name: &str| placed.index.options.get(name).map(String::as_str);
            let analysed: Vec<String> = ["case_sensitive", "normalize", "ascii"]
                .into_iter()
                .filter_map(|name| Some(format!("{name}={}", option(name)?)))
                .collect();
            let analyzer = if analysed.is_empty() {
                "NoOpAnalyzer{}".to_owned()
            } else {
                format!("NonTokenizingAnalyzer{{{}}}", analysed.join(", "))
            };
            Cells::new()
                .set("keyspace_name", text(&placed.table.keyspace))
                .set("index_name", text(&placed.index.name))
                .set("table_name", text(&placed.table.name))
                .set_if("column_name", column.map(|(_, column)| text(&column.name)))
                .set("is_queryable", boolean(placed.build.is_none()))
                .set("is_building", boolean(placed.build.is_some()))
                .set("is_string", boolean(target.is_some_and(|target| of_texts(target.ty()))))
                .set("analyzer", text(&analyzer))
        })
        .collect()
}
