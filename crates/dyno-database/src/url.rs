//! Reads the URL of a server.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use dyno_units::percent_decode;

use crate::endpoint::{PASSWORD_FILE, encoded};
use crate::products::protocols;
use crate::settings::distance;
use crate::{Address, Endpoint, Protocol, Secret, TlsMode, UrlError};

impl Endpoint {
    /// Reads `SCHEME://user:password@host:port/database`, or `…/database?KEY=/path` for a Unix socket
    /// (which ignores the host), with `tls=off|encrypt|verify`, `tls_roots=FILE` and, in protocols that
    /// use them, `server_public_key=FILE` and `options=TEXT`. [`Protocol`] has schemes and KEY.
    /// Special characters are percent-encoded. Errors never quote what could be part of a password.
    pub fn from_url(url: &str) -> Result<Endpoint, UrlError> {
        Endpoint::read(url, false)
    }

    /// If only observed: without a catalog in the URL, [`Protocol::common_catalog`].
    pub fn from_url_of_server(url: &str) -> Result<Endpoint, UrlError> {
        Endpoint::read(url, true)
    }

    fn read(url: &str, needs_no_catalog: bool) -> Result<Endpoint, UrlError> {
        let (protocol, rest) = split_scheme(url)?;
        let (before_query, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = before_query.split_once('/').unwrap_or((before_query, ""));
        // It most likely follows a password with `/` or `?`, which quoting would show.
        if path.contains('@') || query.contains('@') {
            return refuse(
                "there is an `@` after the first `/` or `?` of the URL; percent-encode special \
                 characters in user, password and database (`/` is %2F, `?` is %3F, `@` is %40)",
            );
        }
        let (user, password, place) = split_authority(authority, protocol)?;
        let options = read_query(query, protocol)?;
        let mut catalog = text_of(decode(path)?, "database")?;
        if needs_no_catalog && catalog.is_empty() {
            protocol.common_catalog.clone_into(&mut catalog);
        }
        if catalog.is_empty() {
            return refuse(format!(
                "the URL names no database; write it like {}",
                protocol.example
            ));
        }
        if path.contains('/') {
            return refuse("the database's name contains a `/`; if that is intended, write %2F");
        }
        let address = resolve_address(protocol, place, options.socket)?;
        let tls = resolve_tls(options.tls, options.tls_roots)?;
        if options.password_file.is_some() && password.is_some() {
            return refuse(format!(
                "the URL has a password and a `{PASSWORD_FILE}`; give one of them"
            ));
        }
        let QueryOptions { server_public_key, session_options, .. } = options;
        Ok(Endpoint {
            protocol,
            address,
            user,
            password,
            catalog,
            tls,
            server_public_key,
            session_options,
        })
    }
}

/// Replaces `password_file=PATH`. Fails if there is also a password, or `read` fails.
pub fn with_password_of_file(
    url: &str,
    read: impl FnOnce(&Path) -> Result<Secret, String>,
) -> Result<String, UrlError> {
    let Some((before, query)) = url.split_once('?') else { return Ok(url.to_owned()) };
    let is_file = |pair: &&str| pair.split('=').next() == Some(PASSWORD_FILE);
    let (files, others): (Vec<&str>, Vec<&str>) = query.split('&').partition(is_file);
    let Some(file) = files.first() else { return Ok(url.to_owned()) };
    // The scheme's own slashes come first.
    let begins = before.find("://").map_or(0, |at| at + 3);
    let ends = before[begins..].find('/').map_or(before.len(), |at| begins + at);
    let Some(at) = before[begins..ends].rfind('@').map(|at| begins + at) else {
        return refuse(format!("the URL has a `{PASSWORD_FILE}`, but names no user"));
    };
    if before[begins..at].contains(':') || files.len() > 1 {
        return refuse(format!(
            "the URL has more than one password; give one `{PASSWORD_FILE}` alone"
        ));
    }
    let path = path_of(decode(file.split_once('=').map_or("", |(_, path)| path))?);
    let password = read(&path).map_err(UrlError)?;
    let password = encoded(password.reveal().as_bytes(), b"");
    let query = if others.is_empty() { String::new() } else { format!("?{}", others.join("&")) };
    Ok(format!("{}:{password}{}{query}", &before[..at], &before[at..]))
}

fn refuse<T>(message: impl Into<String>) -> Result<T, UrlError> {
    Err(UrlError(message.into()))
}

fn split_scheme(url: &str) -> Result<(&'static Protocol, &str), UrlError> {
    if let Some(why) = crate::LEFT_OUT {
        return refuse(why.to_owned());
    }
    let examples: Vec<&str> = protocols().map(|protocol| protocol.example).collect();
    let (last, others) = examples.split_last().expect("Dyno speaks several protocols");
    let examples = format!("write it like {} or {last}", others.join(", "));
    let Some((scheme, rest)) = url.trim().split_once("://") else {
        return refuse(format!("this is not the URL of a database server; {examples}"));
    };
    if let Some(protocol) = protocols().find(|one| one.schemes.contains(&scheme)) {
        return Ok((protocol, rest));
    }
    // Text with other characters may be a password in front of the `://`.
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if scheme.is_empty() || scheme.len() > 16 || !scheme.chars().all(is_scheme) {
        return refuse(format!("the URL has no scheme; {examples}"));
    }
    let schemes = protocols().flat_map(|protocol| protocol.schemes).copied();
    let nearest = schemes.min_by_key(|name| distance(name, scheme));
    let advice = match nearest.filter(|name| distance(name, scheme) <= 3) {
        Some(name) => format!("did you mean `{name}`?"),
        None => examples,
    };
    refuse(format!("unsupported URL scheme `{scheme}`; {advice}"))
}

/// Host and port as the URL gives them; both may be missing.
struct Place {
    host: String,
    port: Option<u16>,
}

/// Splits `user:password@host:port`.
fn split_authority(
    authority: &str,
    spec: &Protocol,
) -> Result<(String, Option<Secret>, Place), UrlError> {
    let Some((credentials, place)) = authority.rsplit_once('@') else {
        return refuse(format!("the URL names no user; write it like {}", spec.example));
    };
    let split = credentials.split_once(':');
    let (user, password) = split.map_or((credentials, None), |(user, word)| (user, Some(word)));
    let user = text_of(decode(user)?, "user")?;
    if user.is_empty() {
        return refuse(format!("the URL names no user; write it like {}", spec.example));
    }
    let password = password.map(|word| text_of(decode(word)?, "password")).transpose()?;
    Ok((user, password.map(Secret::new), split_place(place)?))
}

/// Splits `host:port`, `[::1]:port`, `host`, or nothing.
fn split_place(place: &str) -> Result<Place, UrlError> {
    let (host, port) = if let Some(bracketed) = place.strip_prefix('[') {
        let Some((host, after)) = bracketed.split_once(']') else {
            return refuse("the host begins with `[` and has no `]`; write it like [::1]:3306");
        };
        match after.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if after.is_empty() => (host, None),
            None => return refuse("after the `]` of the host only `:port` may follow"),
        }
    } else {
        match place.rsplit_once(':') {
            Some((host, _)) if host.contains(':') => {
                return refuse("a host with colons is written in brackets: [::1]:3306");
            }
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        }
    };
    let port = match port {
        None | Some("") => None,
        Some(text) => match text.parse::<u16>() {
            Ok(port) if port > 0 => Some(port),
            _ => return refuse("the URL's port is not a number between 1 and 65535"),
        },
    };
    Ok(Place { host: text_of(decode(host)?, "host")?, port })
}

#[derive(Default)]
struct QueryOptions {
    socket: Option<PathBuf>,
    tls: Option<String>,
    tls_roots: Option<PathBuf>,
    server_public_key: Option<PathBuf>,
    session_options: Option<String>,
    password_file: Option<PathBuf>,
}

fn read_query(query: &str, spec: &Protocol) -> Result<QueryOptions, UrlError> {
    let mut options = QueryOptions::default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode(value)?;
        let is_repeated = match key {
            "tls" => options.tls.replace(text_of(value, "tls")?).is_some(),
            PASSWORD_FILE => options.password_file.replace(path_of(value)).is_some(),
            "tls_roots" => options.tls_roots.replace(path_of(value)).is_some(),
            "server_public_key" if spec.has_server_public_key => {
                options.server_public_key.replace(path_of(value)).is_some()
            }
            "options" if spec.has_session_options => {
                options.session_options.replace(text_of(value, "options")?).is_some()
            }
            key if key == spec.socket.name => options.socket.replace(path_of(value)).is_some(),
            _ => {
                let mut more = String::new();
                if spec.has_server_public_key {
                    more.push_str(", `server_public_key`");
                }
                if spec.has_session_options {
                    more.push_str(", `options`");
                }
                return refuse(format!(
                    "the URL has the unknown key `{key}`; accepted are `{}`, `tls`, `tls_roots`, \
                     `{PASSWORD_FILE}`{more}",
                    spec.socket.name
                ));
            }
        };
        if is_repeated {
            return refuse(format!("the URL gives `{key}` twice"));
        }
    }
    Ok(options)
}

fn resolve_address(
    spec: &Protocol,
    place: Place,
    socket: Option<PathBuf>,
) -> Result<Address, UrlError> {
    let port = place.port.unwrap_or(spec.default_port);
    let Some(socket) = socket else {
        let host = if place.host.is_empty() { "localhost".to_owned() } else { place.host };
        return Ok(Address::Tcp { host, port });
    };
    let key = spec.socket.name;
    if !socket.is_absolute() {
        return refuse(format!("`{key}` must be an absolute path, such as /run/server"));
    }
    // A URL must have something in the host's place; if a socket is named, it is not used.
    Ok(Address::Unix((spec.socket.join)(socket, port)))
}

fn resolve_tls(mode: Option<String>, roots: Option<PathBuf>) -> Result<TlsMode, UrlError> {
    match (mode.as_deref(), roots) {
        (None | Some("off"), None) => Ok(TlsMode::Off),
        (Some("encrypt"), None) => Ok(TlsMode::Encrypt),
        (Some("verify"), roots) => Ok(TlsMode::Verify { roots }),
        (None | Some("off" | "encrypt"), Some(_)) => {
            refuse("`tls_roots` takes effect only together with `tls=verify`")
        }
        (Some(_), _) => refuse("`tls` is one of `off`, `encrypt`, `verify`"),
    }
}

/// Replaces `%41` by `A`.
fn decode(text: &str) -> Result<Vec<u8>, UrlError> {
    let refused = "a `%` in the URL must be followed by two hexadecimal digits; write %25 for `%`";
    percent_decode(text).map_or_else(|| refuse(refused), Ok)
}

fn text_of(bytes: Vec<u8>, part: &str) -> Result<String, UrlError> {
    match String::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => refuse(format!("the URL's {part} contains a zero byte")),
        Ok(text) => Ok(text),
        Err(_) => refuse(format!("the URL's {part} is not UTF-8 once its %xx are decoded")),
    }
}

fn path_of(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A URL after parsing: its text without password, and the password.
    #[track_caller]
    fn check(url: &str, expected: &str, password: Option<&str>) {
        let endpoint = Endpoint::from_url(url).expect("a good URL");
        assert_eq!(endpoint.to_string(), expected);
        assert_eq!(endpoint.password.as_ref().map(Secret::reveal), password);
    }

    #[track_caller]
    fn check_refused(url: &str, part: &str) {
        let error = Endpoint::from_url(url).expect_err("a bad URL").0;
        assert!(error.contains(part), "{error:?} lacks {part:?}");
        assert!(!error.contains("hush"), "{error:?} shows the password");
    }

    #[test]
    fn urls_are_read_and_written_without_password() {
        check("mysql://me:hush@db1:3307/shop", "mysql://me@db1:3307/shop", Some("hush"));
        check("mysql://me@db1/shop", "mysql://me@db1:3306/shop", None);
        check("mariadb://me@/shop", "mysql://me@localhost:3306/shop", None);
        check("postgres://me:@[::1]/shop", "postgresql://me@[::1]:5432/shop", Some(""));
        check("mysql://m%40e:a%2Fb%3A@h/x%20y", "mysql://m%40e@h:3306/x%20y", Some("a/b:"));
        check("mysql://me:p@ss:word@h/x", "mysql://me@h:3306/x", Some("p@ss:word"));
    }

    #[test]
    fn programs_get_an_address_without_a_password_in_it() {
        let check = |url: &str, expected: &[&str]| {
            let endpoint = Endpoint::from_url(url).expect("a good URL");
            let all: Vec<String> =
                endpoint.as_other().iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(all, expected);
        };
        check(
            "clickhouse://me:p%20w@127.0.0.1:9/d",
            &[
                "DYNO_OTHER_HOST=127.0.0.1",
                "DYNO_OTHER_PORT=9",
                "DYNO_OTHER_PASSWORD=p w",
                "DYNO_OTHER_USER=me",
                "DYNO_OTHER_DATABASE=d",
                "DYNO_OTHER_URL=clickhouse://me:${DYNO_OTHER_PASSWORD}@127.0.0.1:9/d",
            ],
        );
        check(
            "mysql://me@localhost/d?socket=/s",
            &[
                "DYNO_OTHER_SOCKET=/s",
                "DYNO_OTHER_USER=me",
                "DYNO_OTHER_DATABASE=d",
                "DYNO_OTHER_URL=mysql://me@localhost/d?socket=/s",
            ],
        );
    }

    #[test]
    fn sockets_are_named_in_the_query() {
        let url = "mysql://me@localhost/shop?socket=/run/a b.sock";
        let endpoint = Endpoint::from_url(url).unwrap();
        assert_eq!(endpoint.address, Address::Unix("/run/a b.sock".into()));
        check(url, "mysql://me@localhost/shop?socket=/run/a%20b.sock", None);
        let url = "postgresql://me@:5433/shop?host=/run/pg";
        let endpoint = Endpoint::from_url(url).unwrap();
        assert_eq!(endpoint.address, Address::Unix("/run/pg/.s.PGSQL.5433".into()));
        check(url, "postgresql://me@localhost:5433/shop?host=/run/pg", None);
    }

    #[test]
    fn encryption_is_named_in_the_query() {
        check("mysql://me@h/x?tls=off", "mysql://me@h:3306/x", None);
        check("mysql://me@h/x?tls=encrypt", "mysql://me@h:3306/x?tls=encrypt", None);
        let verified = "mysql://me@h:3306/x?tls=verify&tls_roots=/etc/ca.pem";
        check(verified, verified, None);
        let by_system = "mysql://me@h:3306/x?tls=verify";
        check(by_system, by_system, None);
        let with_key = "mysql://me@h:3306/x?server_public_key=/etc/key.pem";
        check(with_key, with_key, None);
        let with_options = "postgresql://me@h:5432/x?options=-c%20a%3D1";
        check(with_options, with_options, None);
        check_refused("mysql://me:hush@h/x?options=-c", "unknown key");
        check_refused("postgres://me:hush@h/x?server_public_key=/a", "unknown key");
        check_refused("mysql://me:hush@h/x?tls_roots=/a", "only together with `tls=verify`");
        check_refused("mysql://me:hush@h/x?tls=required", "`off`, `encrypt`, `verify`");
    }

    #[test]
    fn bad_urls_are_reported_with_an_example() {
        check_refused("mysql://me:hush@h", "mysql://user:password@host:3306/database");
        check_refused("mysql://me:hush@h/", "names no database");
        check_refused("postgres://h/x", "postgresql://user:password@host:5432/database");
        check_refused("me:hush@h/x", "write it like");
        check_refused("mysq://me:hush@h/x", "unsupported URL scheme `mysq`; did you mean `mysql`?");
        check_refused("postgress://me:hush@h/x", "did you mean `postgres`?");
        check_refused("oracle://me:hush@h/x", "`oracle`; write it like");
        check_refused("me:hush://h/x", "no scheme");
        check_refused(
            "mysql://me:hush@h/x?host=/run",
            "accepted are `socket`, `tls`, `tls_roots`, `password_file`, `server_public_key`",
        );
        check_refused("mysql://me:hush@h/x?password_file=/f", "give one of them");
        check_refused("postgres://me@h/x?socket=/a", "accepted are `host`, `tls`, `tls_roots`");
        check_refused("mysql://me:hush@h:0/x", "between 1 and 65535");
        check_refused("mysql://me:hush@::1/x", "brackets");
        check_refused("mysql://me:hush@h/x?tls=off&tls=off", "twice");
        check_refused("mysql://me:hush@/x?socket=run/s", "absolute");
        check_refused("mysql://me:hush%@h/x", "two hexadecimal digits");
        check_refused("mysql://me:hush%ff@h/x", "not UTF-8");
    }

    #[test]
    fn a_password_may_be_in_a_file() {
        let read = |path: &Path| match path.to_str() {
            Some("/a b") => Ok(Secret::new("p/w@")),
            _ => Err("no such file".to_owned()),
        };
        let check = |url: &str, expected: &str| {
            assert_eq!(with_password_of_file(url, read).as_deref(), Ok(expected));
        };
        check("mysql://me@h/x", "mysql://me@h/x");
        check("mysql://me@h/x?tls=off", "mysql://me@h/x?tls=off");
        check("mysql://me@h/x?password_file=/a%20b", "mysql://me:p%2Fw%40@h/x");
        check("mysql://me@h/x?tls=off&password_file=/a b", "mysql://me:p%2Fw%40@h/x?tls=off");
        let error = |url: &str| with_password_of_file(url, read).expect_err("a bad URL").0;
        assert_eq!(error("mysql://me@h/x?password_file=/b"), "no such file");
        assert!(error("mysql://me:hush@h/x?password_file=/a b").contains("more than one password"));
        assert!(error("mysql://h/x?password_file=/a b").contains("names no user"));
        let endpoint = Endpoint::from_url("clickhouse://me:p%2Fw%40@127.0.0.1:9/d").unwrap();
        let url = endpoint.url_with_password_file(Path::new("/a b"));
        assert_eq!(url, "clickhouse://me@127.0.0.1:9/d?password_file=/a%20b");
        assert_eq!(Endpoint::from_url(&with_password_of_file(&url, read).unwrap()), Ok(endpoint));
    }

    #[test]
    fn a_server_that_is_looked_at_needs_no_catalog() {
        let check = |url: &str, expected: &str| {
            let endpoint = Endpoint::from_url_of_server(url).expect("a good URL");
            assert_eq!(endpoint.to_string(), expected);
        };
        check("mysql://me@h", "mysql://me@h:3306/information_schema");
        check(
            "mysql://me@h/?socket=/run/s",
            "mysql://me@localhost/information_schema?socket=/run/s",
        );
        check("postgres://me@h", "postgresql://me@h:5432/postgres");
        check("postgres://me@h/shop", "postgresql://me@h:5432/shop");
        let error = Endpoint::from_url_of_server("mysql://h").expect_err("no user").0;
        assert!(error.contains("names no user"), "{error}");
    }

    #[test]
    fn unencoded_passwords_are_not_shown() {
        check_refused("mysql://me:hu/hush@h/x", "percent-encode");
        check_refused("mysql://me:hu?hush@h/x", "percent-encode");
        check_refused("mysql://me:hush", "names no user");
        check_refused("mysql://me@h:hush/x", "port");
    }

    #[test]
    fn a_password_on_a_foreign_network_is_warned_of() {
        let check = |url: &str, expected: bool| {
            let warning = Endpoint::from_url(url).expect("a good URL").login_warning();
            assert_eq!(warning.is_some(), expected, "{url}");
            assert!(!warning.unwrap_or_default().contains("hush"));
        };
        check("mysql://me:hush@db1/x", true);
        check("postgres://me:hush@192.0.2.1/x", true);
        check("postgres://me@192.0.2.1/x", false);
        check("mysql://me:hush@db1/x?tls=encrypt", false);
        check("mysql://me:hush@127.0.0.1/x", false);
        check("mysql://me:hush@localhost/x", false);
        check("mysql://me:hush@db1/x?socket=/run/s", false);
    }

    #[test]
    fn debug_output_hides_the_password() {
        let endpoint = Endpoint::from_url("mysql://me:hush@h/x").unwrap();
        assert!(!format!("{endpoint:?}").contains("hush"));
    }

    proptest! {
        #[test]
        fn written_urls_read_back(
            user in "[^\0]{1,8}",
            catalog in "[^\0]{1,8}",
            host in "[a-z]{1,8}|::1|fe80::2",
            port in 1_u16..,
            socket in proptest::option::of("/[^\0]{1,12}"),
            is_mysql: bool,
        ) {
            let protocol =
                if is_mysql { &crate::mysql::PROTOCOL } else { &crate::postgresql::PROTOCOL };
            let address = match socket {
                None => Address::Tcp { host, port },
                Some(path) if is_mysql => Address::Unix(path.into()),
                Some(path) => Address::Unix(Path::new(&path).join(format!(".s.PGSQL.{port}"))),
            };
            let tls = TlsMode::Off;
            let endpoint = Endpoint {
                protocol,
                address,
                user,
                password: None,
                catalog,
                tls,
                server_public_key: None,
                session_options: None,
            };
            prop_assert_eq!(Endpoint::from_url(&endpoint.to_string()), Ok(endpoint));
        }

        #[test]
        fn any_text_is_read_or_refused(url in "(mysql://)?.{0,60}") {
            let _ = Endpoint::from_url(&url);
        }
    }
}
