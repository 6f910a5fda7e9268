//! Heat maps: how many transactions took how long, over time, for each variant; and the same counts
//! as the page's script reads them.

use crate::chart::lines::{Across, LinesChart};
use crate::chart::picture::{Picture, STRENGTHS, address, key};
use crate::chart::{Frame, variant_class};
use crate::document::{Block, Element, Figure, Piece, Text};
use crate::format::{self, Unit};
use crate::times::{Grid, KeyOf, Times, bucket_start_us};
use crate::view::View;

/// Buckets of a grid that make one row of a picture.
const MERGED: u16 = 2;

/// Maps that are open.
const OPEN_MOST: usize = 4;

const COLUMNS_LEAST: usize = 10;

/// What the maps of one step have in common, so that they can be read side by side.
struct Common {
    /// First and last row.
    rows: (u16, u16),
    /// Smallest and largest number of transactions in a pixel, per second.
    density: (f64, f64),
}

/// A map for each variant at a step, of one kind of transaction (empty: all).
pub(crate) fn maps(view: &View<'_>, times: &Times, at: (usize, &str)) -> Vec<Block> {
    let (step, kind) = at;
    let grids = times.of_step(step).filter(|((_, _, k), _)| k == kind);
    let grids: Vec<(usize, &Grid)> = grids.map(|((v, _, _), grid)| (*v, grid)).collect();
    // Blocks of a few columns have no shape.
    let is_short = grids.iter().all(|(_, grid)| grid.columns.len() < COLUMNS_LEAST);
    let Some(common) = common(&grids).filter(|_| !is_short) else { return Vec::new() };
    let title = match kind {
        "" => "Response times over time".to_owned(),
        kind => format!("Response times over time, {}", view.kind_title(kind)),
    };
    let length = grids.first().map_or(1.0, |(_, grid)| grid.column_s);
    let modes = format!(
        "transactions per second in each cell (one scale for all heat maps): a {} wide, 19 % high; \
         repetitions merged",
        column_words(length)
    );
    let modes = Element::of("span", modes).class("quiet");
    let modes = Text::of(Piece::Drawing(key(common.density))).element(modes);
    let mut blocks = vec![Block::heading(4, &*title), Block::Note("modes", modes)];
    let lacking = times.lacking_in_words();
    if !lacking.is_empty() {
        blocks.push(Block::quiet(format!(
            "Some seconds are missing: the interval log of trial {lacking} is truncated or \
             missing. The estimates do not depend on it."
        )));
    }
    let map = |(variant, grid): (usize, &Grid)| map(view, (variant, step, kind), grid, &common);
    let n = grids.len();
    blocks.push(Block::group("charts small", grids.into_iter().map(map).collect()));
    if n <= OPEN_MOST {
        return blocks;
    }
    // More than a row of them is looked up.
    blocks.remove(0);
    vec![Block::fold(format!("{title}: {n} heat maps"), false, blocks)]
}

/// `second`, `5 s`.
fn column_words(length: f64) -> String {
    if length == 1.0 { "second".to_owned() } else { format::seconds(length) }
}

fn common(grids: &[(usize, &Grid)]) -> Option<Common> {
    let mut rows: Option<(u16, u16)> = None;
    let mut density = (f64::MAX, 0.0_f64);
    for (_, grid) in grids {
        for column in grid.columns.iter().filter(|column| column.is_measured()) {
            for (bucket, n) in column.counts.iter() {
                let row = bucket / MERGED;
                rows = Some(rows.map_or((row, row), |(a, b)| (a.min(row), b.max(row))));
                let dense = n as f64 / column.seconds;
                density = (density.0.min(dense), density.1.max(dense * f64::from(MERGED)));
            }
        }
    }
    Some(Common { rows: rows?, density })
}

fn map(view: &View<'_>, (variant, step, kind): KeyOf<'_>, grid: &Grid, common: &Common) -> Block {
    let (first, last) = common.rows;
    let edges = (bucket_start_us(first * MERGED), bucket_start_us((last + 1) * MERGED));
    let to_s = grid.to_s();
    let name = view.variant(variant);
    let across = Across::Seconds { from: grid.from_s, to: to_s };
    let chart = LinesChart {
        label: format!("Response times over time, {name}, {}", view.step(step)),
        row: format!("step{step}"),
        is_log: true,
        picture: Some(Picture {
            name: format!("{variant} {step} {kind}"),
            address: address(grid.columns.len(), &pixels(grid, common)),
            across: (grid.from_s, to_s),
            values: edges,
        }),
        ..LinesChart::new(across, Unit::Micros, edges, Frame::new(370.0, 170.0))
    };
    // The counts themselves: what a script makes percentiles of.
    let data = Element::new("data").class("grid").hidden().with("data-v", variant);
    let data = data.with("data-step", step).with("data-kind", kind).with("data-from", grid.from_s);
    let data = data.with("data-column", grid.column_s).with("value", grid.encode());
    let class = format!("of {}", variant_class(variant));
    let figure = Figure::new(view.name(variant), "", chart.svg());
    Figure { class, data: Some(data), ..figure }.block()
}

/// The strengths of a picture's pixels, row by row from the longest times down.
fn pixels(grid: &Grid, common: &Common) -> Vec<u8> {
    let (first, last) = common.rows;
    let width = grid.columns.len();
    let mut sums = vec![0_u64; width * usize::from(last - first + 1)];
    for (x, column) in grid.columns.iter().enumerate().filter(|(_, c)| c.is_measured()) {
        for (bucket, n) in column.counts.iter() {
            let y = usize::from(last - bucket / MERGED);
            sums[y * width + x] += n;
        }
    }
    let (low, high) = common.density;
    let span = (high / low).ln().max(1e-9);
    let strength = |(i, n): (usize, &u64)| {
        if *n == 0 {
            return 0;
        }
        let seconds = grid.columns[i % width].seconds;
        let share = ((*n as f64 / seconds / low).ln() / span).clamp(0.0, 1.0);
        1 + (share * f64::from(STRENGTHS - 2)).round() as u8
    };
    sums.iter().enumerate().map(strength).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::times::Buckets;

    #[test]
    fn the_fullest_pixel_is_the_strongest_and_an_empty_one_is_nothing() {
        let mut grid = Grid::new((0.0, 2.0), 1.0);
        grid.cover(0.0, 1.0);
        grid.cover(1.0, 1.0);
        // Rows are four to a doubling: the second time is four rows above the first.
        grid.add(0.0, &Buckets::of(&[(1024, 1000)]));
        grid.add(1.0, &Buckets::of(&[(1024, 1), (2048, 500)]));
        let grids = [(0, &grid)];
        let common = common(&grids).unwrap();
        assert_eq!(common.rows, (40, 44));
        let pixels = pixels(&grid, &common);
        assert_eq!(pixels.len(), 10);
        assert_eq!((pixels[0], pixels[9]), (0, 1));
        assert!(pixels[8] > pixels[1] && pixels[1] > 1, "{pixels:?}");
        assert!(pixels.iter().all(|p| *p < STRENGTHS));
        assert!(super::common(&[]).is_none());
    }

    #[test]
    fn a_column_that_took_no_time_is_not_drawn() {
        let mut grid = Grid::new((0.0, 2.0), 1.0);
        grid.cover(0.0, 1.0);
        // Far above and far below the rows of the second that was measured.
        grid.add(0.0, &Buckets::of(&[(1024, 10)]));
        grid.add(1.0, &Buckets::of(&[(16, 1), (1 << 20, 1)]));
        let common = common(&[(0, &grid)]).unwrap();
        assert_eq!(common.rows, (40, 40));
        let pixels = pixels(&grid, &common);
        assert!(pixels.len() == 2 && pixels[0] > 0 && pixels[1] == 0, "{pixels:?}");
    }
}
