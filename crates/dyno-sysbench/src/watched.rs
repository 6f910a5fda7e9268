//! A script's text with a call before each turn of a loop, each run of a function and that of the text itself (which may
//! load and run texts for ever), so that the script can be stopped wherever it is: compiled code looks at no hook, but it
//! makes its calls.
//!
//! Nothing else changes: what is inserted stands on lines that are there, and a function that is called does
//! no more than count. The text has to be one that Lua compiles.

const TURN: &str = "__dyno_turn";
const CALL: &str = " __dyno_turn(); ";

/// A text that grows several times its size, outside of Lua's limit of memory, is no larger.
const TEXT_MOST: usize = 16 << 20;

/// A chunk that is given the function to call, and returns the script as a function. None if the script
/// uses its name, or is too large.
pub(crate) fn watched(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() > TEXT_MOST || text.windows(TURN.len()).any(|part| part == TURN.as_bytes()) {
        return None;
    }
    let mut out = Vec::with_capacity(text.len() + text.len() / 4 + 128);
    out.extend_from_slice(format!("local {TURN} = ... return function(...){CALL}").as_bytes());
    Rewriter { text, at: first(text), out: &mut out }.rewrite();
    // The last line may be a comment.
    out.extend_from_slice(b"\nend");
    Some(out)
}

/// Where Lua begins to read: behind a mark of the encoding, and at the end of a first line for the shell.
fn first(text: &[u8]) -> usize {
    let mark = b"\xef\xbb\xbf";
    let start = if text.starts_with(mark) { mark.len() } else { 0 };
    let rest = &text[start..];
    let end = rest.iter().position(ends_line).unwrap_or(rest.len());
    if rest.starts_with(b"#") { start + end } else { start }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// A name or a keyword: where it begins.
    Word(usize),
    /// `.` or `:`, after which each word is a name.
    Member,
    /// `)`.
    Closing,
    Other,
    End,
}

struct Rewriter<'a> {
    text: &'a [u8],
    at: usize,
    out: &'a mut Vec<u8>,
}

fn ends_line(byte: &u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

fn is_of_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// Words after which `goto` is no name.
fn is_keyword(word: &[u8]) -> bool {
    const KEYWORDS: [&str; 21] = [
        "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in",
        "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
    ];
    KEYWORDS.iter().any(|keyword| keyword.as_bytes() == word)
}

impl Rewriter<'_> {
    fn rewrite(&mut self) {
        let mut copied = self.at;
        let mut before = Token::Other;
        // Between `function` and the end of its parameters.
        let mut is_in_head = false;
        // The keyword `goto`, if a name follows.
        let mut jump = None;
        loop {
            let token = self.next();
            let word = match token {
                Token::Word(at) if before != Token::Member => Some((at, &self.text[at..self.at])),
                _ => None,
            };
            let place = match (token, word) {
                (Token::End, _) => break,
                (Token::Closing, _) => std::mem::take(&mut is_in_head).then_some(self.at),
                (_, Some((_, b"do" | b"repeat"))) => Some(self.at),
                (_, Some((_, b"function"))) => {
                    is_in_head = true;
                    None
                }
                (_, Some((_, word))) if !is_keyword(word) => jump,
                _ => None,
            };
            if let Some(place) = place {
                self.out.extend_from_slice(&self.text[copied..place]);
                self.out.extend_from_slice(CALL.as_bytes());
                copied = place;
            }
            jump = word.filter(|(_, word)| *word == b"goto").map(|(start, _)| start);
            before = token;
        }
        self.out.extend_from_slice(&self.text[copied..]);
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Token {
        loop {
            let Some(byte) = self.byte(0) else { return Token::End };
            match byte {
                b'-' if self.byte(1) == Some(b'-') => {
                    self.at += 2;
                    if !self.skip_long() {
                        let rest = &self.text[self.at..];
                        self.at += rest.iter().position(ends_line).unwrap_or(rest.len());
                    }
                }
                b' ' | b'\t'..=b'\r' => self.at += 1,
                _ => return self.token(byte),
            }
        }
    }

    fn token(&mut self, byte: u8) -> Token {
        let start = self.at;
        match byte {
            b'[' if self.skip_long() => return Token::Other,
            b'"' | b'\'' => {
                self.at += 1;
                while let Some(next) = self.byte(0) {
                    self.at += if next == b'\\' { 2 } else { 1 };
                    if next == byte {
                        break;
                    }
                }
                self.at = self.at.min(self.text.len());
                return Token::Other;
            }
            b'0'..=b'9' => return self.number(),
            b'.' if self.byte(1).is_some_and(|next| next.is_ascii_digit()) => return self.number(),
            byte if is_of_word(byte) => {
                while self.byte(0).is_some_and(is_of_word) {
                    self.at += 1;
                }
                return Token::Word(start);
            }
            _ => {}
        }
        // Signs of several bytes are one token: `..` and `::` name no member.
        while self.byte(0) == Some(byte) && matches!(byte, b'.' | b':') {
            self.at += 1;
        }
        match (byte, self.at - start) {
            (b'.' | b':', 1) => Token::Member,
            (b'.' | b':', _) => Token::Other,
            (byte, _) => {
                self.at += 1;
                if byte == b')' { Token::Closing } else { Token::Other }
            }
        }
    }

    /// Goes over a text between long brackets; returns whether there is one.
    fn skip_long(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let level = rest.iter().skip(1).take_while(|&&byte| byte == b'=').count();
        if rest.first() != Some(&b'[') || rest.get(1 + level) != Some(&b'[') {
            return false;
        }
        let closing = [b"]", "=".repeat(level).as_bytes(), b"]"].concat();
        let end = rest.windows(closing.len()).position(|part| part == closing);
        self.at += end.map_or(rest.len(), |end| end + closing.len());
        true
    }

    /// As LuaJIT does: a sign follows `e`, in hexadecimal numbers `p`, and underscores do not count.
    fn number(&mut self) -> Token {
        let is_at = |at: usize, byte: u8| self.text.get(at) == Some(&byte);
        let mut at = self.at + usize::from(is_at(self.at, b'.'));
        let (mut last, mut exponent) = (b'0', b'e');
        if is_at(at, b'0') {
            at += 1;
            while is_at(at, b'_') {
                at += 1;
            }
            if is_at(at, b'x') || is_at(at, b'X') {
                exponent = b'p';
            }
        }
        while let Some(&byte) = self.text.get(at) {
            let is_sign = matches!(byte, b'+' | b'-') && last.to_ascii_lowercase() == exponent;
            if !(is_of_word(byte) || byte == b'.' || is_sign) {
                break;
            }
            if byte != b'_' {
                last = byte;
            }
            at += 1;
        }
        self.at = at;
        Token::Other
    }
}

#[cfg(test)]
mod tests {
    use super::{TEXT_MOST, watched};

    /// What becomes of a text; `@` stands for the call.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let out = String::from_utf8(watched(text.as_bytes()).unwrap()).unwrap();
        let inner = out.strip_prefix("local __dyno_turn = ... return function(...)").unwrap();
        let inner = inner.strip_prefix(" __dyno_turn(); ").unwrap();
        let inner = inner.strip_suffix("\nend").unwrap();
        assert_eq!(inner.replace(" __dyno_turn(); ", "@"), expected, "{text}");
        assert_eq!(out.lines().count(), text.lines().count().max(1) + 1, "{text}");
    }

    #[test]
    fn loops_and_functions_call() {
        check("while x do f() end", "while x do@ f() end");
        check("repeat until x", "repeat@ until x");
        check("for i = 1, 3 do (f)() end", "for i = 1, 3 do@ (f)() end");
        check("function a.b:c(d, ...) return d end", "function a.b:c(d, ...)@ return d end");
        check("local f = function() end (g)(h())", "local f = function()@ end (g)(h())");
        check("function f(a -- )\n, b) end", "function f(a -- )\n, b)@ end");
    }

    #[test]
    fn jumps_call_before_they_are_made() {
        check("::a:: goto a", "::a:: @goto a");
        check("if x then goto done end", "if x then @goto done end");
        check("x.goto = 1 goto_a = x:goto()", "x.goto = 1 goto_a = x:goto()");
        check("local goto = 1 print(goto)", "local goto = 1 print(goto)");
        check("x = goto or y", "x = goto or y");
    }

    #[test]
    fn texts_and_comments_stay() {
        check("s = 'do \\' repeat' .. \"do\"", "s = 'do \\' repeat' .. \"do\"");
        check("s = [[do ]=] do]] t = [=[ do ]] ]=]", "s = [[do ]=] do]] t = [=[ do ]] ]=]");
        check(
            "-- do\n--[[ do\ndo ]] --[==[ do ]==] do end",
            "-- do\n--[[ do\ndo ]] --[==[ do ]==] do@ end",
        );
        check("a[b[1]] = 1 -- repeat", "a[b[1]] = 1 -- repeat");
        check("x = 1e-5..'do' y = .5 z = a..b", "x = 1e-5..'do' y = .5 z = a..b");
        check("doing = undo x.doit = 0x1p-3", "doing = undo x.doit = 0x1p-3");
        check("-- x\rdo end --[=\rdo end", "-- x\rdo@ end --[=\rdo@ end");
        // A hexadecimal number has no sign after `e`, which is a digit.
        for number in ["0xe+", "0_XE-", ".0xe+", "1p+", "1e5-"] {
            let function = format!("x = {number}function()");
            check(&format!("{function} f() end"), &format!("{function}@ f() end"));
        }
        check("x = 1e_-5 do end y = 0x_p+1 do end", "x = 1e_-5 do@ end y = 0x_p+1 do@ end");
        check("'unfinished do", "'unfinished do");
        check("'at the end\\", "'at the end\\");
    }

    #[test]
    fn a_first_line_for_the_shell_is_left_out() {
        check("#!/usr/bin/do\ndo end", "\ndo@ end");
        check("#!/usr/bin/do\rdo end", "\rdo@ end");
        check("\u{feff}do end", "do@ end");
        check("#only", "");
    }

    #[test]
    fn a_script_that_knows_the_call_is_left_alone() {
        assert_eq!(watched(b"__dyno_turn = nil"), None);
        assert_eq!(watched(&b"do end ".repeat(TEXT_MOST / 7 + 1)), None);
    }
}
