//! Where `dyno pgbench` connects to: options, a connection string or URL, the environment, and the
//! defaults of PostgreSQL's own programs, in this order.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use dyno_database::{Address, Endpoint, Secret, TlsMode};
use dyno_units::percent_decode;

use super::options::Options;

pub(super) struct Surroundings<'a> {
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
    pub(super) system_user: &'a dyn Fn() -> Option<String>,
    /// Reads a small file, if it is there and nobody else may read it.
    pub(super) read_private: &'a dyn Fn(&Path) -> Option<String>,
    pub(super) exists: &'a dyn Fn(&Path) -> bool,
}

/// Folders in which servers have their sockets, the distributions' first.
const SOCKET_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Parameters of connections, and the variables that give them.
const PARAMETERS: [(&str, &str); 9] = [
    ("host", "PGHOST"),
    ("port", "PGPORT"),
    ("user", "PGUSER"),
    ("dbname", "PGDATABASE"),
    ("password", "PGPASSWORD"),
    ("passfile", "PGPASSFILE"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("options", "PGOPTIONS"),
];

/// Variables that set something of the session, each with the server's setting.
const SETTINGS: [(&str, &str); 4] = [
    ("PGTZ", "timezone"),
    ("PGDATESTYLE", "datestyle"),
    ("PGGEQO", "geqo"),
    ("PGAPPNAME", "application_name"),
];

/// The name of the session if nothing gives another one.
const APPLICATION: &str = "pgbench";

/// Variables that would change what a connection does, and are not supported.
const REFUSED_VARIABLES: [&str; 4] =
    ["PGHOSTADDR", "PGSERVICE", "PGCHANNELBINDING", "PGTARGETSESSIONATTRS"];

pub(super) fn resolve(options: &Options, from: &Surroundings<'_>) -> Result<Endpoint, String> {
    let Options { host, port, user, dbname, .. } = options;
    let apart = [("host", host), ("port", port), ("user", user)];
    let apart = apart.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text.clone()?)));
    let mut given: BTreeMap<String, String> = apart.collect();
    if let Some(text) = dbname {
        let mut found = Vec::new();
        parameters(text, &mut found)?;
        given.extend(found.into_iter().map(|one| (one.name, one.value)));
    }
    if let Some(name) = given.keys().find(|name| PARAMETERS.iter().all(|(known, _)| known != name))
    {
        return Err(format!("dyno does not support connection option \"{name}\"; leave it out"));
    }
    if let Some(name) = REFUSED_VARIABLES.iter().find(|name| (from.variable)(name).is_some()) {
        return Err(format!("dyno does not support environment variable {name}; unset it"));
    }
    for (name, variable) in PARAMETERS {
        if let Some(value) = (from.variable)(variable).filter(|value| !value.is_empty()) {
            given.entry(name.to_owned()).or_insert(value);
        }
    }
    given.retain(|_, value| !value.is_empty());
    // Texts of scripts and messages are UTF-8.
    let encoding = (from.variable)("PGCLIENTENCODING").unwrap_or_default();
    if !["", "auto", "utf8", "utf-8", "unicode"].contains(&encoding.to_lowercase().as_str()) {
        return Err(format!("dyno does not support PGCLIENTENCODING={encoding}; use UTF8"));
    }
    let mut endpoint = endpoint(&given, from)?;
    endpoint.session_options = Some(session_options(endpoint.session_options, from));
    Ok(endpoint)
}

/// The options of the session with what variables set, which comes last and so decides.
fn session_options(given: Option<String>, from: &Surroundings<'_>) -> String {
    let given = given.unwrap_or_default();
    let is_named = given.contains("application_name");
    let mut options: Vec<String> = Vec::from_iter(Some(given).filter(|given| !given.is_empty()));
    for (variable, setting) in SETTINGS {
        let is_name = variable == "PGAPPNAME";
        let default = (is_name && !is_named).then(|| APPLICATION.to_owned());
        let value = (from.variable)(variable).filter(|value| !value.is_empty()).or(default);
        if let Some(value) = value {
            let value = value.replace('\\', "\\\\").replace(' ', "\\ ");
            options.push(format!("-c {setting}={value}"));
        }
    }
    options.join(" ")
}

fn endpoint(given: &BTreeMap<String, String>, from: &Surroundings<'_>) -> Result<Endpoint, String> {
    let port = given.get("port").map_or("5432", String::as_str);
    let number = port.trim().parse().ok().filter(|number: &u16| *number > 0);
    let port = number.ok_or_else(|| format!("invalid port number: \"{port}\""))?;
    let user = given.get("user").cloned().or_else(|| (from.system_user)());
    let user = user.ok_or("could not look up the name of the current operating-system user")?;
    let catalog = given.get("dbname").cloned().unwrap_or_else(|| user.clone());
    let host = given.get("host").cloned().unwrap_or_else(|| {
        let name = format!(".s.PGSQL.{port}");
        let found =
            SOCKET_FOLDERS.iter().find(|folder| (from.exists)(&Path::new(folder).join(&name)));
        (*found.unwrap_or(&SOCKET_FOLDERS[0])).to_owned()
    });
    if host.contains(',') {
        return Err("dyno connects to one host; name only one".to_owned());
    }
    let is_socket = host.starts_with('/') || host.starts_with('@');
    let address = match is_socket {
        true => Address::Unix(PathBuf::from(&host).join(format!(".s.PGSQL.{port}"))),
        false => Address::Tcp { host: host.clone(), port },
    };
    // Any URL of the protocol, whose parts are then replaced.
    let mut endpoint = Endpoint::from_url("postgresql://x@localhost/x").map_err(|error| error.0)?;
    endpoint.tls = if is_socket { TlsMode::Off } else { tls(given)? };
    let password = given.get("password").cloned().or_else(|| {
        let file = given
            .get("passfile")
            .map(PathBuf::from)
            .or_else(|| (from.variable)("HOME").map(|home| Path::new(&home).join(".pgpass")))?;
        let host = if is_socket { "localhost" } else { host.as_str() };
        of_password_file(&(from.read_private)(&file)?, [host, &port.to_string(), &catalog, &user])
    });
    endpoint.password = password.map(Secret::new);
    endpoint.session_options = given.get("options").cloned();
    (endpoint.address, endpoint.user, endpoint.catalog) = (address, user, catalog);
    Ok(endpoint)
}

/// What `sslmode` asks for. Where PostgreSQL's programs would try both, nothing is encrypted.
fn tls(given: &BTreeMap<String, String>) -> Result<TlsMode, String> {
    let roots = given.get("sslrootcert").filter(|file| *file != "system").map(PathBuf::from);
    match given.get("sslmode").map_or("prefer", String::as_str) {
        "disable" | "allow" | "prefer" => Ok(TlsMode::Off),
        "require" if roots.is_none() => Ok(TlsMode::Encrypt),
        "require" | "verify-ca" | "verify-full" => Ok(TlsMode::Verify { roots }),
        other => Err(format!("invalid sslmode value: \"{other}\"")),
    }
}

/// A parameter of a connection, and the place of its value in the text, without quotes.
struct Parameter {
    name: String,
    value: String,
    place: Range<usize>,
}

/// Of a URL, of pairs, or of the name of a database; after an error, those in front of it.
fn parameters(text: &str, found: &mut Vec<Parameter>) -> Result<(), String> {
    match text {
        url if url.starts_with("postgresql://") || url.starts_with("postgres://") => {
            from_url(url, found)
        }
        pairs if pairs.contains('=') => from_pairs(pairs, found),
        name => {
            let (name, value) = ("dbname".to_owned(), name.to_owned());
            found.push(Parameter { name, value, place: 0..text.len() });
            Ok(())
        }
    }
}

/// Where a text that says where to connect to has passwords, in order.
pub(super) fn password_places(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    // If the text becomes whole by variables, only what is in front of them can be read: `password=x ${OTHERS}`.
    let _ = parameters(text, &mut found);
    // Or it follows one: `${OTHERS} password=x`.
    let passwords = found.into_iter().filter(|one| one.name.ends_with("password"));
    passwords.map(|one| one.place).collect()
}

/// Of a part of the text.
fn place(part: &str, text: &str) -> Range<usize> {
    let begin = part.as_ptr().addr() - text.as_ptr().addr();
    begin..begin + part.len()
}

/// `key=value` pairs; values may be quoted.
fn from_pairs(text: &str, found: &mut Vec<Parameter>) -> Result<(), String> {
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let missing = || format!("missing \"=\" after \"{rest}\" in connection info string");
        let (name, after) = rest.split_once('=').ok_or_else(missing)?;
        let mut value = String::new();
        let after = after.trim_start();
        let is_quoted = after.starts_with('\'');
        let mut chars = after.char_indices().skip(usize::from(is_quoted));
        let mut end = after.len();
        let mut is_closed = !is_quoted;
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => value.extend(chars.next().map(|(_, c)| c)),
                '\'' if is_quoted => {
                    (end, is_closed) = (at + 1, true);
                    break;
                }
                c if c.is_whitespace() && !is_quoted => {
                    end = at;
                    break;
                }
                c => value.push(c),
            }
        }
        if !is_closed {
            return Err("unterminated quoted string in connection info string".to_owned());
        }
        let quote = usize::from(is_quoted);
        let place = place(&after[quote..end - quote], text);
        found.push(Parameter { name: name.trim().to_owned(), value, place });
        rest = after[end..].trim_start();
    }
    Ok(())
}

fn from_url(url: &str, found: &mut Vec<Parameter>) -> Result<(), String> {
    let decode = |text: &str| {
        let bytes = percent_decode(text).and_then(|bytes| String::from_utf8(bytes).ok());
        bytes.ok_or_else(|| "invalid percent-encoded text in the URL".to_owned())
    };
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut set = |name: &str, text: &str| -> Result<(), String> {
        if !text.is_empty() {
            let (name, value, place) = (name.to_owned(), decode(text)?, place(text, url));
            found.push(Parameter { name, value, place });
        }
        Ok(())
    };
    let place = match authority.rsplit_once('@') {
        Some((credentials, place)) => {
            let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
            set("user", user)?;
            set("password", password)?;
            place
        }
        None => authority,
    };
    let (host, port) = match place.strip_prefix('[').and_then(|place| place.split_once(']')) {
        Some((host, port)) => (host, port.trim_start_matches(':')),
        None => place.rsplit_once(':').unwrap_or((place, "")),
    };
    set("host", host)?;
    set("port", port)?;
    set("dbname", path)?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        set(name, value)?;
    }
    Ok(())
}

/// The password of a line of a password file (host, port, database, user, password) that fits.
fn of_password_file(text: &str, wanted: [&str; 4]) -> Option<String> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut fields = vec![String::new()];
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => fields.last_mut()?.extend(chars.next()),
                ':' if fields.len() < 5 => fields.push(String::new()),
                c => fields.last_mut()?.push(c),
            }
        }
        let fits = fields.len() == 5
            && fields.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted);
        if fits { fields.pop() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(line: &str, variables: &[(&str, &str)]) -> Result<String, String> {
        let words: Vec<String> =
            line.split('|').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        let mut read_file = |_: &str| Ok(Vec::new());
        let options = Options::read(&words, &mut read_file).unwrap();
        let variable = |name: &str| {
            variables.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).to_owned())
        };
        let from = Surroundings {
            variable: &variable,
            system_user: &|| Some("os".to_owned()),
            read_private: &|_| Some("h:*:*:me:from\\:file\n".to_owned()),
            exists: &|path| path == Path::new("/tmp/.s.PGSQL.5433"),
        };
        resolve(&options, &from).map(|mut endpoint| {
            // Most tests are not about the name of the session.
            let name = format!("-c application_name={APPLICATION}");
            let own = endpoint.session_options.unwrap_or_default();
            let own = own.strip_suffix(&name).map(|own| own.trim_end().to_owned()).unwrap_or(own);
            endpoint.session_options = Some(own).filter(|own| !own.is_empty());
            let password = endpoint.password.as_ref().map_or("", Secret::reveal);
            format!("{endpoint} {password}")
        })
    }

    #[test]
    fn the_environment_sets_what_it_sets_for_pgbench() {
        let check = |given: &str, variables: &[(&str, &str)], expected: &str| {
            let variable = |name: &str| {
                variables.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).to_owned())
            };
            let from = Surroundings {
                variable: &variable,
                system_user: &|| None,
                read_private: &|_| None,
                exists: &|_| false,
            };
            let given = Some(given.to_owned()).filter(|given| !given.is_empty());
            assert_eq!(session_options(given, &from), expected);
        };
        check("", &[], "-c application_name=pgbench");
        check("", &[("PGAPPNAME", "my app")], "-c application_name=my\\ app");
        check("-c application_name=x", &[], "-c application_name=x");
        check(
            "-cwork_mem=1MB",
            &[("PGTZ", "Asia/Tokyo"), ("PGDATESTYLE", "SQL, DMY"), ("PGGEQO", "")],
            "-cwork_mem=1MB -c timezone=Asia/Tokyo -c datestyle=SQL,\\ DMY -c application_name=pgbench",
        );
        let encoding = |value: &str| resolved("", &[("PGCLIENTENCODING", value)]);
        assert!(encoding("UTF8").is_ok() && encoding("auto").is_ok());
        let why = "dyno does not support PGCLIENTENCODING=LATIN1; use UTF8";
        assert_eq!(encoding("LATIN1").unwrap_err(), why);
    }

    #[track_caller]
    fn check(line: &str, variables: &[(&str, &str)], expected: &str) {
        assert_eq!(resolved(line, variables).unwrap_or_else(|error| error), expected, "{line}");
    }

    #[test]
    fn what_is_given_comes_before_the_environment_and_the_defaults() {
        let of_socket = "postgresql://os@localhost:5432/os?host=/var/run/postgresql ";
        check("", &[], of_socket);
        check("-p|5433", &[], "postgresql://os@localhost:5433/os?host=/tmp ");
        check("-h|h|-U|me|shop", &[("HOME", "/home/me")], "postgresql://me@h:5432/shop from:file");
        check(
            "shop",
            &[("PGHOST", "/s"), ("PGUSER", "u"), ("PGPASSWORD", "p")],
            "postgresql://u@localhost:5432/shop?host=/s p",
        );
        check("-h|h", &[("PGDATABASE", "d"), ("PGPORT", "7")], "postgresql://os@h:7/d ");
        check("-h|x|host=h user='a b' password=\\'p", &[], "postgresql://a%20b@h:5432/a%20b 'p");
        check(
            "postgres://u:p%40@[::1]:6/d?sslmode=require",
            &[],
            "postgresql://u@[::1]:6/d?tls=encrypt p@",
        );
        check("postgresql:///d?host=/s", &[], "postgresql://os@localhost:5432/d?host=/s ");
        check(
            "options=-c\\ x=1",
            &[],
            "postgresql://os@localhost:5432/os?host=/var/run/postgresql&options=-c%20x%3D1 ",
        );
        check("-h|h", &[("PGOPTIONS", "-cx=2")], "postgresql://os@h:5432/os?options=-cx%3D2 ");
        check(
            "gssencmode=disable",
            &[],
            "dyno does not support connection option \"gssencmode\"; leave it out",
        );
        check(
            "",
            &[("PGSERVICE", "x")],
            "dyno does not support environment variable PGSERVICE; unset it",
        );
        check("-p|x", &[], "invalid port number: \"x\"");
        check("-h|a,b", &[], "dyno connects to one host; name only one");
        check("host='x", &[], "unterminated quoted string in connection info string");
        // The last one counts.
        check("postgresql://u:p@h?password=q", &[], "postgresql://u@h:5432/u q");
        check("host=h user=u password=p password=q", &[], "postgresql://u@h:5432/u q");
    }

    #[test]
    fn passwords_are_found_where_they_are_read() {
        let check = |text: &str, expected: &[&str]| {
            let found: Vec<&str> = password_places(text).into_iter().map(|at| &text[at]).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("postgresql://u:p%40@q@h/d", &["p%40@q"]);
        check("postgres://me@h/db?sslmode=require&password=p&x=y", &["p"]);
        check("postgresql://u:p@h?password=q", &["p", "q"]);
        check("host=h password = p user=u", &["p"]);
        check(r"password='p\'s q' host=h", &[r"p\'s q"]);
        check(r"password=p\ q password='r'", &[r"p\ q", "r"]);
        check("password=p ${OTHERS}", &["p"]);
        check("${OTHERS} password=p", &["p"]);
        check("${URL}&password=p", &["p"]);
        check("password='' host=h", &[""]);
        check("password", &[]);
        check("user=password", &[]);
    }
}
