//! The unprivileged user of servers when Dyno is root: an account `dyno`, or a user id that neither
//! Debian's policy (section 9.2.2) nor systemd (UIDS-GIDS.md) assigns; never `nobody`.

use std::ops::RangeInclusive;

use crate::error::{OrKeeper, Result};

const NAME: &str = "dyno";
/// Higher ids may be persons.
const SYSTEM_IDS: RangeInclusive<u32> = 1..=999;
/// Never assigned to an account.
const RESERVED_IDS: RangeInclusive<u32> = 65_520..=65_533;

/// The user of root's servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunAs {
    /// Never 0.
    pub uid: u32,
    pub gid: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) user: RunAs,
    /// Some programs refuse to run without a name.
    pub(super) has_name: bool,
}

impl Account {
    /// `None` unless Dyno is root: servers run as Dyno's user.
    pub(super) fn find() -> Result<Option<Account>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let passwd =
            std::fs::read_to_string("/etc/passwd").or_keeper(|| "/etc/passwd cannot be read")?;
        // Without groups the user ids have to do.
        let group = std::fs::read_to_string("/etc/group").unwrap_or_default();
        choose(&passwd, &group).map(Some).or_keeper(|| {
            "Dyno runs as root, and servers must not; there is no system account `dyno` to run \
                 them as. Create one (`useradd --system --no-create-home --shell /usr/sbin/nologin \
                 dyno`), or run Dyno as a user other than root"
        })
    }

    /// Like `/etc/passwd`, with this user and root.
    pub(super) fn passwd(&self) -> String {
        let RunAs { uid, gid } = self.user;
        format!(
            "root:x:0:0:root:/root:/bin/sh\n\
             {NAME}:x:{uid}:{gid}:servers of Dyno:/nonexistent:/usr/sbin/nologin\n"
        )
    }
}

/// From `/etc/passwd` and `/etc/group`.
fn choose(passwd: &str, group: &str) -> Option<Account> {
    let account = find_user(passwd, NAME).filter(|user| SYSTEM_IDS.contains(&user.uid));
    if let Some(user) = account {
        return Some(Account { user, has_name: true });
    }
    let is_taken = |text: &str, id: u32| {
        let id = id.to_string();
        text.lines().any(|line| line.split(':').nth(2) == Some(id.as_str()))
    };
    let id = RESERVED_IDS.into_iter().find(|id| !is_taken(passwd, *id) && !is_taken(group, *id))?;
    Some(Account { user: RunAs { uid: id, gid: id }, has_name: false })
}

fn find_user(passwd: &str, name: &str) -> Option<RunAs> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next()? != name {
            return None;
        }
        let uid = fields.nth(1)?.parse().ok()?;
        Some(RunAs { uid, gid: fields.next()?.parse().ok()? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_root_run_as_a_user_of_their_own() {
        let check = |passwd: &str, group: &str, expected: Option<(u32, u32, bool)>| {
            let found = choose(passwd, group).map(|a| (a.user.uid, a.user.gid, a.has_name));
            assert_eq!(found, expected, "{passwd}");
        };
        let others = "root:x:0:0::/:/bin/sh\nbroken\nnobody:x:65534:65534:n:/:/bin/false\n";
        check(others, "", Some((65_520, 65_520, false)));
        check(&format!("{others}dyno:x:997:996::/:/bin/false\n"), "", Some((997, 996, true)));
        // A person of this name has files to protect.
        check(&format!("{others}dyno:x:1001:1001::/:/bin/sh\n"), "", Some((65_520, 65_520, false)));
        check("dyno:x:0:0::/:/bin/sh\n", "", Some((65_520, 65_520, false)));
        check("a:x:65520:1::/:/\n", "b:x:65521:\n", Some((65_522, 65_522, false)));
        let full: String = RESERVED_IDS.map(|id| format!("u{id}:x:{id}:1::/:/\n")).collect();
        check(&full, "", None);
    }

    #[test]
    fn the_file_for_programs_that_want_a_name_has_one() {
        let account = choose("", "").expect("an id is free");
        assert_eq!(find_user(&account.passwd(), NAME), Some(account.user));
    }
}
