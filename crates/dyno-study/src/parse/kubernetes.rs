//! What Kubernetes takes for the name of an image, an amount, a label or a namespace. It would refuse others itself,
//! but only once the run has begun.

/// The longest part of a label, and the longest name of a namespace.
const PART_MOST: usize = 63;
/// The longest prefix of a label's name.
const PREFIX_MOST: usize = 253;
/// The longest name of an image, and the longest tag.
const IMAGE_MOST: usize = 255;
const TAG_MOST: usize = 128;
/// Fewest hexadecimal digits of a digest.
const DIGEST_LEAST: usize = 32;

const SUFFIXES: [&str; 14] =
    ["", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Whether it begins and ends with a letter or digit, and has only these and `others` between.
fn is_word(text: &str, others: &str) -> bool {
    let is_edge = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(is_edge)
        && text.ends_with(is_edge)
        && text.chars().all(|c| is_edge(c) || others.contains(c))
}

fn is_small_word(text: &str, others: &str) -> bool {
    is_word(text, others) && !text.contains(|c: char| c.is_ascii_uppercase())
}

/// Whether it may be the name of an image: `HOST:PORT/PATH/NAME:TAG@DIGEST`, of which only the name is needed.
pub(super) fn is_image(text: &str) -> bool {
    let (name, digest) = match text.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (text, None),
    };
    let is_digest = |digest: &str| {
        digest.split_once(':').is_some_and(|(algorithm, hex)| {
            is_word(algorithm, "+._-")
                && hex.len() >= DIGEST_LEAST
                && hex.chars().all(|c| c.is_ascii_hexdigit())
        })
    };
    let last = name.rfind('/').map_or(0, |at| at + 1);
    let (name, tag) = match name[last..].split_once(':') {
        Some((end, tag)) => (&name[..last + end.len()], Some(tag)),
        None => (name, None),
    };
    let is_tag = |tag: &str| {
        let is_first = |c: char| c.is_ascii_alphanumeric() || c == '_';
        tag.starts_with(is_first)
            && tag.len() <= TAG_MOST
            && tag.chars().all(|c| is_first(c) || ".-".contains(c))
    };
    // The first part is a host where it cannot be a folder.
    let path = match name.split_once('/') {
        Some((host, path)) if host == "localhost" || host.contains(['.', ':']) => {
            let is_host = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
            if !host.chars().all(is_host) || host.starts_with(['-', '.']) || host.ends_with(':') {
                return false;
            }
            path
        }
        _ => name,
    };
    path.len() <= IMAGE_MOST
        && path.split('/').all(|part| is_small_word(part, "._-"))
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest)
}

/// Whether it is an amount above zero: a number with or without a suffix.
pub(super) fn is_amount(text: &str) -> bool {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let exponent = suffix.strip_prefix(['e', 'E']).filter(|rest| !rest.is_empty());
    let is_known = SUFFIXES.contains(&suffix) || exponent.is_some_and(|n| n.parse::<i8>().is_ok());
    is_known && number.parse::<f64>().is_ok_and(|number| number > 0.0)
}

/// Whether it may be a label: `NAME` or `PREFIX/NAME`, and its value.
pub(super) fn is_label(name: &str, value: &str) -> bool {
    let is_part = |text: &str| text.len() <= PART_MOST && is_word(text, "-_.");
    let is_name = match name.split_once('/') {
        Some((prefix, name)) => {
            prefix.len() <= PREFIX_MOST && is_small_word(prefix, "-.") && is_part(name)
        }
        None => is_part(name),
    };
    // Nodes have labels without a value, such as those of their roles.
    is_name && (value.is_empty() || is_part(value))
}

pub(super) fn is_namespace(text: &str) -> bool {
    text.len() <= PART_MOST && is_small_word(text, "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_have_names_as_registries_have_them() {
        let digest = "a".repeat(64);
        for good in [
            "dyno",
            "dyno:1",
            "library/dyno",
            "localhost/dyno:1",
            "localhost:5000/dyno",
            "registry.example:5000/team/dyno_x:v1.2-rc",
            "Registry.Example/dyno",
            "[::1]:5000/dyno:1",
            &format!("dyno@sha256:{digest}"),
            &format!("a.example/dyno:1@sha256:{digest}"),
        ] {
            assert!(is_image(good), "{good}");
        }
        for bad in [
            "",
            "Dyno",
            "LocalHost/Bad:1",
            "a b",
            "dyno:",
            "dyno:-1",
            "/dyno",
            "a//b",
            "a/",
            "-a.example/dyno",
            "dyno@sha256:12",
            "dyno@",
            "https://registry.example/dyno",
        ] {
            assert!(!is_image(bad), "{bad}");
        }
    }

    #[test]
    fn amounts_are_numbers_with_a_suffix() {
        for good in ["2", "0.5", "500m", "4Gi", "2Ti", "1e3", "2E6", "1E", "2147483648", "1.5G"] {
            assert!(is_amount(good), "{good}");
        }
        for bad in ["", "lots", "0", "-1", "4GB", "4 Gi", "m", "1.2.3", "50%", "1e", "NaN", "inf"] {
            assert!(!is_amount(bad), "{bad}");
        }
    }

    #[test]
    fn labels_and_namespaces_are_words() {
        for (name, value) in [("app", "sql"), ("disk.example/kind", "SSD_1"), ("a", "1"), ("a", "")]
        {
            assert!(is_label(name, value), "{name}={value}");
        }
        let long = "a".repeat(64);
        for (name, value) in
            [("a/b/c", "1"), ("-a", "1"), ("A.b/c", "1"), ("a", "-1"), ("", "1"), ("a", &long)]
        {
            assert!(!is_label(name, value), "{name}={value}");
        }
        assert!(is_namespace("perf-1") && !is_namespace("Perf") && !is_namespace("a.b"));
        assert!(!is_namespace(&long) && !is_namespace("-a"));
    }
}
