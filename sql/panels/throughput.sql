-- Tokens a second by bucket of steps: the median, so that a first step or an evaluation does not bend it; `min` and
-- `max` keep them. The headline is of the newest 2,000 rows in view (or N, by --last N): mean and sample std (n - 1) of
-- the steady ones, which lie within three interquartile ranges of the middle half (Tukey's outer fences) or within 1 %
-- of the median, and beside it the mean of them all.
--
-- title: throughput
-- chart: line x=step y=p50 low=min high=max clip=outliers
-- order: 100
-- unit: tok/s
-- units: step, tok/s, tok/s, tok/s, rows, rows
-- better: higher
-- requires: tok_per_sec
-- cache: buckets
with recent as (
  select if(isfinite(tok_per_sec), tok_per_sec, null) as y
  from core where run = $run and step between $first and $last and step >= $recent
  order by generation desc, line_no desc limit coalesce($last_n, 2000)
),
quartiles as (
  select quantile_cont(y, [0.25, 0.5, 0.75]) as q, greatest(3 * (q[3] - q[1]), 0.01 * q[2]) as reach, avg(y) as mean,
    count(*) as rows
  from recent
)
select concat_ws(' · ', format('steady {:,.0f}', avg(y)), format('std {:.3g}', stddev_samp(y)),
  format('{:,} of the last {:,} row{}', count(y), any_value(rows), if(any_value(rows) = 1, '', 's')),
  format('mean of all {:,}: {:,.0f}', any_value(rows), any_value(mean)))
from quartiles left join recent on y between q[1] - reach and q[3] + reach;

with seen as (
  select step, step // $width as bucket, if(isfinite(tok_per_sec), tok_per_sec, null) as y
  from core where run = $run and step between $first and $last and tok_per_sec is not null
)
select min(step) as step, median(y) as p50, min(y) as min, max(y) as max, count(y) as n,
  count(*) - count(y) as nonfinite
from seen group by bucket order by step;
