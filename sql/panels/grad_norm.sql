-- Gradient norm before clipping, by bucket of steps: the median, the band that holds the middle 80 %, and the largest, so
-- that no spike is lost, over the rows with grad_norm > 0. A norm is sick or normal only beside another run's.
-- The headline is of the newest 2,000 rows in view (or N, by --last N). Percentiles interpolate linearly (type 7).
--
-- title: gradient norm
-- chart: band x=step y=p50 y2=max low=p10 high=p90
-- order: 50
-- scale: log
-- units: step, -, -, -, -, -, rows, rows
-- requires: grad_norm
-- cache: buckets
with recent as (
  select if(isfinite(grad_norm) and grad_norm > 0, grad_norm, null) as y
  from core where run = $run and step between $first and $last and step >= $recent
  order by generation desc, line_no desc limit coalesce($last_n, 2000)
),
figures as (
  select quantile_cont(y, [0.5, 0.95]) as p, count(y) as n, count(*) as rows from recent
)
select concat_ws(' · ', format('p50 {:.4g}', p[1]), format('p95 {:.4g}', p[2]),
  format('last {:,} row{}', rows, if(rows = 1, '', 's')), if(n < rows, format('{:,} of them > 0', n), null))
from figures;

with seen as (
  select step, step // $width as bucket, grad_norm, if(isfinite(grad_norm) and grad_norm > 0, grad_norm, null) as y
  from core where run = $run and step between $first and $last and grad_norm is not null
),
bands as (
  select min(step) as step, quantile_cont(y, [0.1, 0.5, 0.9]) as p, min(y) as least, max(y) as most, count(y) as n,
    count_if(not isfinite(grad_norm)) as nonfinite
  from seen group by bucket
)
select step, p[1] as p10, p[2] as p50, p[3] as p90, least as min, most as max, n, nonfinite from bands order by step;
