\set a random(1, 100000 * :scale) + random(-5000, 5000)
\set b random_gaussian(1, 100, 2.5) - random_exponential(1, 100, 3.0) / random_zipfian(1, 1000, 1.07)
\set c permute(:a, 100000, :default_seed) # hash(:b) | hash_fnv1a(:b, 7) & hash_murmur2(:a, :default_seed)
\set d abs(-17) * mod(54, 32) % 5 << 3 >> 1 + ~ 9223372036854775807
\set e least(5, 4.0, 3) <> greatest(5, 4, 3.0) or not true and :a is not null
\set f sqrt(2.0) + ln(1.0) + exp(1.0) + pow(2.0, 10) + power(-2, 63) + pi()
\set g double(:a) / int(5.4 + 3.8)
\set h case when :a > 5 then 'x' when null then 1e300 else -9223372036854775807 - 1 end
\set i debug(:f) isnull
SELECT :a, :b::int, ':c', "d:e" FROM t -- :f
WHERE x = :g /* :h */;
