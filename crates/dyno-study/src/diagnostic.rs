//! What is wrong with a study file, and where.

use annotate_snippets::{
    AnnotationKind, Element, Level, Renderer, Snippet, normalize_untrusted_str,
};

use dyno_units::{mask_secrets, redact_secrets};

/// Most problems that are rendered: whoever has more begins with these, and each takes a walk
/// through the source.
const SHOWN_MAX: usize = 50;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Bytes of the source text that are meant.
    pub span: std::ops::Range<usize>,
    pub message: String,
    /// What stands beside the caret.
    pub label: String,
    pub help: Option<String>,
}

impl Diagnostic {
    pub fn new(span: std::ops::Range<usize>, message: impl Into<String>) -> Diagnostic {
        Diagnostic { span, message: message.into(), label: String::new(), help: None }
    }

    pub fn with_label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    pub fn with_help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }
}

/// Renders diagnostics as rustc does: file, line, caret, help. Plain text without colour.
///
/// Passwords in URLs are shown as asterisks.
pub fn render(file_name: &str, source: &str, diagnostics: &[Diagnostic]) -> String {
    render_by(&Renderer::plain(), file_name, source, diagnostics)
}

/// The same as [`render`], with the colours of a terminal (ANSI escapes).
pub fn render_coloured(file_name: &str, source: &str, diagnostics: &[Diagnostic]) -> String {
    render_by(&Renderer::styled(), file_name, source, diagnostics)
}

fn render_by(renderer: &Renderer, file_name: &str, source: &str, all: &[Diagnostic]) -> String {
    // As long as the source in bytes, so that the spans still fit.
    let masked = mask_secrets(source);
    let shown = all.iter().take(SHOWN_MAX);
    let mut parts: Vec<String> =
        shown.map(|one| render_one(renderer, file_name, &masked, one)).collect();
    if all.len() > SHOWN_MAX {
        let more = all.len() - SHOWN_MAX;
        parts.push(format!("… and {more} more; fix these first"));
    }
    let mut text = parts.join("\n\n");
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn render_one(renderer: &Renderer, file_name: &str, masked: &str, one: &Diagnostic) -> String {
    let annotation = AnnotationKind::Primary
        .span(clamp(masked, &one.span))
        .label((!one.label.is_empty()).then(|| one_line(&one.label)));
    let snippet = Snippet::source(masked).path(file_name).annotation(annotation);
    let mut group =
        Level::ERROR.primary_title(one_line(&one.message)).element(Element::from(snippet));
    if let Some(help) = &one.help {
        group = group.element(Level::HELP.message(one_line(help)));
    }
    renderer.render(&[group])
}

/// A text that may quote what somebody has written, without control characters and passwords.
fn one_line(text: &str) -> String {
    redact_secrets(&normalize_untrusted_str(text))
}

/// A span inside the text and on the borders of characters, whatever was asked for.
fn clamp(text: &str, span: &std::ops::Range<usize>) -> std::ops::Range<usize> {
    let is_border = |at: &usize| text.is_char_boundary(*at);
    let start = (0..=span.start.min(text.len())).rev().find(is_border).unwrap_or(0);
    let end = (span.end.min(text.len())..=text.len()).find(is_border).unwrap_or(text.len());
    let end = end.max(start);
    start..end
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(source: &str, diagnostic: Diagnostic, expected: Expect) {
        expected.assert_eq(&render("study.toml", source, &[diagnostic]));
    }

    #[test]
    fn no_message_shows_what_may_be_a_password() {
        let diagnostic = Diagnostic::new(10..19, "there is no product `me:pw@h`")
            .with_label("not `me:pw@h`")
            .with_help("did you mean `mysql://me:pw@h`?");
        let text = render("study.toml", "product = \"me:pw@h\"\n", &[diagnostic]);
        assert!(!text.contains("pw") && text.contains("`me:***@h`"), "{text}");
    }

    #[test]
    fn line_caret_label_and_help() {
        check(
            "title = \"x\"\nprodct = 1\n",
            Diagnostic::new(12..18, "unknown key `prodct`")
                .with_label("no such key")
                .with_help("did you mean `product`?"),
            expect![[r#"
                error: unknown key `prodct`
                 --> study.toml:2:1
                  |
                2 | prodct = 1
                  | ^^^^^^ no such key
                  |
                  = help: did you mean `product`?
            "#]],
        );
    }

    #[test]
    fn password_in_the_line_is_masked_and_the_caret_stays() {
        check(
            "url = \"mysql://me:s3cret@host\" # x\nversion = 5",
            Diagnostic::new(6..31, "bad").with_label("here"),
            expect![[r#"
                error: bad
                 --> study.toml:1:7
                  |
                1 | url = "mysql://me:******@host" # x
                  |       ^^^^^^^^^^^^^^^^^^^^^^^^^ here
            "#]],
        );
    }

    #[test]
    fn span_outside_the_text_is_moved_into_it() {
        check(
            "é",
            Diagnostic::new(1..9, "bad"),
            expect![[r#"
            error: bad
             --> study.toml:1:1
              |
            1 | é
              | ^
        "#]],
        );
        check(
            "",
            Diagnostic::new(0..0, "missing"),
            expect![[r#"
            error: missing
             --> study.toml:1:1
              |
            1 |
              | ^
        "#]],
        );
    }

    #[test]
    fn a_flood_is_cut() {
        let one = Diagnostic::new(0..1, "wrong");
        let count = |n: usize| {
            let text = render("study.toml", "a b", &vec![one.clone(); n]);
            (text.matches("error: ").count(), text.contains("… and 7 more"))
        };
        assert_eq!(count(SHOWN_MAX), (SHOWN_MAX, false));
        assert_eq!(count(SHOWN_MAX + 7), (SHOWN_MAX, true));
    }

    #[test]
    fn several_are_set_apart_and_none_is_nothing() {
        let two = [Diagnostic::new(0..1, "first"), Diagnostic::new(2..3, "second")];
        let text = render("study.toml", "a b", &two);
        assert_eq!(text.matches("error: ").count(), 2);
        assert!(text.contains("\n\nerror: second"), "{text}");
        assert_eq!(render("study.toml", "a b", &[]), "");
        assert!(render_coloured("study.toml", "a b", &two).contains('\u{1b}'));
        assert!(!text.contains('\u{1b}'));
    }
}
