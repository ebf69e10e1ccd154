-- Tokens a second by bucket of steps: the median, so that a first step or an evaluation does not bend it; `min` and
-- `max` keep them. Steady rows lie within three interquartile ranges of the middle half (Tukey's outer fences), or
-- within 1 % of the median: the headline gives their mean and sample std (n - 1), and the mean of all rows beside it.
--
-- title: throughput
-- chart: line x=step y=p50 low=min high=max clip=outliers
-- order: 100
-- unit: tok/s
-- units: step, tok/s, tok/s, tok/s, rows
-- better: higher
-- requires: tok_per_sec
with seen as (
  select tok_per_sec as x from steps where run = $run and step between $first and $last
),
quartiles as (
  select quantile_cont(x, [0.25, 0.5, 0.75]) as q, avg(x) as mean, count(*) as n from seen where isfinite(x)
),
fences as (
  select q[1] - reach as low, q[3] + reach as high, mean, n
  from (select *, greatest(3 * (q[3] - q[1]), 0.01 * q[2]) as reach from quartiles)
),
steady as (
  select avg(x) as mean, stddev_samp(x) as std, count(*) as n
  from seen, fences where isfinite(x) and x between low and high
),
nonfinite as (select count(*) as n from seen where not isfinite(x))
select concat_ws(' · ', format('steady {:,.0f}', s.mean), format('std {:.3g}', s.std),
  format('{:,} of {:,} rows', s.n, f.n), format('mean of all rows {:,.0f}', f.mean),
  if(b.n > 0, format('{:,} non-finite', b.n), null))
from steady s, fences f, nonfinite b;

with seen as (
  select step, step // $width as bucket, if(isfinite(tok_per_sec), tok_per_sec, null) as y
  from steps where run = $run and step between $first and $last and tok_per_sec is not null
)
select min(step) as step, median(y) as p50, min(y) as min, max(y) as max, count(y) as n
from seen group by bucket order by step;
