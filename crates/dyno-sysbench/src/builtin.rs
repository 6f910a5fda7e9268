//! The scripts that come with the tool: Dyno's own, with sysbench's options and statements.

#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    pub name: &'static str,
    pub text: &'static str,
}

/// All of them, in the order of help texts.
pub const BUILT_IN: [BuiltIn; 11] = [
    BuiltIn { name: "oltp_read_write", text: include_str!("scripts/oltp_read_write.lua") },
    BuiltIn { name: "oltp_read_only", text: include_str!("scripts/oltp_read_only.lua") },
    BuiltIn { name: "oltp_write_only", text: include_str!("scripts/oltp_write_only.lua") },
    BuiltIn { name: "oltp_point_select", text: include_str!("scripts/oltp_point_select.lua") },
    BuiltIn { name: "oltp_insert", text: include_str!("scripts/oltp_insert.lua") },
    BuiltIn { name: "oltp_delete", text: include_str!("scripts/oltp_delete.lua") },
    BuiltIn { name: "oltp_update_index", text: include_str!("scripts/oltp_update_index.lua") },
    BuiltIn {
        name: "oltp_update_non_index",
        text: include_str!("scripts/oltp_update_non_index.lua"),
    },
    BuiltIn { name: "bulk_insert", text: include_str!("scripts/bulk_insert.lua") },
    BuiltIn {
        name: "select_random_points",
        text: include_str!("scripts/select_random_points.lua"),
    },
    BuiltIn {
        name: "select_random_ranges",
        text: include_str!("scripts/select_random_ranges.lua"),
    },
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
