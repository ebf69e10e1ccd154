-- Loss by bucket of steps: the median, the mean, and the band that holds the middle 80 %. A mean far from the median and
-- a wide band mean two kinds of batches: look at the length buckets. `min` and `max` keep every spike. Percentiles
-- interpolate linearly (type 7). The headline is of the newest 2,000 rows in view (or N, by --last N).
--
-- title: loss
-- chart: band x=step y=p50 y2=mean low=p10 high=p90 clip=outliers
-- order: 20
-- unit: nats
-- units: step, nats, nats, nats, nats, nats, nats, rows, rows
-- better: lower
-- requires: loss
-- cache: buckets
with recent as (
  select if(isfinite(loss), loss, null) as y
  from core where run = $run and step between $first and $last and step >= $recent
  order by generation desc, line_no desc limit coalesce($last_n, 2000)
),
figures as (select quantile_cont(y, [0.1, 0.5, 0.9]) as p, avg(y) as mean, count(*) as rows from recent)
select concat_ws(' · ', format('p50 {:.4g}', p[2]), format('p10-p90 {:.4g}-{:.4g}', p[1], p[3]),
  format('mean {:.4g}', mean), format('last {:,} row{}', rows, if(rows = 1, '', 's')))
from figures;

with seen as (
  select step, step // $width as bucket, if(isfinite(loss), loss, null) as y
  from core where run = $run and step between $first and $last and loss is not null
),
bands as (
  select min(step) as step, quantile_cont(y, [0.1, 0.5, 0.9]) as p, avg(y) as mean, min(y) as least, max(y) as most, count(y) as n,
    count(*) - count(y) as nonfinite
  from seen group by bucket
)
select step, p[1] as p10, p[2] as p50, p[3] as p90, mean, least as min, most as max, n, nonfinite from bands order by step;
