//! Secrets that the name before them announces: settings, variables, options, SQL.

use std::ops::Range;

const PARTS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "access_key",
    "private_key",
    "api_key",
    "apikey",
    "filekey",
    "auth_string",
];

/// Whole words between `_`, `-` and `.` of a secret's name.
const WORDS: [&str; 6] =
    ["pwd", "pass", "auth", "authorization", "authentication_string", "bearer"];

/// Settings whose value may hold a secret: SQL for each connection, options of a library.
const WHOLE: [&str; 4] = ["init_connect", "init_slave", "init_replica", "wsrep_provider_options"];

/// Names that sound like secrets, but are harmless.
const HARMLESS: [&str; 15] = [
    "password_encryption",
    "old_passwords",
    "default_password_lifetime",
    "disconnect_on_expired_password",
    "strict_password_validation",
    "max_password_errors",
    "password_history",
    "password_reuse_interval",
    "password_require_current",
    "generated_random_password_length",
    "ssl_passphrase_command_supports_reload",
    "innodb_ft_min_token_size",
    "innodb_ft_max_token_size",
    "ngram_token_size",
    "secure_auth",
];

const HARMLESS_BEGINNINGS: [&str; 5] = [
    "validate_password",
    "simple_password_check",
    "cracklib_password_check",
    "sha256_password_",
    "caching_sha2_password_",
];

/// Options whose next word is a password, by program: elsewhere they mean something else.
const PASSWORD_OPTIONS: [(&str, &[&str]); 4] = [
    ("-p", &["sshpass"]),
    ("-a", &["redis-cli", "valkey-cli", "keydb-cli"]),
    (
        "-p",
        &[
            "mongo",
            "mongosh",
            "mongodump",
            "mongorestore",
            "mongoexport",
            "mongoimport",
            "mongostat",
            "mongotop",
        ],
    ),
    ("-k", &["openssl"]),
];

fn password_option(program: &str) -> Option<&'static str> {
    let name = program.rsplit(['/', '=']).next()?;
    let mut all = PASSWORD_OPTIONS.iter();
    all.find(|(_, programs)| programs.contains(&name)).map(|(option, _)| *option)
}

/// Whether a setting, variable or option is a secret by its name, or by `NAME` in `setting.NAME`.
pub fn is_secret_name(name: &str) -> bool {
    is_secret(name) || name.split_once('.').is_some_and(|(_, name)| is_secret_name(name))
}

fn is_secret(name: &str) -> bool {
    let name = name.trim_start_matches('-').to_ascii_lowercase().replace(['-', '.'], "_");
    let is_harmless = HARMLESS.contains(&name.as_str())
        || HARMLESS_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
    if is_harmless {
        return false;
    }
    WHOLE.contains(&name.as_str())
        || PARTS.iter().any(|part| name.contains(part))
        || name.split('_').any(|word| WORDS.contains(&word))
}

pub(super) fn secrets(text: &str) -> Vec<Range<usize>> {
    let mut found = assigned(text);
    found.extend(in_words(text));
    found.extend(behind_phrases(text));
    found
}

/// Replaces words that follow an option for a secret.
pub(super) fn redact_words(words: &[String]) -> Vec<String> {
    let mut option = None;
    let mut is_value = false;
    let mut redacted = Vec::with_capacity(words.len());
    for word in words {
        redacted.push(match word {
            _ if is_value => super::MASK.to_owned(),
            word if word.len() > 2 && word.starts_with("-p") => format!("-p{}", super::MASK),
            word => word.clone(),
        });
        option = password_option(word).or(option);
        is_value = !is_value && announces_value(word, option);
    }
    redacted
}

/// `option` announces a secret to the program named last.
fn announces_value(word: &str, option: Option<&str>) -> bool {
    let is_long = word.starts_with("--") && !word.contains('=') && is_secret_name(word);
    is_long || option == Some(word)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
}

fn assigned(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    for (at, sign) in text.match_indices(['=', ':']) {
        let before = text[..at].trim_end_matches([' ', '\t']);
        let unquoted = before.strip_suffix(['"', '\'']).unwrap_or(before);
        // `password: …` is a sentence more often than not; with quotes it is a key.
        if sign == ":" && unquoted.len() == before.len() {
            continue;
        }
        let length = unquoted.bytes().rev().take_while(|&byte| is_name_byte(byte)).count();
        let start = unquoted.len() - length;
        if length == 0 || !is_secret_name(&unquoted[start..]) {
            continue;
        }
        let from =
            at + 1 + text[at + 1..].len() - text[at + 1..].trim_start_matches([' ', '\t']).len();
        let is_in_query = start > 0 && b"?&".contains(&bytes[start - 1]);
        found.extend(value(text, from, is_in_query));
    }
    found
}

/// Quoted, in brackets, or up to white space.
fn value(text: &str, from: usize, is_in_query: bool) -> Option<Range<usize>> {
    let rest = &text[from..];
    for quote in ["\"\"\"", "'''", "\\\"", "\\'", "\"", "'", "`"] {
        if let Some(inside) = rest.strip_prefix(quote) {
            let start = from + quote.len();
            let length = match quote {
                "\"" => super::basic_string_end(inside),
                "'" | "`" => inside.find([quote.chars().next().unwrap_or('\''), '\n']),
                _ => inside.find(quote),
            };
            let end = start + length.unwrap_or(inside.len());
            return (start < end).then_some(start..end);
        }
    }
    if let Some(inside) = rest.strip_prefix('[') {
        let end = from + 1 + list_end(inside);
        return (from + 1 < end).then_some(from + 1..end);
    }
    let is_end = |c: char| c.is_whitespace() || "\"'`".contains(c) || (is_in_query && c == '&');
    let end = from + rest.find(is_end).unwrap_or(rest.len());
    (from < end).then_some(from..end)
}

/// Up to the closing bracket, or all of the text. Brackets in quotes do not count.
fn list_end(text: &str) -> usize {
    let mut quote = None;
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match quote {
            Some(begun) if c == begun && !is_escaped => quote = None,
            Some('"') => is_escaped = c == '\\' && !is_escaped,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == ']' => return at,
            None => {}
        }
    }
    text.len()
}

/// `-pSECRET`, `--password SECRET`, `-u user:SECRET`.
fn in_words(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut expected = false;
    let mut is_user = false;
    let mut option = None;
    let mut end = 0;
    for word in words(text) {
        let shown = &text[word.clone()];
        if ends_command(&text[..end], &text[end..word.start]) {
            option = None;
        }
        end = word.end;
        if expected {
            found.push(word.clone());
        } else if is_user && let Some(colon) = shown.find(':') {
            found.push(word.start + colon + 1..word.end);
        } else if shown.len() > 2 && shown.starts_with("-p") {
            found.push(word.start + 2..word.end);
        }
        option = password_option(shown).or(option);
        let was_expected = std::mem::take(&mut expected);
        expected = !was_expected && announces_value(shown, option);
        is_user = matches!(shown, "-u" | "--user");
    }
    found.retain(|span| span.start < span.end);
    found
}

/// At a line end, unless a comma or backslash continues the line, and where a shell ends a command.
fn ends_command(before: &str, between: &str) -> bool {
    let is_line_end = between.contains('\n') && !between.contains(',') && !before.ends_with('\\');
    is_line_end || between.contains([';', '|'])
}

/// As in a shell or a list of texts: between white space, quotes, commas and brackets.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_border = |c: char| c.is_whitespace() || "\"'`[],;|()".contains(c);
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text[from..].find(|c| !is_border(c))?;
        let end = start + text[start..].find(is_border).unwrap_or(text.len() - start);
        from = end;
        Some(start..end)
    })
}

/// `IDENTIFIED BY '…'`, `PASSWORD '…'`, `PASSWORD('…')`, `Authorization: …`.
fn behind_phrases(text: &str) -> Vec<Range<usize>> {
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for phrase in ["identified by", "password"] {
        for (at, _) in lower.match_indices(phrase) {
            let rest = &text[at + phrase.len()..];
            let inside = rest.trim_start_matches([' ', '\t', '(']);
            if inside.len() < rest.len() && inside.starts_with(['"', '\'']) {
                found.extend(value(text, text.len() - inside.len(), false));
            }
        }
    }
    for phrase in ["authorization:", "bearer "] {
        for (at, _) in lower.match_indices(phrase) {
            let from = at + phrase.len();
            let length = text[from..].find(['"', '\'', '`', '\n']);
            found.push(from..length.map_or(text.len(), |length| from + length));
        }
    }
    found.retain(|span| span.start < span.end);
    found
}

#[cfg(test)]
mod tests {
    use super::super::{redact_command, redact_secrets, redact_setting};
    use super::*;

    #[test]
    fn names_mark_secrets() {
        let check =
            |name: &str, expected: bool| assert_eq!(is_secret_name(name), expected, "{name}");
        for name in [
            "password",
            "PGPASSWORD",
            "MYSQL_PWD",
            "ssl_passphrase_command",
            "wsrep_sst_auth",
            "init_connect",
            "report_password",
            "s3_secret_key",
            "s3_access_key",
            "file_key_management_filekey",
            "aws.session-token",
            "--auth",
            "authentication_ldap_simple_bind_root_pwd",
        ] {
            check(name, true);
        }
        for name in [
            "password_encryption",
            "authentication_timeout",
            "default_authentication_plugin",
            "author",
            "key_buffer_size",
            "innodb_ft_min_token_size",
            "validate_password_policy",
            "primary_conninfo",
            "default_password_lifetime",
        ] {
            check(name, false);
        }
    }

    #[test]
    fn settings_are_hidden_by_name_or_in_part() {
        let check = |name: &str, value: &str, expected: &str| {
            assert_eq!(redact_setting(name, value), expected);
        };
        check("ssl_passphrase_command", "echo hunter2", "***");
        check("wsrep_sst_auth", "me:hunter2", "***");
        check("init_connect", "SET @k = 'hunter2'", "***");
        check("init_connect", "", "");
        check("shared_buffers", "128MB", "128MB");
        check("password_encryption", "scram-sha-256", "scram-sha-256");
        check(
            "primary_conninfo",
            "host=h user=me password=hunter2 port=1",
            "host=h user=me password=*** port=1",
        );
        check("primary_conninfo", "password='hun ter2' host=h", "password='***' host=h");
        check("archive_command", "PGPASSWORD=hunter2 psql -c x", "PGPASSWORD=*** psql -c x");
        check("archive_command", "mysql -phunter2 -e x", "mysql -p*** -e x");
        check("archive_command", "curl -u me:hunter2 http://h", "curl -u me:*** http://h");
        check(
            "archive_command",
            "curl -H 'X-Auth: a' --token hunter2",
            "curl -H 'X-Auth: a' --token ***",
        );
        check("restore_command", "sshpass -p hunter2 scp a b", "sshpass -p *** scp a b");
        check("x", "redis-cli -h a -a hunter2 ping", "redis-cli -h a -a *** ping");
        check("x", "/usr/bin/mongosh -u me -p hunter2", "/usr/bin/mongosh -u me -p ***");
        check("x", "openssl enc -k hunter2 -in a", "openssl enc -k *** -in a");
        check("x", "redis-cli ping; cp -a b c", "redis-cli ping; cp -a b c");
        check("x", "curl -H 'Authorization: Bearer hunter2' h", "curl -H 'Authorization:***' h");
        check("x", "CREATE USER a IDENTIFIED BY 'hunter2'", "CREATE USER a IDENTIFIED BY '***'");
        check("x", "SET PASSWORD = PASSWORD('hunter2')", "SET PASSWORD = ***'***')");
    }

    #[test]
    fn study_text_is_hidden_by_key_and_in_commands() {
        let check = |text: &str, expected: &str| assert_eq!(redact_secrets(text), expected);
        check(
            "ssl_passphrase_command = \"echo hunter2\" # x",
            "ssl_passphrase_command = \"***\" # x",
        );
        check("'init_connect'='set x'", "'init_connect'='***'");
        check("wsrep_sst_auth = '''a\nb''' # x", "wsrep_sst_auth = '''***''' # x");
        check(
            "primary_conninfo = \"host=h password=hunter2\"",
            "primary_conninfo = \"host=h password=***\"",
        );
        check(
            "command = [\"mysql\", \"-phunter2\", \"-e\"]",
            "command = [\"mysql\", \"-p***\", \"-e\"]",
        );
        check(
            "command = [\"x\", \"--password\", \"hunter2\"]",
            "command = [\"x\", \"--password\", \"***\"]",
        );
        check(
            "command = [\"sh\", \"-c\", \"PGPASSWORD=hunter2 psql\"]",
            "command = [\"sh\", \"-c\", \"PGPASSWORD=*** psql\"]",
        );
        check(
            "command = [\"sh\", \"-c\", \"PGPASSWORD=\\\"hun ter2\\\" psql\"]",
            "command = [\"sh\", \"-c\", \"PGPASSWORD=\\\"***\\\" psql\"]",
        );
        check(
            "command = [\n \"redis-cli\",\n \"-a\",\n \"hunter2\",\n]",
            "command = [\n \"redis-cli\",\n \"-a\",\n \"***\",\n]",
        );
        check("redis-cli \\\n -a hunter2", "redis-cli \\\n -a ***");
        check(
            "database = 'mongo'\nx = 'mkdir -p /data'",
            "database = 'mongo'\nx = 'mkdir -p /data'",
        );
        check("{\"password\": \"hunter2\"}", "{\"password\": \"***\"}");
        check(
            "vary = { setting = { init_connect = [\"a ']'\", \"hunter2\"], x = [1] } }",
            "vary = { setting = { init_connect = [***], x = [1] } }",
        );
        check("report_password = [\n'a]\\',\n'b' ] # x", "report_password = [***] # x");
        check("password = ['hunter2\nx = 1", "password = [***");
        check("password = []", "password = []");
        for text in [
            "a limit <= 20, the password: put it into the URL",
            "mkdir -p /data && test -f x",
            "authentication_timeout = 60",
            "password_encryption = 'md5'",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn commands_are_read_word_by_word() {
        let words =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let check = |command: &[&str], expected: &[&str]| {
            assert_eq!(redact_command(&words(command)), words(expected));
        };
        check(&["mysql", "-ph unter2", "-e", "x"], &["mysql", "-p***", "-e", "x"]);
        check(&["x", "--password", "hun ter2", "y"], &["x", "--password", "***", "y"]);
        check(&["sshpass", "-p", "hunter2", "ssh"], &["sshpass", "-p", "***", "ssh"]);
        check(&["redis-cli", "-a", "hun ter2", "get"], &["redis-cli", "-a", "***", "get"]);
        check(&["mongo", "-p", "hunter2", "x"], &["mongo", "-p", "***", "x"]);
        check(&["cp", "-a", "b", "c"], &["cp", "-a", "b", "c"]);
        check(&["env", "PGPASSWORD=hunter2", "psql"], &["env", "PGPASSWORD=***", "psql"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_redacted_without_harm(text in "(-p|=|'|\"|password|[a-z =:é\\\\]){0,40}") {
            let _ = redact_secrets(&text);
            proptest::prop_assert_eq!(super::super::mask_secrets(&text).len(), text.len());
        }
    }
}
