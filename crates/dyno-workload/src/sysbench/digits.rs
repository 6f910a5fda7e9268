//! Random text of sysbench's tables: groups of eleven digits joined by `-`.

use dyno_units::RandomStream;

use crate::row::pair;

const GROUP_DIGITS: usize = 11;

pub(super) const C_GROUPS: usize = 10;

/// Groups in column `pad`: 59 characters.
pub(super) const PAD_GROUPS: usize = 5;

pub(super) const fn text_len(n_groups: usize) -> usize {
    n_groups * (GROUP_DIGITS + 1) - 1
}

/// Appends `n_groups` random groups. One draw makes a whole group.
pub(super) fn push_groups(out: &mut Vec<u8>, n_groups: usize, random: &mut RandomStream) {
    for idx in 0..n_groups {
        if idx > 0 {
            out.push(b'-');
        }
        out.extend_from_slice(&group(random.below(10_u64.pow(GROUP_DIGITS as u32))));
    }
}

fn group(value: u64) -> [u8; GROUP_DIGITS] {
    let mut digits = [0; GROUP_DIGITS];
    // Two halves, because arithmetic in 32 bits is faster: 1 + 4 digits and 6 digits.
    let mut high = (value / 1_000_000) as u32;
    let mut low = (value % 1_000_000) as u32;
    for at in [9, 7, 5] {
        digits[at..at + 2].copy_from_slice(pair(low % 100));
        low /= 100;
    }
    for at in [3, 1] {
        digits[at..at + 2].copy_from_slice(pair(high % 100));
        high /= 100;
    }
    digits[0] = b'0' + high as u8;
    digits
}

#[cfg(test)]
mod tests {
    use dyno_units::Seed;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_are_those_of_the_columns() {
        assert_eq!((text_len(C_GROUPS), text_len(PAD_GROUPS)), (119, 59));
    }

    #[test]
    fn every_digit_is_equally_likely_at_every_place() {
        let mut random = Seed(9).stream();
        let mut text = Vec::new();
        let mut counts = [[0_u32; 10]; GROUP_DIGITS];
        for _ in 0..10_000 {
            text.clear();
            push_groups(&mut text, 2, &mut random);
            assert_eq!((text.len(), text[GROUP_DIGITS]), (text_len(2), b'-'));
            for (place, digit) in text[..GROUP_DIGITS].iter().enumerate() {
                counts[place][usize::from(digit - b'0')] += 1;
            }
        }
        for place in counts {
            // 1000 expected, standard deviation 30.
            assert!(place.iter().all(|count| (850..1150).contains(count)), "{place:?}");
        }
    }

    proptest! {
        #[test]
        fn a_group_is_its_number(value in 0_u64..100_000_000_000) {
            let text = group(value);
            prop_assert_eq!(std::str::from_utf8(&text).unwrap(), format!("{value:011}"));
        }
    }
}
