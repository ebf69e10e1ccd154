-- Standard deviation of the noise that is added to the drafter's context, by bucket of steps, and behind it as the run's
-- `start` event declares it (noise.kind, noise.std and noise.schedule; `follow_lr` follows the learning rate as logged). Its steps are
-- counted as in the panel `lr`.
--
-- title: noise
-- chart: line x=step y=mean y2=declared low=min high=max
-- order: 70
-- units: step, -, -, -, -, rows, rows
-- requires: noise_std
-- cache: buckets
select format('now {:.4g}', noise_std) from core
where run = $run and step between $first and $last and step >= $recent and isfinite(noise_std)
order by generation desc, line_no desc limit 1;

with seen as (
  select step, step // $width as bucket, if(isfinite(noise_std), noise_std, null) as y, if(isfinite(lr), lr, null) as lr,
    generation * 1_000_000_000_000 + line_no as place
  from core where run = $run and step between $first and $last and noise_std is not null
),
buckets as (
  select min(step) as step, avg(step) as middle, max(place) as place, avg(lr) as lr, avg(y) as mean, min(y) as min,
    max(y) as max, count(y) as n, count(*) - count(y) as nonfinite
  from seen group by bucket
),
starts as (
  select generation * 1_000_000_000_000 + line_no as place, extra->'config' as c,
    last_value(coalesce(try_cast(extra->'config'->>'total_steps' as double), try_cast(extra->>'total_steps' as double))
      ignore nulls) over (order by generation, line_no) as total
  from other_rows where run = $run and event = 'start'
),
declared as (
  select place, c->'noise'->>'kind' as kind, try_cast(c->'noise'->>'std' as double) as std,
    coalesce(c->'noise'->>'schedule', 'const') as shape, nullif(try_cast(c->>'lr' as double), 0) as peak, total
  from starts where (c->'noise'->>'kind') is not null
),
held as (
  select b.*, list_transform([middle - 1, middle], lambda nth: case when kind = 'none' then 0
    when shape = 'const' then std
    when shape = 'follow_lr' then std * lr / peak
    when shape = 'cosine' and total > 0
      then std * (0.5 + 0.5 * cos(pi() * greatest(0, least(1, nth / total)))) end) as ends
  from buckets b asof left join declared d on b.place >= d.place
)
select step, mean, if(abs(mean - ends[2]) < abs(mean - ends[1]), ends[2], ends[1]) as declared, min, max, n, nonfinite
from held order by step;
