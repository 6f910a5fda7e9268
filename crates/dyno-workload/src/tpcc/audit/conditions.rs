//! The twelve consistency conditions of clause 3.3.2, each a statement that counts violations, on
//! every product.
//!
//! Each reads its tables once as sets, however many warehouses there are, in one statement and
//! hence at one moment. SQLite keeps money as floating-point numbers, whose sums differ by
//! rounding: only half a cent or more is a violation. Condition 11 of the specification (orders
//! less new orders are 2100 in each district) holds only for the population, as deliveries change
//! it: here it is 2100 plus the deliveries that customers received.

use super::super::rows::TableId;
use super::super::settings::Sizes;

pub(in crate::tpcc) const NAMES: [&str; 12] = [
    "1: a warehouse's year-to-date is the sum of its districts'",
    "2: a district's next order follows its last order and its last new order",
    "3: a district's new orders are numbered without gaps",
    "4: a district's orders state as many lines as there are",
    "5: an order has a carrier, or is a new order",
    "6: an order has as many lines as it states",
    "7: a line has a delivery date if and only if its order has a carrier",
    "8: a warehouse's year-to-date is the sum of its history",
    "9: a district's year-to-date is the sum of its history",
    "10: a customer's balance is what was delivered less what was paid",
    "11: a district's orders that are not new orders are the first ones and those delivered",
    "12: a customer's balance and payments are what was delivered",
];

/// Customers and what was delivered to them, as `o`.
const DELIVERED: &str = "(SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS amount \
     FROM orders JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
     WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o \
     ON o.o_w_id = c_w_id AND o.o_d_id = c_d_id AND o.o_c_id = c_id";

/// Rows that violate each of [`NAMES`]; DELIVERED and FIRST stand for what [`queries`] puts there.
const VIOLATIONS: [&str; 12] = [
    "SELECT 1 FROM warehouse LEFT JOIN \
     (SELECT d_w_id, SUM(d_ytd) AS amount FROM district GROUP BY d_w_id) d ON d.d_w_id = w_id \
     WHERE ABS(w_ytd - COALESCE(d.amount, 0)) > 0.005",
    "SELECT 1 FROM district LEFT JOIN \
     (SELECT o_w_id, o_d_id, MAX(o_id) AS most FROM orders GROUP BY o_w_id, o_d_id) o \
     ON o.o_w_id = d_w_id AND o.o_d_id = d_id LEFT JOIN \
     (SELECT no_w_id, no_d_id, MAX(no_o_id) AS most FROM new_order GROUP BY no_w_id, no_d_id) \
     n ON n.no_w_id = d_w_id AND n.no_d_id = d_id \
     WHERE o.most IS NULL OR o.most <> d_next_o_id - 1 OR n.most <> d_next_o_id - 1",
    "SELECT 1 FROM new_order GROUP BY no_w_id, no_d_id \
     HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)",
    "SELECT 1 FROM district LEFT JOIN \
     (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS counted FROM orders GROUP BY o_w_id, o_d_id) o \
     ON o.o_w_id = d_w_id AND o.o_d_id = d_id LEFT JOIN \
     (SELECT ol_w_id, ol_d_id, COUNT(*) AS found FROM order_line GROUP BY ol_w_id, ol_d_id) l \
     ON l.ol_w_id = d_w_id AND l.ol_d_id = d_id \
     WHERE COALESCE(o.counted, 0) <> COALESCE(l.found, 0)",
    "SELECT 1 FROM orders LEFT JOIN new_order \
     ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
     WHERE (o_carrier_id IS NULL AND no_o_id IS NULL) \
     OR (o_carrier_id IS NOT NULL AND no_o_id IS NOT NULL)",
    "SELECT 1 FROM orders LEFT JOIN \
     (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS found FROM order_line \
     GROUP BY ol_w_id, ol_d_id, ol_o_id) l \
     ON l.ol_w_id = o_w_id AND l.ol_d_id = o_d_id AND l.ol_o_id = o_id \
     WHERE o_ol_cnt <> COALESCE(l.found, 0)",
    "SELECT 1 FROM order_line LEFT JOIN orders \
     ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id \
     WHERE o_id IS NULL OR (ol_delivery_d IS NULL AND o_carrier_id IS NOT NULL) \
     OR (ol_delivery_d IS NOT NULL AND o_carrier_id IS NULL)",
    "SELECT 1 FROM warehouse LEFT JOIN \
     (SELECT h_w_id, SUM(h_amount) AS amount FROM history GROUP BY h_w_id) h \
     ON h.h_w_id = w_id WHERE ABS(w_ytd - COALESCE(h.amount, 0)) > 0.005",
    "SELECT 1 FROM district LEFT JOIN \
     (SELECT h_w_id, h_d_id, SUM(h_amount) AS amount FROM history GROUP BY h_w_id, h_d_id) h \
     ON h.h_w_id = d_w_id AND h.h_d_id = d_id \
     WHERE ABS(d_ytd - COALESCE(h.amount, 0)) > 0.005",
    "SELECT 1 FROM customer LEFT JOIN DELIVERED LEFT JOIN \
     (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) AS amount FROM history \
     GROUP BY h_c_w_id, h_c_d_id, h_c_id) h \
     ON h.h_c_w_id = c_w_id AND h.h_c_d_id = c_d_id AND h.h_c_id = c_id \
     WHERE ABS(c_balance - COALESCE(o.amount, 0) + COALESCE(h.amount, 0)) > 0.005",
    "SELECT 1 FROM district LEFT JOIN \
     (SELECT o_w_id, o_d_id, COUNT(*) AS n FROM orders GROUP BY o_w_id, o_d_id) o \
     ON o.o_w_id = d_w_id AND o.o_d_id = d_id LEFT JOIN \
     (SELECT no_w_id, no_d_id, COUNT(*) AS n FROM new_order GROUP BY no_w_id, no_d_id) k \
     ON k.no_w_id = d_w_id AND k.no_d_id = d_id LEFT JOIN \
     (SELECT c_w_id, c_d_id, SUM(c_delivery_cnt) AS n FROM customer \
     GROUP BY c_w_id, c_d_id) c ON c.c_w_id = d_w_id AND c.c_d_id = d_id \
     WHERE COALESCE(o.n, 0) - COALESCE(k.n, 0) <> FIRST + COALESCE(c.n, 0)",
    "SELECT 1 FROM customer LEFT JOIN DELIVERED \
     WHERE ABS(c_balance + c_ytd_payment - COALESCE(o.amount, 0)) > 0.005",
];

pub(in crate::tpcc) fn queries(suffix: &str, sizes: &Sizes) -> [String; 12] {
    let first = (sizes.customers - sizes.undelivered).to_string();
    VIOLATIONS.map(|sql| {
        let sql = sql.replace("DELIVERED", DELIVERED).replace("FIRST", &first);
        format!("SELECT COUNT(*) FROM ({}) v", with_suffix(&sql, suffix))
    })
}

/// Statements that write down what the conditions come to, as rows of `tpcc_before`.
pub(in crate::tpcc) fn note_before(suffix: &str, sizes: &Sizes) -> Vec<String> {
    let note = |(number, query): (usize, String)| {
        format!("INSERT INTO tpcc_before{suffix} (number, violations) SELECT {number}, ({query})")
    };
    (1..).zip(queries(suffix, sizes)).map(note).collect()
}

pub(in crate::tpcc) fn with_suffix(sql: &str, suffix: &str) -> String {
    let words = sql.split_inclusive(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let named = words.map(|part| {
        let word = part.trim_end_matches(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let rest = &part[word.len()..];
        if TableId::ALL.iter().any(|id| id.name() == word) {
            format!("{word}{suffix}{rest}")
        } else {
            part.to_owned()
        }
    });
    named.collect()
}
