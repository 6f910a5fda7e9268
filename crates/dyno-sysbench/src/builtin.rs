//! The scripts that come with the tool: Dyno's own, with sysbench's options and statements.

#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    pub name: &'static str,
    pub text: &'static str,
}

const fn script(name: &'static str, text: &'static str) -> BuiltIn {
    BuiltIn { name, text }
}

/// All of them, in the order of help texts.
pub const BUILT_IN: [BuiltIn; 11] = [
    script("oltp_read_write", include_str!("scripts/oltp_read_write.lua")),
    script("oltp_read_only", include_str!("scripts/oltp_read_only.lua")),
    script("oltp_write_only", include_str!("scripts/oltp_write_only.lua")),
    script("oltp_point_select", include_str!("scripts/oltp_point_select.lua")),
    script("oltp_insert", include_str!("scripts/oltp_insert.lua")),
    script("oltp_delete", include_str!("scripts/oltp_delete.lua")),
    script("oltp_update_index", include_str!("scripts/oltp_update_index.lua")),
    script("oltp_update_non_index", include_str!("scripts/oltp_update_non_index.lua")),
    script("bulk_insert", include_str!("scripts/bulk_insert.lua")),
    script("select_random_points", include_str!("scripts/select_random_points.lua")),
    script("select_random_ranges", include_str!("scripts/select_random_ranges.lua")),
];

pub fn built_in(name: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|script| script.name == name)
}

/// The text of a module that scripts may require, where no file has it.
pub fn built_in_module(name: &str) -> Option<&'static str> {
    match name {
        "oltp_common" => Some(include_str!("scripts/oltp_common.lua")),
        name => built_in(name).map(|script| script.text),
    }
}
