//! The right word for a wrong one: the nearest by edit distance.

/// Advice about an unknown word: the nearest of `words`, or all of them where none is near.
pub(crate) fn did_you_mean<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    match nearest(word, &words) {
        Some(near) => format!("did you mean `{near}`?"),
        None => match words.as_slice() {
            [] => "there are none".to_owned(),
            [only] => format!("only `{only}` is accepted here"),
            _ => format!("choose one of {}", list(&words)),
        },
    }
}

/// The words that are near to `word`, the nearest first: those that a few letters make of it, then
/// those that begin with it.
pub fn nearest_words<'a>(word: &str, words: &[&'a str]) -> Vec<&'a str> {
    let wanted = letters(word);
    let near = |&candidate: &&'a str| {
        let found = letters(candidate);
        let by_edits = edits(&wanted, &found);
        let by_head = (wanted.len() >= HEAD_LEAST && found.starts_with(&wanted))
            .then(|| EDITS_MOST + found.len() - wanted.len());
        Some((by_edits.or(by_head)?, candidate))
    };
    let mut near: Vec<(usize, &'a str)> = words.iter().filter_map(near).collect();
    near.sort_by_key(|(distance, _)| *distance);
    near.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Letters from which on a word may be the beginning of another.
const HEAD_LEAST: usize = 3;

const EDITS_MOST: usize = 4;

/// How far a word is from another, if it is near: at most a third of its letters.
fn edits(wanted: &[char], candidate: &[char]) -> Option<usize> {
    // Words of this length are not typing mistakes, and the distance is quadratic in it.
    const LETTERS_MAX: usize = 64;
    if wanted.len() > LETTERS_MAX {
        return None;
    }
    let edits = distance(wanted, candidate);
    (edits <= ((candidate.len() + 1) / 3).min(EDITS_MOST)).then_some(edits)
}

/// Words in backticks, separated by commas; the end of a long list is cut.
pub(crate) fn list(words: &[&str]) -> String {
    const SHOWN_MAX: usize = 24;
    let mut text: Vec<String> =
        words.iter().take(SHOWN_MAX).map(|word| format!("`{word}`")).collect();
    text.extend((words.len() > SHOWN_MAX).then(|| format!("and {} more", words.len() - SHOWN_MAX)));
    text.join(", ")
}

fn nearest<'a>(word: &str, words: &[&'a str]) -> Option<&'a str> {
    let wanted = letters(word);
    let near = words.iter().filter_map(|&one| Some((edits(&wanted, &letters(one))?, one)));
    near.min_by_key(|(edits, _)| *edits).map(|(_, candidate)| candidate)
}

/// Case and the kind of dash do not count.
fn letters(word: &str) -> Vec<char> {
    word.chars().map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
}

/// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours
/// (Damerau 1964, each stretch edited at most once).
fn distance(left: &[char], right: &[char]) -> usize {
    let mut before = vec![0; right.len() + 1];
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for row in 1..=left.len() {
        let mut current = vec![row; right.len() + 1];
        for column in 1..=right.len() {
            let (a, b) = (left[row - 1], right[column - 1]);
            let replaced = last[column - 1] + usize::from(a != b);
            let mut edits = replaced.min(last[column] + 1).min(current[column - 1] + 1);
            let is_swap = row > 1 && column > 1 && a == right[column - 2] && left[row - 2] == b;
            if is_swap {
                edits = edits.min(before[column - 2] + 1);
            }
            current[column] = edits;
        }
        before = std::mem::replace(&mut last, current);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_distances() {
        let check = |left: &str, right: &str, expected: usize| {
            assert_eq!(distance(&letters(left), &letters(right)), expected, "{left} {right}");
        };
        check("", "", 0);
        check("abc", "", 3);
        check("kitten", "sitting", 3);
        check("porduct", "product", 1);
        check("ca", "abc", 3);
        check("Table-Size", "table_size", 0);
    }

    #[test]
    fn advice_names_the_nearest_or_all() {
        let check = |word: &str, words: &[&str], expected: &str| {
            assert_eq!(did_you_mean(word, words.iter().copied()), expected);
        };
        check("porduct", &["url", "product"], "did you mean `product`?");
        check("zzz", &["url", "product"], "choose one of `url`, `product`");
        check("b", &["a", "c"], "choose one of `a`, `c`");
        check("ab", &["aa", "cc"], "did you mean `aa`?");
        check("zzz", &["url"], "only `url` is accepted here");
        check("zzz", &[], "there are none");
        check(&"z".repeat(100_000), &["url"], "only `url` is accepted here");
    }

    #[test]
    fn near_words_come_nearest_first() {
        let check = |word: &str, words: &[&str], expected: &[&str]| {
            assert_eq!(nearest_words(word, words), expected, "{word}");
        };
        check("rn", &["report", "run", "sql"], &["run"]);
        check("oltp_inser", &["oltp_update", "oltp_insert"], &["oltp_insert"]);
        check("insert", &["bulk_insert", "insert-benchmark", "oltp_insert"], &["insert-benchmark"]);
        check("tpca", &["tpcc", "tpcb"], &["tpcc", "tpcb"]);
        check("zzz", &["run"], &[]);
        check(&"z".repeat(100_000), &["run"], &[]);
    }

    proptest::proptest! {
        #[test]
        fn distance_is_a_symmetric_measure(left in "[a-c]{0,7}", right in "[a-c]{0,7}") {
            let (l, r) = (letters(&left), letters(&right));
            let edits = distance(&l, &r);
            proptest::prop_assert_eq!(edits, distance(&r, &l));
            proptest::prop_assert_eq!(edits == 0, left == right);
            proptest::prop_assert!(edits <= l.len().max(r.len()));
        }
    }
}
