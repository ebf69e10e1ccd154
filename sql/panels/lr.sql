-- Learning rate by bucket of steps, as logged, and behind it as the run's `start` event declares it (lr, lr_schedule,
-- warmup_ratio, total_steps). Its steps count from 0, and a log's step 1 is the first of them or, in other trainers, the
-- one after it: declared is what is nearer. `min` and `max` show the ends of a bucket's slope, and every jump: a schedule that starts
-- anew after a resume is a step up.
--
-- title: learning rate
-- chart: line x=step y=mean y2=declared low=min high=max
-- order: 60
-- units: step, -, -, -, -, rows, rows
-- requires: lr
-- cache: buckets
select format('now {:.4g}', lr) from core
where run = $run and step between $first and $last and step >= $recent and isfinite(lr)
order by generation desc, line_no desc limit 1;

with seen as (
  select step, step // $width as bucket, if(isfinite(lr), lr, null) as y,
    generation * 1_000_000_000_000 + line_no as place
  from core where run = $run and step between $first and $last and lr is not null
),
buckets as (
  select min(step) as step, avg(step) as middle, max(place) as place, avg(y) as mean, min(y) as min, max(y) as max,
    count(y) as n, count(*) - count(y) as nonfinite
  from seen group by bucket
),
starts as (
  select generation * 1_000_000_000_000 + line_no as place, extra->'config' as c,
    last_value(coalesce(try_cast(extra->'config'->>'total_steps' as double), try_cast(extra->>'total_steps' as double))
      ignore nulls) over (order by generation, line_no) as total
  from other_rows where run = $run and event = 'start'
),
declared as (
  select place, try_cast(c->>'lr' as double) as peak, c->>'lr_schedule' as shape, total,
    round(coalesce(try_cast(c->>'warmup_ratio' as double), 0) * total) as warm
  from starts where (c->>'lr_schedule') in ('constant', 'cosine', 'linear')
),
held as (
  select b.*, list_transform([middle - 1, middle], lambda nth: peak * case
    when warm > 0 and nth < warm then greatest(nth, 0) / warm
    when shape = 'constant' then 1
    when total is null then null
    when shape = 'cosine' then 0.5 + 0.5 * cos(pi() * least(1, (nth - warm) / greatest(1, total - warm)))
    when shape = 'linear' then greatest(0, 1 - (nth - warm) / greatest(1, total - warm)) end) as ends
  from buckets b asof left join declared d on b.place >= d.place
)
select step, mean, if(abs(mean - ends[2]) < abs(mean - ends[1]), ends[2], ends[1]) as declared, min, max, n, nonfinite
from held order by step;
