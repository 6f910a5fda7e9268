//! What designs can find: the smallest effect with 80 % power, by noise and repetitions.

use dyno_analysis::statistics::Design;

use crate::{RULE, Rows};

pub(crate) const COLUMNS: &str = "variants × steps | noise | n = 2 | n = 3 | n = 4 | n = 5 | n = \
    6 | n = 8 | n = 10 | n = 20";

pub(crate) fn table(row: Rows<'_>) {
    for (variants, steps) in [(1, 1), (1, 4), (3, 1), (3, 4), (5, 4), (7, 6)] {
        for noise in [0.01, 0.02, 0.03, 0.08] {
            let mut cells = vec![format!("{variants} × {steps}"), format!("{} %", noise * 100.0)];
            for repetitions in [2, 3, 4, 5, 6, 8, 10, 20] {
                let design = Design { repetitions, variants, steps, interleaved: true, rule: RULE };
                cells.push(design.smallest_effect(noise, 0.8).map_or_else(
                    || "–".to_owned(),
                    |effect| match effect {
                        e if e > 10.0 => "> × 10".to_owned(),
                        e if e >= 1.0 => format!("× {:.1}", 1.0 + e),
                        e => format!("{:.1} %", 100.0 * e),
                    },
                ));
            }
            row(cells.join(" | "));
        }
    }
}
