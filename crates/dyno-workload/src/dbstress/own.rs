//! The objects that a client draws: its own, so that clients never conflict, or any. Formulas are
//! the sysbench port's, with `tid` the client's number from 0 and N the number of objects:
//!
//! - `slice` (v05): tid · N / clients + a number from 5 to N / clients − 5;
//! - `mod2000` (v06): r − r mod 2000 + tid + 1, for r from 0 to N − 1;
//! - `mod2t` (v07): r − r mod (2 · clients) + tid + 1.
//!
//! Two departures: where the last two give N or more, the original asks for a missing object, and
//! here such numbers are not drawn; and all of a client's objects are equally likely, while the
//! original draws those of an incomplete last round slightly less.

use dyno_units::RandomStream;

const MARGIN: u64 = 5;

const CLIENTS_V06: u64 = 2000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    Slice,
    Mod2000,
    Mod2T,
    Random,
}

impl Sharing {
    pub(super) const ALL: [Sharing; 4] =
        [Sharing::Slice, Sharing::Mod2000, Sharing::Mod2T, Sharing::Random];

    /// Whether clients have objects of their own, and no row is touched by two of them.
    pub(super) fn is_private(self) -> bool {
        self != Sharing::Random
    }

    /// Whether each of so many clients has an object to draw; if not, what to do.
    pub(super) fn check(self, objects: u64, clients: u64) -> Result<(), String> {
        let least = match self {
            Sharing::Slice => clients.saturating_mul(2 * MARGIN),
            Sharing::Mod2000 => CLIENTS_V06,
            Sharing::Mod2T => clients.saturating_mul(2),
            Sharing::Random => 1,
        };
        if self == Sharing::Mod2000 && clients > CLIENTS_V06 {
            return Err(format!(
                "option `ref`: mod2000 has objects for {CLIENTS_V06} clients, not for {clients}; \
                 choose mod2t or slice"
            ));
        }
        if objects < least {
            return Err(format!(
                "option `obj_table_size`: {clients} clients need at least {least} objects to have \
                 some of their own each, not {objects}; raise it, or choose another `ref`"
            ));
        }
        Ok(())
    }

    pub(super) fn owns(self, objects: u64, (client, clients): (u64, u64), object: u64) -> bool {
        match self {
            Sharing::Slice => (start(objects, client, clients)
                ..start(objects, client + 1, clients))
                .contains(&object),
            Sharing::Mod2000 => object % CLIENTS_V06 == (client + 1) % CLIENTS_V06,
            Sharing::Mod2T => object % (2 * clients) == client + 1,
            Sharing::Random => true,
        }
    }
}

fn start(objects: u64, client: u64, clients: u64) -> u64 {
    (u128::from(objects) * u128::from(client) / u128::from(clients)) as u64
}

/// The objects that one client draws, each as likely as any other: `first`, `first + stride`, …
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Own {
    first: u64,
    stride: u64,
    /// How many; at least 1 if [`Sharing::check`] was asked before.
    n: u64,
}

impl Own {
    pub(super) fn of(sharing: Sharing, objects: u64, (client, clients): (u64, u64)) -> Own {
        let each = |first: u64, stride: u64| {
            let n = objects.saturating_sub(first).div_ceil(stride);
            Own { first, stride, n }
        };
        match sharing {
            Sharing::Slice => {
                let first = start(objects, client, clients) + MARGIN;
                // From 5 to N / clients − 5, both included.
                let n = (objects / clients).saturating_sub(2 * MARGIN - 1);
                Own { first, stride: 1, n }
            }
            Sharing::Mod2000 => each((client + 1) % CLIENTS_V06, CLIENTS_V06),
            Sharing::Mod2T => each(client + 1, 2 * clients),
            Sharing::Random => each(0, 1),
        }
    }

    #[inline]
    pub(super) fn draw(&self, random: &mut RandomStream) -> u64 {
        random.below(self.n())
    }

    #[inline]
    pub(super) fn object(&self, place: u64) -> u64 {
        self.first + self.stride * place
    }

    pub(super) fn n(&self) -> u64 {
        self.n.max(1)
    }

    /// The first tenth of them, for tests of a wrong skew.
    #[cfg(test)]
    pub(super) fn first_tenth(self) -> Own {
        Own { n: self.n / 10, ..self }
    }
}

#[cfg(test)]
mod tests {
    use dyno_units::Seed;
    use proptest::prelude::*;

    use super::*;

    fn members(own: &Own) -> Vec<u64> {
        (0..own.n).map(|place| own.object(place)).collect()
    }

    #[test]
    fn own_objects_are_those_of_the_formulas() {
        let check = |sharing, place, expected: &[u64]| {
            assert_eq!(members(&Own::of(sharing, 100, place)), expected, "{sharing:?}");
        };
        check(Sharing::Slice, (0, 8), &[5, 6, 7]);
        check(Sharing::Slice, (7, 8), &[92, 93, 94]);
        check(Sharing::Mod2T, (0, 10), &[1, 21, 41, 61, 81]);
        check(Sharing::Mod2T, (9, 10), &[10, 30, 50, 70, 90]);
        check(Sharing::Mod2000, (41, 50), &[42]);
        assert_eq!(members(&Own::of(Sharing::Mod2000, 6000, (1999, 2000))), [0, 2000, 4000]);
        assert_eq!(Own::of(Sharing::Random, 100, (3, 8)).n(), 100);
    }

    #[test]
    fn shares_of_the_data_within_reach_are_those_of_the_original() {
        let reached = |sharing, clients: u64| -> u64 {
            (0..clients).map(|client| Own::of(sharing, 10_240_000, (client, clients)).n()).sum()
        };
        // 128 sessions: 6.4 %.
        assert_eq!(reached(Sharing::Mod2000, 128), 655_360);
        assert_eq!(reached(Sharing::Mod2T, 128), 5_120_000);
        assert_eq!(reached(Sharing::Slice, 128), 10_240_000 - 128 * 9);
    }

    #[test]
    fn too_few_objects_are_refused() {
        let check = |sharing: Sharing, objects, clients, expected: Option<&str>| {
            let result = sharing.check(objects, clients);
            match expected {
                None => assert_eq!(result, Ok(())),
                Some(words) => {
                    let error = result.expect_err("there are too few");
                    assert!(error.contains(words), "{error}");
                }
            }
        };
        check(Sharing::Slice, 16_000, 1600, None);
        check(Sharing::Slice, 15_999, 1600, Some("at least 16000 objects"));
        check(Sharing::Mod2000, 2000, 2000, None);
        check(Sharing::Mod2000, 1999, 1, Some("at least 2000 objects"));
        check(Sharing::Mod2000, 1_000_000, 2001, Some("choose mod2t or slice"));
        check(Sharing::Mod2T, 3200, 1600, None);
        check(Sharing::Mod2T, 3199, 1600, Some("at least 3200 objects"));
        check(Sharing::Random, 1, 1600, None);
    }

    proptest! {
        #[test]
        fn what_a_client_draws_is_its_own_and_no_other_client_s(
            which in 0_usize..4,
            clients in 1_u64..300,
            more in 0_u64..5000,
            seed: u64,
        ) {
            let sharing = Sharing::ALL[which];
            let objects = 10 * clients + 2000 + more;
            prop_assert_eq!(sharing.check(objects, clients), Ok(()));
            let mut random = Seed(seed).stream();
            for client in [0, clients / 2, clients - 1] {
                let own = Own::of(sharing, objects, (client, clients));
                prop_assert!(own.n >= 1);
                for _ in 0..20 {
                    let object = own.object(own.draw(&mut random));
                    prop_assert!(object < objects);
                    prop_assert!(sharing.owns(objects, (client, clients), object));
                    let other = (client + 1) % clients;
                    if other != client && sharing.is_private() {
                        prop_assert!(!sharing.owns(objects, (other, clients), object));
                    }
                }
            }
        }
    }
}
