//! `system_views.settings`: the effective configuration.

use super::super::cells::Cells;
use super::super::view::View;
use crate::schema::encode::text;

pub(super) const VIEW: View = View::of("system_views", "settings", |sources| {
    let settings = sources.live.settings.iter();
    settings
        .map(|(name, value)| Cells::new().set("name", text(name)).set("value", text(value)))
        .collect()
});
