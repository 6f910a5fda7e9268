\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set delta random(-5000, \
  5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
INSERT INTO pgbench_history (bid, aid, delta, filler) VALUES (:bid, :aid, :delta, $x$a;b$x$);
END;
