//! Values of rows and queries, and their text. All are uniform and follow from the client's random
//! stream. Random letters of `data` are drawn from base64's alphabet, while the original takes them
//! from 4 MiB of random base64: both have six random bits a letter.

use dyno_units::RandomStream;

use crate::row::{push_decimal, write_letters};

use super::settings::{Schema, Values};

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Longest text of a row without its data: five numbers of at most ten digits, the time and signs.
const ROW_BYTES: usize = 96;

pub(super) fn statement_room(values: &Values, rows: u64) -> usize {
    rows as usize * (ROW_BYTES + values.data_length_max as usize) + 2 * ROW_BYTES
}

/// Appends a row to a multi-row INSERT: `(now(),1,2,3,4.00,'aaaaab')`. Returns its product.
pub(super) fn push_row(
    out: &mut Vec<u8>,
    (schema, values, now): (Schema, &Values, &str),
    random: &mut RandomStream,
) -> u64 {
    let cashregister = random.below(values.cashregisters) as i64;
    let customer = random.below(values.customers) as i64;
    let product = random.below(values.products) as i64;
    out.push(b'(');
    out.extend_from_slice(now.as_bytes());
    for value in [cashregister, customer, product] {
        out.push(b',');
        push_decimal(out, value);
    }
    out.push(b',');
    let cents = match schema {
        Schema::December2023 => 100 * random.below(values.max_price) as i64,
        Schema::July2023 => price_2023_07(values, customer, random),
    };
    push_cents(out, cents);
    out.extend_from_slice(b",'");
    push_data(out, values, random);
    out.extend_from_slice(b"')");
    product as u64
}

/// (u × max_price + customer) / 100 in hundredths, u uniform in [0, 1).
pub(super) fn price_2023_07(values: &Values, customer: i64, random: &mut RandomStream) -> i64 {
    (random.unit() * values.max_price as f64 + customer as f64).round() as i64
}

/// Appends hundredths as a decimal: 1205 as `12.05`.
pub(super) fn push_cents(out: &mut Vec<u8>, cents: i64) {
    push_decimal(out, cents / 100);
    let rest = (cents % 100) as u8;
    out.extend_from_slice(&[b'.', b'0' + rest / 10, b'0' + rest % 10]);
}

/// Column `data` has uniform length, and ends in random letters: three quarters of the random
/// percentage, as base64 has six bits a letter; the rest is `a`.
fn push_data(out: &mut Vec<u8>, values: &Values, random: &mut RandomStream) {
    let spread = values.data_length_max - values.data_length_min;
    let length = values.data_length_min + random.below(spread + 1);
    let n_random = length * 3 * values.data_random_pct / 400;
    out.resize(out.len() + length as usize, b'a');
    let first_random = out.len() - n_random as usize;
    write_letters(&mut out[first_random..], LETTERS, random);
}
