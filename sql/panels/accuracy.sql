-- Share of supervised slots whose draft token is the target's, by bucket of steps. `min` and `max` keep every outlier.
--
-- title: accuracy
-- chart: line x=step y=mean low=min high=max
-- order: 30
-- units: step, -, -, -, rows, rows
-- better: higher
-- requires: accuracy
-- cache: buckets
with recent as (
  select accuracy as x from core where run = $run and step between $first and $last and step >= $recent
  order by generation desc, line_no desc limit coalesce($last_n, 2000)
)
select concat_ws(' · ', format('mean {:.4g}', avg(x) filter (isfinite(x))), format('last {:,} row{}', count(*), if(count(*) = 1, '', 's')))
from recent;

with seen as (
  select step, step // $width as bucket, if(isfinite(accuracy), accuracy, null) as y
  from core where run = $run and step between $first and $last and accuracy is not null
)
select min(step) as step, avg(y) as mean, min(y) as min, max(y) as max, count(y) as n, count(*) - count(y) as nonfinite
from seen group by bucket order by step;
