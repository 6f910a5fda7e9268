\if :scale > 1
\set x 1
\elif false
\set x :x + 1
\if true
\sleep 10 ms
\endif
\else
\sleep :x us
\setshell y echo 5
\shell true :x
\endif
\startpipeline
SELECT 1\;
SELECT 2 AS one \gset p_
SELECT 3 AS two \aset
\syncpipeline
\endpipeline
