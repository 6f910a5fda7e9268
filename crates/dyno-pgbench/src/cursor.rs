//! Where an error stands in a statement, shown as PostgreSQL's programs show it.

/// Widest part of a statement that is shown, in characters.
const WIDTH: usize = 60;

/// What is shown behind the place of the error at least, in characters.
const BEHIND: usize = 10;

/// The line of the statement in which `position` is (in characters, from 1), and a line that points
/// there; none if there is no such place. A long line is shown around the place.
pub fn cursor(statement: &str, position: usize) -> Option<String> {
    let at = position.checked_sub(1)?;
    let chars: Vec<char> = statement.chars().collect();
    if at > chars.len() {
        return None;
    }
    let is_end = |c: &char| matches!(c, '\n' | '\r');
    let begin = chars[..at].iter().rposition(is_end).map_or(0, |end| end + 1);
    let end = chars[at..].iter().position(is_end).map_or(chars.len(), |n| at + n);
    // A carriage return with its line feed ends one line.
    let ends = (0..begin).filter(|&idx| {
        chars[idx] == '\r' || chars[idx] == '\n' && !(idx > 0 && chars[idx - 1] == '\r')
    });
    let number = ends.count() + 1;
    let (mut from, mut to) = (begin, end);
    if to - from > WIDTH {
        if from + WIDTH >= at + BEHIND {
            to = from + WIDTH;
        } else {
            to = to.min(at + BEHIND);
            from = from.max(to.saturating_sub(WIDTH));
        }
    }
    let dots = |is_cut: bool| if is_cut { "..." } else { "" };
    let front = format!("LINE {number}: {}", dots(from > begin));
    let shown = |c: &char| if *c == '\t' { ' ' } else { *c };
    let text: String = chars[from..to].iter().map(shown).collect();
    let blanks = " ".repeat(front.chars().count() + at - from);
    Some(format!("{front}{text}{}\n{blanks}^", dots(to < end)))
}

#[cfg(test)]
mod tests {
    use super::cursor;

    #[test]
    fn a_line_is_shown_with_a_mark_below_it() {
        let check = |statement: &str, position: usize, expected: Option<&str>| {
            assert_eq!(cursor(statement, position).as_deref(), expected, "{statement:?}");
        };
        check("SELECT x;", 8, Some("LINE 1: SELECT x;\n               ^"));
        check("SELECT 1,\r\n\tx\r\nFROM t", 13, Some("LINE 2:  x\n         ^"));
        check("SELECT\n\nx", 9, Some("LINE 3: x\n        ^"));
        check("SELECT", 7, Some("LINE 1: SELECT\n              ^"));
        check("SELECT", 8, None);
        check("SELECT", 0, None);
        check("SELECT 'é', x", 13, Some("LINE 1: SELECT 'é', x\n                    ^"));
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let long: String = ('a'..='z').cycle().take(200).collect();
        let head = format!("LINE 1: {}...\n        ^", &long[..60]);
        assert_eq!(cursor(&long, 1), Some(head));
        let middle = format!("LINE 1: ...{}...\n{}^", &long[49..109], " ".repeat(61));
        assert_eq!(cursor(&long, 100), Some(middle));
        let tail = format!("LINE 1: ...{}\n{}^", &long[140..], " ".repeat(70));
        assert_eq!(cursor(&long, 200), Some(tail));
    }
}
