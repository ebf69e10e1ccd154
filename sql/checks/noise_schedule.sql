-- The noise leaves the schedule that the `start` event before it declares (noise.kind, std and schedule: const,
-- follow_lr, cosine): by more than `off` of its std, at more than `share` of the rows. `follow_lr` is held against the
-- logged learning rate, so that a rate off its own schedule is told once. With kind none any noise is off.
--
-- title: noise off its schedule
-- order: 80
-- requires: noise_std
-- thresholds: off = 0.02, share = 0.01
-- cache: run
-- next: look at the panel noise beside lr, and at what the trainer adds the noise to (`noise.on`)
with declared as materialized (
  select place, lead(place, 1, 9_000_000_000_000_000_000) over (order by place) as until,
    nullif(try_cast(c->>'lr' as double), 0) as peak,
    coalesce(c->'noise'->>'kind', 'none') as kind, coalesce(try_cast(c->'noise'->>'std' as double), 0) as std,
    coalesce(c->'noise'->>'schedule', 'const') as shape, total
  from (
    select generation * 1_000_000_000_000 + line_no as place, extra->'config' as c,
      last_value(coalesce(try_cast(extra->'config'->>'total_steps' as double),
        try_cast(extra->>'total_steps' as double)) ignore nulls) over (order by generation, line_no) as total
    from other_rows where run = $run and event = 'start')
  where (c->'noise'->>'kind') is not null
),
seen as not materialized (
  select step, noise_std, if(isfinite(lr), lr, null) as lr, generation * 1_000_000_000_000 + line_no as place
  from core where run = $run and isfinite(noise_std) and step is not null
),
compared as (
  select step, seen.place, noise_std, d.kind, d.shape, d.std, case
      when kind = 'none' then 0
      when shape = 'const' then std
      when shape = 'follow_lr' then std * lr / peak
      when shape = 'cosine' and total between 1 and 1e15
        then std * (0.5 + 0.5 * cos(pi() * greatest(0, least(1, (step - 1) / total)))) end as wanted,
    -- A cosine that a log counts from 1 on moves so much within one step at its steepest.
    nullif(abs(noise_std - wanted) / if(kind = 'none' or std = 0, 1e-9, std)
      - if(kind <> 'none' and shape = 'cosine', pi() / 2 / total, 0), 'nan') as gap
  from seen join declared d on seen.place >= d.place and seen.place < d.until
),
worst as (
  select count(gap) as n, count(*) filter (gap > $off) as n_off, min(step) filter (gap > $off) as first_step,
    arg_max({'step': step, 'noise': noise_std, 'wanted': wanted}, gap) filter (gap > $off) as w,
    arg_max({'kind': kind, 'shape': shape, 'std': std}, place) filter (gap > $off) as d
  from compared
)
select 'warning' as severity,
  format('noise_std leaves its declared schedule ({}) at step {:,}; furthest at step {:,}: {:.3g} where {:.3g} was'
    || ' declared; {:,} of {:,} row{} off',
    if(d.kind = 'none', 'none', format('{}, {} up to {:.3g}', d.kind, d.shape, d.std)), first_step, w.step, w.noise,
    w.wanted, n_off, n, if(n = 1, ' is', 's are')) as sentence,
  list_distinct([first_step, w.step]) as steps,
  {'first_step': first_step, 'step': w.step, 'noise_std': w.noise, 'declared': w.wanted,
    'n_off': n_off, 'n': n} as "values"
from worst where n_off > $share * n;
