-- The learning rate leaves the schedule that the `start` event before it declares (lr, lr_schedule, warmup_ratio,
-- total_steps): by more than `off` of its peak, at more than `share` of the rows. A log may count steps from 0 or from 1:
-- a rate between those of the steps before and after is on schedule.
--
-- title: learning rate off its schedule
-- order: 70
-- requires: lr
-- thresholds: off = 0.02, share = 0.01
-- next: a resume that began the schedule anew? another total_steps? look at the panel lr and at the table attempts
with starts as (
  select generation * 1_000_000_000_000 + line_no as place, extra->'config' as c from records
  where run = $run and event = 'start' and (extra->'config') is not null
),
declared as (
  select place, (c->>'lr')::double as peak, coalesce(c->>'lr_schedule', 'constant') as shape, total,
    round(coalesce((c->>'warmup_ratio')::double, 0) * total) as warm
  from (
    select place, c, coalesce((c->>'total_steps')::double, (select any_value(total_steps) from runs where run = $run)) as total
    from starts)
  where peak > 0 and total > 0 and shape in ('cosine', 'constant', 'linear')
),
seen as not materialized (
  select step, lr, generation * 1_000_000_000_000 + line_no as place
  from core where run = $run and isfinite(lr) and step is not null
),
held as (
  select step, seen.place, lr, d.peak, shape, total, warm, list_transform([step - 1, step, step + 1], lambda s: d.peak * case
    when s < warm then greatest(s, 0) / warm
    when shape = 'cosine' then 0.5 + 0.5 * cos(pi() * least(1, (s - warm) / greatest(1, total - warm)))
    when shape = 'linear' then greatest(0, 1 - (s - warm) / greatest(1, total - warm))
    else 1 end) as around
  from seen asof join declared d on seen.place >= d.place
),
compared as (
  select *, greatest(lr - list_max(around), list_min(around) - lr, 0) / peak as gap from held
),
worst as (
  select count(*) as n, count(*) filter (gap > $off) as n_off, min(step) filter (gap > $off) as first_step,
    arg_max({'step': step, 'lr': lr, 'declared': around[2], 'gap': gap}, gap) as w,
    arg_max({'peak': peak, 'shape': shape, 'total': total, 'warm': warm}, place) as d
  from compared
)
select 'warning' as severity,
  format('lr leaves its declared schedule ({} from {:.3g}, {:,} of {:,} steps warm-up) at step {:,}; furthest at step {:,}: {:.3g}'
    || ' where {:.3g} was declared; {:,} of {:,} rows are off by more than {:.2g} % of the peak', d.shape, d.peak,
    d.warm::bigint, d.total::bigint, first_step, w.step, w.lr, w.declared, n_off, n, 100 * $off) as sentence,
  list_distinct([first_step, w.step]) as steps,
  {'first_step': first_step, 'step': w.step, 'lr': w.lr, 'declared': w.declared, 'n_off': n_off, 'n': n} as "values"
from worst where n_off > $share * n;
