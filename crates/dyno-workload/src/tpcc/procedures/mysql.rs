//! The procedures for MariaDB and MySQL.

use crate::TABLE_MARK;

/// In the order of the kinds.
pub(super) const CALLS: [&str; 5] = [
    "CALL dyno_tpcc_new_order@(?, ?, ?, ?, ?, ?)",
    "CALL dyno_tpcc_payment@(?, ?, ?, ?, ?, ?, ?)",
    "CALL dyno_tpcc_order_status@(?, ?, ?, ?)",
    "CALL dyno_tpcc_delivery@(?, ?)",
    "CALL dyno_tpcc_stock_level@(?, ?, ?)",
];

const NAMES: [&str; 5] = ["new_order@", "payment@", "order_status@", "delivery@", "stock_level@"];

pub(super) fn create() -> Vec<String> {
    let bodies = [NEW_ORDER, PAYMENT, ORDER_STATUS, DELIVERY, STOCK_LEVEL];
    let marked = format!("\nCOMMENT '{TABLE_MARK}'\nBEGIN\n");
    let text = |(name, body): (&str, &str)| {
        format!("CREATE PROCEDURE dyno_tpcc_{name}{}", body.replacen("\nBEGIN\n", &marked, 1))
    };
    NAMES.into_iter().zip(bodies).map(text).collect()
}

const NEW_ORDER: &str = "(p_w INT, p_d INT, p_c INT, p_n INT, p_local INT, p_lines VARCHAR(255))
BEGIN
    DECLARE v_order, v_item, v_supply, v_quantity, v_stock, v_at, v_rolled_back INT DEFAULT 0;
    DECLARE v_discount, v_w_tax, v_d_tax DECIMAL(4,4);
    DECLARE v_price DECIMAL(5,2);
    DECLARE v_total DECIMAL(12,2) DEFAULT 0;
    DECLARE v_dist CHAR(24);
    START TRANSACTION;
    SELECT c_discount, w_tax INTO v_discount, v_w_tax FROM customer, warehouse
        WHERE w_id = p_w AND c_w_id = p_w AND c_d_id = p_d AND c_id = p_c;
    SELECT d_next_o_id, d_tax INTO v_order, v_d_tax FROM district
        WHERE d_w_id = p_w AND d_id = p_d FOR UPDATE;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = p_w AND d_id = p_d;
    INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
        VALUES (v_order, p_d, p_w, p_c, CURRENT_TIMESTAMP, p_n, p_local);
    INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (v_order, p_d, p_w);
    WHILE v_at < p_n AND v_rolled_back = 0 DO
        SET v_item = CAST(SUBSTRING(p_lines, v_at * 15 + 1, 6) AS UNSIGNED);
        SET v_supply = CAST(SUBSTRING(p_lines, v_at * 15 + 7, 7) AS UNSIGNED);
        SET v_quantity = CAST(SUBSTRING(p_lines, v_at * 15 + 14, 2) AS UNSIGNED);
        SET v_at = v_at + 1;
        SET v_price = (SELECT i_price FROM item WHERE i_id = v_item);
        IF v_price IS NULL THEN
            SET v_rolled_back = 1;
        ELSE
            SELECT s_quantity, CASE p_d WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02
                WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05
                WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
                WHEN 9 THEN s_dist_09 ELSE s_dist_10 END INTO v_stock, v_dist
                FROM stock WHERE s_w_id = v_supply AND s_i_id = v_item FOR UPDATE;
            UPDATE stock SET s_quantity = v_stock - v_quantity
                    + IF(v_stock >= v_quantity + 10, 0, 91),
                s_ytd = s_ytd + v_quantity, s_order_cnt = s_order_cnt + 1,
                s_remote_cnt = s_remote_cnt + (v_supply <> p_w)
                WHERE s_w_id = v_supply AND s_i_id = v_item;
            INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id,
                ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info)
                VALUES (v_order, p_d, p_w, v_at, v_item, v_supply, v_quantity,
                v_quantity * v_price, v_dist);
            SET v_total = v_total + v_quantity * v_price;
        END IF;
    END WHILE;
    IF v_rolled_back = 1 THEN ROLLBACK; ELSE COMMIT; END IF;
    SELECT v_rolled_back, v_order, v_total * (1 - v_discount) * (1 + v_w_tax + v_d_tax);
END";

/// Of a name, the middle customer by first name, rounded up.
const PAYMENT: &str = "(p_w INT, p_d INT, p_c_w INT, p_c_d INT, p_c INT, p_name VARCHAR(16),
    p_cents INT)
BEGIN
    DECLARE v_c, v_n INT DEFAULT 0;
    DECLARE v_w_name, v_d_name VARCHAR(10);
    DECLARE v_credit CHAR(2);
    DECLARE v_amount DECIMAL(12,2) DEFAULT p_cents / 100.0;
    START TRANSACTION;
    UPDATE warehouse SET w_ytd = w_ytd + v_amount WHERE w_id = p_w;
    SELECT w_name INTO v_w_name FROM warehouse WHERE w_id = p_w;
    UPDATE district SET d_ytd = d_ytd + v_amount WHERE d_w_id = p_w AND d_id = p_d;
    SELECT d_name INTO v_d_name FROM district WHERE d_w_id = p_w AND d_id = p_d;
    IF p_c = 0 THEN
        SELECT FLOOR((COUNT(*) + 1) / 2) - 1 INTO v_n FROM customer
            WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_last = p_name;
        SELECT c_id INTO v_c FROM customer
            WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_last = p_name
            ORDER BY c_first LIMIT 1 OFFSET v_n;
    ELSE
        SET v_c = p_c;
    END IF;
    SELECT c_credit INTO v_credit FROM customer
        WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c FOR UPDATE;
    IF v_credit = 'BC' THEN
        UPDATE customer SET c_balance = c_balance - v_amount,
            c_ytd_payment = c_ytd_payment + v_amount, c_payment_cnt = c_payment_cnt + 1,
            c_data = LEFT(CONCAT(v_c, ' ', p_c_d, ' ', p_c_w, ' ', p_d, ' ', p_w, ' ', v_amount,
                ' | ', c_data), 500)
            WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c;
    ELSE
        UPDATE customer SET c_balance = c_balance - v_amount,
            c_ytd_payment = c_ytd_payment + v_amount, c_payment_cnt = c_payment_cnt + 1
            WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c;
    END IF;
    INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
        VALUES (v_c, p_c_d, p_c_w, p_d, p_w, CURRENT_TIMESTAMP, v_amount,
        CONCAT(v_w_name, '    ', v_d_name));
    COMMIT;
    SELECT c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip,
        c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance FROM customer
        WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c;
END";

const ORDER_STATUS: &str = "(p_w INT, p_d INT, p_c INT, p_name VARCHAR(16))
BEGIN
    DECLARE v_c, v_n, v_order INT DEFAULT 0;
    START TRANSACTION;
    IF p_c = 0 THEN
        SELECT FLOOR((COUNT(*) + 1) / 2) - 1 INTO v_n FROM customer
            WHERE c_w_id = p_w AND c_d_id = p_d AND c_last = p_name;
        SELECT c_id INTO v_c FROM customer
            WHERE c_w_id = p_w AND c_d_id = p_d AND c_last = p_name
            ORDER BY c_first LIMIT 1 OFFSET v_n;
    ELSE
        SET v_c = p_c;
    END IF;
    SELECT o_id INTO v_order FROM orders WHERE o_w_id = p_w AND o_d_id = p_d AND o_c_id = v_c
        ORDER BY o_id DESC LIMIT 1;
    SELECT o_id, o_carrier_id, o_entry_d, c_balance, c_first, c_middle, c_last, ol_i_id,
        ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d
        FROM customer, orders, order_line
        WHERE c_w_id = p_w AND c_d_id = p_d AND c_id = v_c
        AND o_w_id = p_w AND o_d_id = p_d AND o_id = v_order
        AND ol_w_id = p_w AND ol_d_id = p_d AND ol_o_id = v_order;
    COMMIT;
END";

const DELIVERY: &str = "(p_w INT, p_carrier INT)
BEGIN
    DECLARE v_d INT DEFAULT 1;
    DECLARE v_empty INT DEFAULT 0;
    DECLARE v_order, v_c INT;
    DECLARE v_amount DECIMAL(12,2);
    START TRANSACTION;
    WHILE v_d <= 10 DO
        SET v_order = NULL;
        SET v_order = (SELECT no_o_id FROM new_order WHERE no_w_id = p_w AND no_d_id = v_d
            ORDER BY no_o_id LIMIT 1 FOR UPDATE);
        IF v_order IS NULL THEN
            SET v_empty = v_empty + 1;
        ELSE
            DELETE FROM new_order WHERE no_w_id = p_w AND no_d_id = v_d AND no_o_id = v_order;
            SELECT o_c_id INTO v_c FROM orders
                WHERE o_w_id = p_w AND o_d_id = v_d AND o_id = v_order;
            UPDATE orders SET o_carrier_id = p_carrier
                WHERE o_w_id = p_w AND o_d_id = v_d AND o_id = v_order;
            UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP
                WHERE ol_w_id = p_w AND ol_d_id = v_d AND ol_o_id = v_order;
            SELECT SUM(ol_amount) INTO v_amount FROM order_line
                WHERE ol_w_id = p_w AND ol_d_id = v_d AND ol_o_id = v_order;
            UPDATE customer SET c_balance = c_balance + v_amount,
                c_delivery_cnt = c_delivery_cnt + 1
                WHERE c_w_id = p_w AND c_d_id = v_d AND c_id = v_c;
        END IF;
        SET v_d = v_d + 1;
    END WHILE;
    COMMIT;
    SELECT v_empty;
END";

const STOCK_LEVEL: &str = "(p_w INT, p_d INT, p_threshold INT)
BEGIN
    DECLARE v_next, v_low INT;
    START TRANSACTION;
    SELECT d_next_o_id INTO v_next FROM district WHERE d_w_id = p_w AND d_id = p_d;
    SELECT COUNT(DISTINCT s_i_id) INTO v_low FROM order_line, stock
        WHERE ol_w_id = p_w AND ol_d_id = p_d AND ol_o_id < v_next AND ol_o_id >= v_next - 20
        AND s_w_id = p_w AND s_i_id = ol_i_id AND s_quantity < p_threshold;
    COMMIT;
    SELECT v_low;
END";
