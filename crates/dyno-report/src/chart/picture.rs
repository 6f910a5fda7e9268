//! Small pictures inside charts: PNG with a palette of one colour in sixteen strengths.
//!
//! Only how opaque a pixel is differs, so that a picture looks right on light, dark and paper.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

use super::scale::{Scale, log_ticks};
use super::{Frame, open_svg, x_labels};
use crate::format::Unit;
use crate::markup::{Markup, coordinate};

/// Strengths of a pixel, with 0 for nothing.
pub(crate) const STRENGTHS: u8 = 16;

/// The one colour of all maps, readable on light and on dark: a map has its variant's name above it.
const COLOUR: [u8; 3] = [0x2a, 0x78, 0xd6];

#[derive(Clone, Debug)]
pub(crate) struct Picture {
    /// What the page's script knows it by.
    pub(crate) name: String,
    /// The PNG, as a `data:` address.
    pub(crate) address: String,
    /// Left and right edge, on the x axis.
    pub(crate) across: (f64, f64),
    /// Lower and upper edge, on the y axis.
    pub(crate) values: (f64, f64),
}

/// Encodes a picture as a `data:` address. `pixels` are strengths below [`STRENGTHS`], row by row
/// from the top, each `width` long.
pub(crate) fn address(width: usize, pixels: &[u8]) -> String {
    let height = pixels.len().checked_div(width).unwrap_or(0);
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut head = Vec::new();
    head.extend((width as u32).to_be_bytes());
    head.extend((height as u32).to_be_bytes());
    // Four bits a pixel, palette, deflate, no filter of its own, not interlaced.
    head.extend([4, 3, 0, 0, 0]);
    chunk(&mut png, b"IHDR", &head);
    chunk(&mut png, b"PLTE", &COLOUR.repeat(usize::from(STRENGTHS)));
    let opacity: Vec<u8> = (0..STRENGTHS).map(opacity).collect();
    chunk(&mut png, b"tRNS", &opacity);
    let mut rows = Vec::with_capacity(pixels.len() / 2 + height);
    for row in pixels.chunks(width.max(1)) {
        rows.push(0);
        rows.extend(row.chunks(2).map(|two| (two[0] << 4) | two.get(1).copied().unwrap_or(0)));
    }
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::best());
    packer.write_all(&rows).expect("writing to memory does not fail");
    chunk(&mut png, b"IDAT", &packer.finish().expect("writing to memory does not fail"));
    chunk(&mut png, b"IEND", &[]);
    format!("data:image/png;base64,{}", STANDARD.encode(png))
}

/// The strengths from the fewest to the most a second, with the rates that the ends and powers of ten stand for.
pub(crate) fn key((low, high): (f64, f64)) -> Markup {
    const RIGHT: f64 = 150.0;
    let mut out = Markup::new();
    let frame =
        Frame { width: RIGHT + 50.0, height: 26.0, left: 8.0, right: RIGHT, top: 2.0, bottom: 6.0 };
    let shown = |rate: f64| Unit::PerSecond.tick(rate);
    open_svg(&mut out, &frame, &format!("colours from {} to {}", shown(low), shown(high)), "");
    let step = frame.plot_width() / f64::from(STRENGTHS - 1);
    for strength in 1..STRENGTHS {
        out.raw(format_args!(
            "<rect x=\"{}\" y=\"2\" width=\"{}\" height=\"8\" class=\"cell\" fill-opacity=\"{:.2}\"/>",
            coordinate(frame.left + f64::from(strength - 1) * step),
            coordinate(step),
            f64::from(opacity(strength)) / 255.0,
        ));
    }
    let x = Scale::log(low, high.max(low * 1.01), frame.left, frame.right);
    let ticks = [low].into_iter().chain(log_ticks(low, high)).chain([high]);
    let ticks: Vec<(f64, String)> = ticks.map(|rate| (x.at(rate), shown(rate))).collect();
    x_labels(&mut out, &frame, &ticks, 4.0);
    out.raw("</svg>");
    out
}

/// How opaque a pixel of this strength is, of 255.
fn opacity(strength: u8) -> u8 {
    match strength {
        0 => 0,
        s => 34 + ((255 - 34) * u16::from(s - 1) / u16::from(STRENGTHS - 2)) as u8,
    }
}

fn chunk(png: &mut Vec<u8>, name: &[u8; 4], content: &[u8]) {
    png.extend((content.len() as u32).to_be_bytes());
    png.extend(name);
    png.extend(content);
    let mut sum = Crc::new();
    sum.update(name);
    sum.update(content);
    png.extend(sum.sum().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_a_png_with_two_pixels_in_a_byte() {
        let address = address(3, &[0, 15, 7, 1, 0, 2]);
        let png = STANDARD.decode(address.strip_prefix("data:image/png;base64,").unwrap()).unwrap();
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(&png[16..29], [0, 0, 0, 3, 0, 0, 0, 2, 4, 3, 0, 0, 0]);
        let at = png.windows(4).position(|w| w == b"IDAT").unwrap();
        let length = u32::from_be_bytes(png[at - 4..at].try_into().unwrap()) as usize;
        let mut rows = Vec::new();
        let packed = &png[at + 4..at + 4 + length];
        std::io::copy(&mut flate2::read::ZlibDecoder::new(packed), &mut rows).unwrap();
        assert_eq!(rows, [0, 0x0f, 0x70, 0, 0x10, 0x20]);
        // The end of every PNG, with its well-known checksum.
        assert_eq!(&png[png.len() - 12..], b"\0\0\0\0IEND\xae\x42\x60\x82");
    }
}
