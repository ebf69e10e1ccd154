-- The learning rate leaves the schedule that the `start` event before it declares (lr, lr_schedule, warmup_ratio,
-- total_steps): by more than `off` of its peak, at more than `share` of the rows. Its steps count
-- from 0, and a log's step 1 is the first of them; of a log that counts otherwise, what the schedule moves within one step
-- is forgiven.
--
-- title: learning rate off its schedule
-- order: 70
-- requires: lr
-- thresholds: off = 0.02, share = 0.01
-- cache: run
-- next: a resume that began the schedule anew? another total_steps? look at the panel lr and at the table attempts
with starts as (
  select generation * 1_000_000_000_000 + line_no as place, extra->'config' as c from other_rows
  where run = $run and event = 'start' and (extra->'config') is not null
),
declared as materialized (
  select place, lead(place, 1, 9_000_000_000_000_000_000) over (order by place) as until, peak, shape, total,
    round(coalesce(warmup, 0) * total) as warm
  from (
    select place, try_cast(c->>'lr' as double) as peak, coalesce(c->>'lr_schedule', 'constant') as shape,
      try_cast(c->>'warmup_ratio' as double) as warmup,
      coalesce(try_cast(c->>'total_steps' as double), (select any_value(total_steps) from runs where run = $run))
        as total
    from starts)
),
seen as not materialized (
  select step, lr, generation * 1_000_000_000_000 + line_no as place
  from core where run = $run and isfinite(lr) and step is not null
),
held as (
  select step, lr, seen.place, peak, shape, total, warm, case
      when step - 1 < warm then greatest(step - 1, 0) / warm
      when shape = 'cosine' then 0.5 + 0.5 * cos(pi() * least(1, (step - 1 - warm) / greatest(1, total - warm)))
      when shape = 'linear' then greatest(0, 1 - (step - 1 - warm) / greatest(1, total - warm))
      else 1 end as share
  from seen join declared d on seen.place >= d.place and seen.place < d.until
  where peak > 0 and total > 0 and shape in ('cosine', 'constant', 'linear')
),
-- No schedule moves more from one step to the next than in its warm-up, or than a cosine at its steepest.
compared as (
  select *, greatest(if(step <= warm + 1, 1 / greatest(warm, 1), 0), 2 / greatest(1, total - warm)) as forgiven,
    greatest(abs(lr / peak - share) - forgiven, 0) as gap
  from held
),
worst as (
  select count(*) as n, count(*) filter (gap > $off) as n_off, min(step) filter (gap > $off) as first_step,
    arg_max({'step': step, 'lr': lr, 'declared': share * peak, 'gap': gap}, gap) filter (gap > $off) as w,
    arg_max({'peak': peak, 'shape': shape, 'total': total, 'warm': warm}, place) filter (gap > $off) as d
  from compared
)
select 'warning' as severity,
  format('lr leaves its declared schedule ({} from {:.3g}, {:,} of {:,} steps warm-up) at step {:,};'
    || ' furthest at step {:,}: {:.3g} where {:.3g} was declared; {:,} of {:,} rows are off by more than'
    || ' {:.2g} % of the peak', d.shape, d.peak, d.warm::bigint, d.total::bigint, first_step, w.step,
    w.lr, w.declared, n_off, n, 100 * $off) as sentence,
  list_distinct([first_step, w.step]) as steps,
  {'first_step': first_step, 'step': w.step, 'lr': w.lr, 'declared': w.declared, 'n_off': n_off, 'n': n} as "values"
from worst where n_off > $share * n;
