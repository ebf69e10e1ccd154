-- Where the time of a step goes: mean seconds of each part over the newest 200 rows in view that hold step_time_s.
-- `other` is what the parts leave of it.
--
-- title: time of a step
-- chart: bars x=part y=seconds
-- order: 105
-- unit: s
-- units: -, s, rows
-- better: lower
-- requires: step_time_s
-- cache: run
with recent as (
  select unnest(often[1]) from counted
  where run = $run and step between $first and $last and step >= $recent
    and often[1].step_time_s is not null
  order by generation desc, line_no desc limit 200
)
select format('{:.3g} s a step over the last {:,} row{} that say{} so', avg(step_time_s) filter (isfinite(step_time_s)),
  count(*), if(count(*) = 1, '', 's'), if(count(*) = 1, 's', ''))
from recent;

with recent as (
  select unnest(often[1]) from counted
  where run = $run and step between $first and $last and step >= $recent
    and often[1].step_time_s is not null
  order by generation desc, line_no desc limit 200
),
means as (
  select count(*) as n, avg(step_time_s) filter (isfinite(step_time_s)) as whole,
    avg(data_wait_s) filter (isfinite(data_wait_s)) as wait,
    avg(target_fwd_s) filter (isfinite(target_fwd_s)) as target,
    avg(fwd_s) filter (isfinite(fwd_s)) as forward, avg(bwd_s) filter (isfinite(bwd_s)) as backward,
    avg(opt_s) filter (isfinite(opt_s)) as optimizer
  from recent
)
select v.part, v.seconds, v.n from means, (values
  (1, 'data', wait, n), (2, 'target', target, n), (3, 'forward', forward, n), (4, 'backward', backward, n),
  (5, 'optimizer', optimizer, n),
  (6, 'other', if(whole is null, null, greatest(0, whole - coalesce(wait, 0) - coalesce(target, 0) - coalesce(forward, 0)
    - coalesce(backward, 0) - coalesce(optimizer, 0))), n)) v(pos, part, seconds, n)
where v.seconds is not null
order by pos;
