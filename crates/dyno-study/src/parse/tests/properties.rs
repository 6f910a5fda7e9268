//! No text makes a diagnostic show a password.

use proptest::prelude::*;

use crate::diagnostic::render;
use crate::fixture::{FULL_STUDY, vocabulary};
use crate::parse;

proptest! {
    #[test]
    fn no_password_is_shown(prefix in "[a-z =.'\"\\[\\]]{0,8}", user in "[a-z]{0,4}") {
        let line = format!("{prefix}url = \"mysql://{user}:SECRET@host\"");
        let source = FULL_STUDY.replace("url = \"postgresql://me:secret@host:5432/db\"", &line);
        if let Err(diagnostics) = parse(&source, &vocabulary()) {
            let text = render("study.toml", &source, &diagnostics);
            prop_assert!(!text.contains("SECRET"), "{text}");
            let debug = format!("{diagnostics:?}");
            prop_assert!(!debug.contains("SECRET"), "a password in a diagnostic");
        }
    }
}
