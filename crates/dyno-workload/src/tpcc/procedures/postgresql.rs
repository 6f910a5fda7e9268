//! Procedures and functions for PostgreSQL 11 and later, whose procedures can roll back.

use crate::TABLE_MARK;

/// In the order of the kinds.
pub(super) const CALLS: [&str; 5] = [
    "CALL dyno_tpcc_new_order@(?, ?, ?, ?, ?, ?, NULL, NULL)",
    "SELECT * FROM dyno_tpcc_payment@(?, ?, ?, ?, ?, ?, ?)",
    "SELECT * FROM dyno_tpcc_order_status@(?, ?, ?, ?)",
    "SELECT dyno_tpcc_delivery@(?, ?)",
    "SELECT dyno_tpcc_stock_level@(?, ?, ?)",
];

pub(super) fn create() -> Vec<String> {
    // A body begins with the mark by which it is known as Dyno's.
    let marked = format!("AS $dyno$ -- {TABLE_MARK}\n");
    let all = [NEW_ORDER, CUSTOMER, PAYMENT, ORDER_STATUS, DELIVERY, STOCK_LEVEL];
    all.map(|text| text.replacen("AS $dyno$\n", &marked, 1)).to_vec()
}

const NEW_ORDER: &str = "CREATE PROCEDURE dyno_tpcc_new_order@(p_w int, p_d int,
    p_c int, p_n int, p_local int, p_lines text, INOUT rolled_back int, INOUT total numeric)
LANGUAGE plpgsql AS $dyno$
DECLARE
    v_order int; v_item int; v_supply int; v_quantity int; v_stock int; v_at int := 0;
    v_discount numeric; v_w_tax numeric; v_d_tax numeric; v_price numeric; v_dist text;
BEGIN
    rolled_back := 0;
    total := 0;
    SELECT c_discount, w_tax INTO STRICT v_discount, v_w_tax FROM customer, warehouse
        WHERE w_id = p_w AND c_w_id = p_w AND c_d_id = p_d AND c_id = p_c;
    SELECT d_next_o_id, d_tax INTO STRICT v_order, v_d_tax FROM district
        WHERE d_w_id = p_w AND d_id = p_d FOR UPDATE;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = p_w AND d_id = p_d;
    INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
        VALUES (v_order, p_d, p_w, p_c, CURRENT_TIMESTAMP, p_n, p_local);
    INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (v_order, p_d, p_w);
    WHILE v_at < p_n LOOP
        v_item := substr(p_lines, v_at * 15 + 1, 6)::int;
        v_supply := substr(p_lines, v_at * 15 + 7, 7)::int;
        v_quantity := substr(p_lines, v_at * 15 + 14, 2)::int;
        v_at := v_at + 1;
        SELECT i_price INTO v_price FROM item WHERE i_id = v_item;
        IF NOT FOUND THEN
            ROLLBACK;
            rolled_back := 1;
            RETURN;
        END IF;
        SELECT s_quantity, CASE p_d WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02
            WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05
            WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
            WHEN 9 THEN s_dist_09 ELSE s_dist_10 END INTO STRICT v_stock, v_dist
            FROM stock WHERE s_w_id = v_supply AND s_i_id = v_item FOR UPDATE;
        UPDATE stock SET s_quantity = v_stock - v_quantity
                + CASE WHEN v_stock >= v_quantity + 10 THEN 0 ELSE 91 END,
            s_ytd = s_ytd + v_quantity, s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + CASE WHEN v_supply <> p_w THEN 1 ELSE 0 END
            WHERE s_w_id = v_supply AND s_i_id = v_item;
        INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id,
            ol_quantity, ol_amount, ol_dist_info)
            VALUES (v_order, p_d, p_w, v_at, v_item, v_supply, v_quantity, v_quantity * v_price,
            v_dist);
        total := total + v_quantity * v_price;
    END LOOP;
    total := round(total * (1 - v_discount) * (1 + v_w_tax + v_d_tax), 2);
END $dyno$";

/// Of several customers of a name the one in the middle by first name, rounded up.
const CUSTOMER: &str = "CREATE FUNCTION dyno_tpcc_customer@(p_w int, p_d int,
    p_name text) RETURNS int LANGUAGE plpgsql AS $dyno$
DECLARE
    v_all int[];
BEGIN
    v_all := ARRAY(SELECT c_id FROM customer WHERE c_w_id = p_w AND c_d_id = p_d
        AND c_last = p_name ORDER BY c_first);
    RETURN v_all[(cardinality(v_all) + 1) / 2];
END $dyno$";

const PAYMENT: &str = "CREATE FUNCTION dyno_tpcc_payment@(p_w int, p_d int, p_c_w int,
    p_c_d int, p_c int, p_name text, p_cents int)
RETURNS TABLE (r_id int, r_first text, r_middle text, r_last text, r_street_1 text,
    r_street_2 text, r_city text, r_state text, r_zip text, r_phone text, r_since timestamp,
    r_credit text, r_credit_lim numeric, r_discount numeric, r_balance numeric)
LANGUAGE plpgsql AS $dyno$
DECLARE
    v_c int := p_c; v_w_name text; v_d_name text; v_credit text;
    v_amount numeric := p_cents / 100.0;
BEGIN
    UPDATE warehouse SET w_ytd = w_ytd + v_amount WHERE w_id = p_w;
    SELECT w_name INTO STRICT v_w_name FROM warehouse WHERE w_id = p_w;
    UPDATE district SET d_ytd = d_ytd + v_amount WHERE d_w_id = p_w AND d_id = p_d;
    SELECT d_name INTO STRICT v_d_name FROM district WHERE d_w_id = p_w AND d_id = p_d;
    IF p_c = 0 THEN
        v_c := dyno_tpcc_customer@(p_c_w, p_c_d, p_name);
    END IF;
    SELECT c_credit INTO STRICT v_credit FROM customer
        WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c FOR UPDATE;
    IF v_credit = 'BC' THEN
        UPDATE customer SET c_balance = c_balance - v_amount,
            c_ytd_payment = c_ytd_payment + v_amount, c_payment_cnt = c_payment_cnt + 1,
            c_data = left(concat(v_c, ' ', p_c_d, ' ', p_c_w, ' ', p_d, ' ', p_w, ' ',
                round(v_amount, 2), ' | ', c_data), 500)
            WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c;
    ELSE
        UPDATE customer SET c_balance = c_balance - v_amount,
            c_ytd_payment = c_ytd_payment + v_amount, c_payment_cnt = c_payment_cnt + 1
            WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c;
    END IF;
    INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
        VALUES (v_c, p_c_d, p_c_w, p_d, p_w, CURRENT_TIMESTAMP, v_amount,
        concat(v_w_name, '    ', v_d_name));
    RETURN QUERY SELECT c_id, c_first::text, c_middle::text, c_last::text, c_street_1::text,
        c_street_2::text, c_city::text, c_state::text, c_zip::text, c_phone::text, c_since,
        c_credit::text, c_credit_lim, c_discount, c_balance FROM customer
        WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c;
END $dyno$";

const ORDER_STATUS: &str = "CREATE FUNCTION dyno_tpcc_order_status@(p_w int, p_d int,
    p_c int, p_name text)
RETURNS TABLE (r_order int, r_carrier smallint, r_entry timestamp, r_balance numeric,
    r_first text, r_middle text, r_last text, r_item int, r_supply int, r_quantity smallint,
    r_amount numeric, r_delivery timestamp)
LANGUAGE plpgsql AS $dyno$
DECLARE
    v_c int := p_c; v_order int;
BEGIN
    IF p_c = 0 THEN
        v_c := dyno_tpcc_customer@(p_w, p_d, p_name);
    END IF;
    SELECT o_id INTO STRICT v_order FROM orders
        WHERE o_w_id = p_w AND o_d_id = p_d AND o_c_id = v_c ORDER BY o_id DESC LIMIT 1;
    RETURN QUERY SELECT o_id, o_carrier_id, o_entry_d, c_balance, c_first::text, c_middle::text,
        c_last::text, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d
        FROM customer, orders, order_line
        WHERE c_w_id = p_w AND c_d_id = p_d AND c_id = v_c
        AND o_w_id = p_w AND o_d_id = p_d AND o_id = v_order
        AND ol_w_id = p_w AND ol_d_id = p_d AND ol_o_id = v_order;
END $dyno$";

/// As the statements do, it looks for the next order if another delivery took the oldest one.
const DELIVERY: &str = "CREATE FUNCTION dyno_tpcc_delivery@(p_w int, p_carrier int)
RETURNS int LANGUAGE plpgsql AS $dyno$
DECLARE
    v_empty int := 0; v_order int; v_c int; v_amount numeric;
BEGIN
    FOR v_d IN 1..10 LOOP
        LOOP
            SELECT no_o_id INTO v_order FROM new_order WHERE no_w_id = p_w AND no_d_id = v_d
                ORDER BY no_o_id LIMIT 1;
            EXIT WHEN NOT FOUND;
            DELETE FROM new_order WHERE no_w_id = p_w AND no_d_id = v_d AND no_o_id = v_order;
            EXIT WHEN FOUND;
        END LOOP;
        IF v_order IS NULL THEN
            v_empty := v_empty + 1;
        ELSE
            SELECT o_c_id INTO STRICT v_c FROM orders
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
    END LOOP;
    RETURN v_empty;
END $dyno$";

const STOCK_LEVEL: &str = "CREATE FUNCTION dyno_tpcc_stock_level@(p_w int, p_d int,
    p_threshold int) RETURNS int LANGUAGE plpgsql AS $dyno$
DECLARE
    v_next int; v_low int;
BEGIN
    SELECT d_next_o_id INTO STRICT v_next FROM district WHERE d_w_id = p_w AND d_id = p_d;
    SELECT COUNT(DISTINCT s_i_id) INTO v_low FROM order_line, stock
        WHERE ol_w_id = p_w AND ol_d_id = p_d AND ol_o_id < v_next AND ol_o_id >= v_next - 20
        AND s_w_id = p_w AND s_i_id = ol_i_id AND s_quantity < p_threshold;
    RETURN v_low;
END $dyno$";
