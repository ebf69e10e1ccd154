-- Top-8 streak: how many leading slots of a block have the target's token among the drafter's eight best (0..15),
-- by bucket of steps. It is a streak, not the tau of an 8-node tree: that one is `ddtree_tau_b8`.
--
-- title: top-8 streak
-- chart: line x=step y=mean low=min high=max
-- order: 40
-- unit: slots
-- units: step, slots, slots, slots, rows, rows
-- better: higher
-- requires: ddtree_streak8
-- cache: buckets
with recent as (
  select ddtree_streak8 as x from core where run = $run and step between $first and $last and step >= $recent
  order by generation desc, line_no desc limit coalesce($last_n, 2000)
)
select concat_ws(' · ', format('mean {:.4g}', avg(x) filter (isfinite(x))), format('last {:,} row{}', count(*), if(count(*) = 1, '', 's')))
from recent;

with seen as (
  select step, step // $width as bucket, if(isfinite(ddtree_streak8), ddtree_streak8, null) as y
  from core where run = $run and step between $first and $last and ddtree_streak8 is not null
)
select min(step) as step, avg(y) as mean, min(y) as min, max(y) as max, count(y) as n, count(*) - count(y) as nonfinite
from seen group by bucket order by step;
