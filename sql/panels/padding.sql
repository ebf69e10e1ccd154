-- Padding efficiency: real tokens per padded token, by bucket of steps. What is missing to 1 is computed for nothing.
--
-- title: padding efficiency
-- chart: line x=step y=mean low=min high=max
-- order: 110
-- units: step, -, -, -, rows, rows
-- better: higher
-- requires: padding_eff
-- cache: buckets
with recent as (
  select padding_eff as x from core where run = $run and step between $first and $last and step >= $recent
  order by generation desc, line_no desc limit coalesce($last_n, 2000)
)
select concat_ws(' · ', format('mean {:.4g}', avg(x) filter (isfinite(x))), format('last {:,} row{}', count(*), if(count(*) = 1, '', 's')))
from recent;

with seen as (
  select step, step // $width as bucket, if(isfinite(padding_eff), padding_eff, null) as y
  from core where run = $run and step between $first and $last and padding_eff is not null
)
select min(step) as step, avg(y) as mean, min(y) as min, max(y) as max, count(y) as n, count(*) - count(y) as nonfinite
from seen group by bucket order by step;
