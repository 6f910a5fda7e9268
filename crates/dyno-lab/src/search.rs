//! The search for the highest load that holds: which level to probe next, and what was found. Pure:
//! it knows neither clock nor server.
//!
//! It raises the load by a constant factor until a probe breaks the limit, halves the bracket on a
//! logarithmic scale down to the precision, and then measures both ends once more, as one probe may
//! be luck: the level found has held twice, and the lowest that broke has broken twice. A second
//! probe that contradicts the first moves the bracket by small steps. METHOD.md says how good that
//! is.

/// Most probes of one search, whatever the noise.
const PROBES_MOST: usize = 60;

/// Probes that must agree before a level counts as found.
const AGREEING: u32 = 2;

/// Significant digits of fractional levels, and tolerance when ends of a bracket are compared.
const DIGITS: i32 = 4;
const ROUNDING: f64 = 1e-3;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Space {
    pub(crate) start: f64,
    /// The lowest level; above zero.
    pub(crate) least: f64,
    pub(crate) most: f64,
    /// The factor by which the level is changed until a bracket is known; above 1.
    pub(crate) growth: f64,
    /// How near the ends of the bracket have to come, as a fraction.
    pub(crate) precision: f64,
    pub(crate) is_whole: bool,
}

impl Space {
    /// Whether nothing lies between these levels that is worth a probe.
    fn is_close(&self, held: f64, broken: f64) -> bool {
        let is_next = self.is_whole && broken - held < 1.5;
        is_next || broken / held <= (1.0 + self.precision) * (1.0 + ROUNDING)
    }

    /// A level within the space and strictly between the ends of the bracket.
    fn level_between(&self, level: f64, held: Option<f64>, broken: Option<f64>) -> f64 {
        if !self.is_whole {
            return rounded(level).clamp(self.least, self.most);
        }
        let low = held.map_or(self.least, |held| held + 1.0);
        let high = broken.map_or(self.most, |broken| broken - 1.0);
        level.round().max(low).min(high)
    }
}

/// A level as a person would write it.
pub(crate) fn rounded(level: f64) -> f64 {
    let power = DIGITS - 1 - level.log10().floor() as i32;
    // Powers below zero would divide twice, and so not give the nearest number to 1234.
    if power >= 0 {
        let factor = 10_f64.powi(power);
        (level * factor).round() / factor
    } else {
        let factor = 10_f64.powi(-power);
        (level / factor).round() * factor
    }
}

#[derive(Clone, Copy, Debug)]
struct Level {
    value: f64,
    n_held: u32,
    n_broken: u32,
    /// According to the latest probe. In the order of levels, first all hold, then all are broken:
    /// probes are made only at the ends of the bracket or between them.
    is_holding: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Found {
    /// The highest level that held, and held again.
    pub(crate) held: Option<f64>,
    /// The lowest level above it that broke the limit.
    pub(crate) broken: Option<f64>,
    /// Whether the search came to its end, rather than to its last probe.
    pub(crate) is_settled: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Search {
    space: Space,
    levels: Vec<Level>,
    n_probes: usize,
    /// The factor of the next step up …
    stride_up: f64,
    /// … and down: small after a contradiction, growing while it goes on in one direction.
    stride_down: f64,
}

impl Search {
    pub(crate) fn new(space: Space) -> Search {
        let stride = space.growth;
        Search { space, levels: Vec::new(), n_probes: 0, stride_up: stride, stride_down: stride }
    }

    /// The level to be probed next; none when the search is over.
    pub(crate) fn next_level(&self) -> Option<f64> {
        if self.n_probes >= PROBES_MOST {
            return None;
        }
        let space = &self.space;
        let (held, broken) = (self.held(), self.broken());
        let wanted = match (held.map(|one| one.value), broken.map(|one| one.value)) {
            (None, None) => space.start,
            (Some(held), None) if held < space.most => held * self.stride_up,
            (None, Some(broken)) if broken > space.least => broken / self.stride_down,
            (Some(held), Some(broken)) if !space.is_close(held, broken) => {
                self.between(held, broken)
            }
            _ => return self.unconfirmed(),
        };
        let value = |level: Option<&Level>| level.map(|one| one.value);
        Some(space.level_between(wanted, value(held), value(broken)))
    }

    /// The middle on a logarithmic scale, or less far from where a contradiction was.
    fn between(&self, held: f64, broken: f64) -> f64 {
        let middle = (held * broken).sqrt();
        if self.stride_down < self.space.growth {
            middle.max(broken / self.stride_down)
        } else {
            middle.min(held * self.stride_up)
        }
    }

    /// The end of the bracket that was not seen twice, the lower one first.
    fn unconfirmed(&self) -> Option<f64> {
        let held = self.held().filter(|level| level.n_held < AGREEING);
        let broken = self.broken().filter(|level| level.n_broken < AGREEING);
        held.or(broken).map(|level| level.value)
    }

    pub(crate) fn tell(&mut self, value: f64, is_holding: bool) {
        self.n_probes += 1;
        let at = self.levels.partition_point(|level| level.value < value);
        if self.levels.get(at).is_none_or(|level| level.value > value) {
            self.levels.insert(at, Level { value, n_held: 0, n_broken: 0, is_holding });
        }
        let level = &mut self.levels[at];
        let is_contradiction = level.is_holding != is_holding;
        level.is_holding = is_holding;
        *(if is_holding { &mut level.n_held } else { &mut level.n_broken }) += 1;
        let (onward, back) = if is_holding {
            (&mut self.stride_up, &mut self.stride_down)
        } else {
            (&mut self.stride_down, &mut self.stride_up)
        };
        let growth = self.space.growth;
        *onward = if is_contradiction {
            (1.0 + self.space.precision).min(growth)
        } else {
            (*onward * *onward).min(growth)
        };
        *back = growth;
    }

    pub(crate) fn found(&self) -> Found {
        let confirmed =
            self.levels.iter().rev().find(|level| level.is_holding && level.n_held >= AGREEING);
        let above = |level: &&Level| confirmed.is_none_or(|held| level.value > held.value);
        let broken = self.levels.iter().filter(above).find(|level| !level.is_holding);
        Found {
            held: confirmed.map(|level| level.value),
            broken: broken.map(|level| level.value),
            is_settled: self.n_probes > 0
                && self.n_probes < PROBES_MOST
                && self.next_level().is_none(),
        }
    }

    fn held(&self) -> Option<&Level> {
        self.levels.iter().rev().find(|level| level.is_holding)
    }

    fn broken(&self) -> Option<&Level> {
        self.levels.iter().find(|level| !level.is_holding)
    }
}

#[cfg(test)]
mod tests;
