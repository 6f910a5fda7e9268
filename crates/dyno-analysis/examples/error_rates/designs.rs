//! What designs can find: the smallest effect with 80 % power, by noise and repetitions.

use std::io::Write;

use dyno_analysis::statistics::Design;

use crate::{RULE, head};

pub(crate) fn table(out: &mut dyn Write) -> std::io::Result<()> {
    let repetitions = [2, 3, 4, 5, 6, 8, 10, 20];
    let columns = repetitions.map(|n| format!(" | n = {n}")).concat();
    head(out, &format!("variants × steps | noise{columns}"), 2)?;
    for (variants, steps) in [(1, 1), (1, 4), (3, 1), (3, 4), (5, 4), (7, 6)] {
        for noise in [0.01, 0.02, 0.03, 0.08] {
            let mut cells = vec![format!("{variants} × {steps}"), format!("{} %", noise * 100.0)];
            for repetitions in repetitions {
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
            writeln!(out, "| {} |", cells.join(" | "))?;
        }
    }
    Ok(())
}
