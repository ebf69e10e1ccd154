-- The learning rate leaves the schedule that the `start` event before it declares (lr, lr_schedule, warmup_ratio,
-- total_steps): by more than `off` of its peak, at more than `share` of the rows of an attempt. Its steps count
-- from 0, and a log's step 1 is the first of them; of a log that counts otherwise, what the schedule moves within one step
-- is forgiven. Or it jumps by more than `jump` of its peak: where an attempt begins, against what is declared there or, if
-- nothing is, the slopes beside it; or anywhere by falling at once to rise again slowly, as a second warm-up does.
--
-- title: learning rate off its schedule
-- order: 70
-- requires: lr
-- thresholds: off = 0.02, share = 0.01, jump = 0.01
-- cache: run
-- next: a resume that began the schedule anew? another total_steps? look at the panel lr and at the table attempts
with starts as (
  select attempt, generation * 1_000_000_000_000 + line_no as place, extra->'config' as c,
    last_value(coalesce(try_cast(extra->'config'->>'total_steps' as double), try_cast(extra->>'total_steps' as double))
      ignore nulls) over (order by generation, line_no) as total
  from other_rows where run = $run and event = 'start' and coalesce(rank, 0) = 0
),
newest as (
  select attempt, arg_max({'c': c, 'total': total}, place) as s from starts where c is not null group by attempt
),
declared as materialized (
  select *, greatest(1, total - warm) as span, pi() / span as bend, shape = 'cosine' as is_cosine,
    shape = 'linear' as is_linear, coalesce(peak > 0 and isfinite(peak) and total > 0 and isfinite(total) and isfinite(warm)
      and shape in ('cosine', 'constant', 'linear'), false) as is_known
  from (
    select a.attempt, try_cast(s.c->>'lr' as double) as peak, coalesce(s.c->>'lr_schedule', 'constant') as shape,
      s.total, round(coalesce(try_cast(s.c->>'warmup_ratio' as double), 0) * s.total) as warm
    from attempts a asof left join newest n on a.attempt >= n.attempt where a.run = $run)
),
seen as not materialized (
  select attempt, step, lr from core where run = $run and isfinite(lr) and step is not null
),
-- Without an order, which a million rows would take 70 ms to be brought into: rows lie as they were logged. One that
-- does not has a step that is no higher, and is left out.
neighbours as (
  select *, lag(attempt) over () as attempt_before, lag(step) over () as step_before, lag(lr) over () as lr_before,
    lag(step, 2) over () as step_2, lag(lr, 2) over () as lr_2, lead(step) over () as step_after,
    lead(lr) over () as lr_after
  from seen
),
breaks as materialized (
  select *, row_number() over () as break from (
    select *, (step - step_before) * greatest(abs(lr_before - lr_2) / nullif(abs(step_before - step_2), 0),
      abs(lr_after - lr) / nullif(abs(step_after - step), 0), 0) as expected
    from neighbours where step > step_before and (attempt > attempt_before or lr < lr_before and lr_after > lr))
  where attempt > attempt_before or lr_before - lr > greatest(3 * expected, $jump * lr_before)
),
looked as not materialized (
  select null::bigint as break, null::boolean as is_after, step::double - 1 as nth, lr, d.*
  from seen join declared d using (attempt) where is_known
  union all
  select break, is_after, step::double - 1, lr, d.*
  from (
    select break, true as is_after, attempt, step, lr from breaks
    union all
    select break, false, attempt_before, step_before, lr_before from breaks) join declared d using (attempt)
),
held as not materialized (
  select attempt, break, is_after, (nth + 1)::bigint as step, lr, peak, is_known, case
      when warm > 0 and nth < warm then nth / warm
      when is_cosine then 0.5 + 0.5 * cos(least(pi(), (nth - warm) * bend))
      when is_linear then greatest(0, 1 - (nth - warm) / span)
      else 1 end as share,
    -- No schedule moves more from one step to the next than in its warm-up, or than a cosine at its steepest.
    greatest(if(nth <= warm, 1 / greatest(warm, 1), 0), 2 / span) as forgiven, abs(lr / peak - share) as gap
  from looked
),
-- What is off, by attempt, and both ends of each break.
found as materialized (
  select attempt, break, is_after, is_known, peak, any_value(lr) as lr, any_value(share * peak) as declared,
    max(forgiven * peak) as allowed, count(*) as n_off, min(step) as first_step,
    arg_max({'step': step, 'lr': lr, 'declared': share * peak, 'gap': gap - forgiven}, gap - forgiven) as w
  from held where break is not null or is_known and gap > $off and gap > $off + forgiven
  group by attempt, break, is_after, is_known, peak
),
-- Most runs have neither, and nothing is counted then.
counts as materialized (
  select attempt, count(*) as n, max(lr) as top from seen where exists (select 1 from found) group by attempt
),
off as (
  select sum(n)::bigint as n, sum(n_off)::bigint as n_off, min(first_step) as first_step, arg_max(w, w.gap) as w,
    arg_max(d, attempt) filter (n_off > 0) as d
  from counts left join (select * from found where break is null) using (attempt) join declared d using (attempt)
  having bool_or(n_off > $share * n)
),
jumps as (
  select break, abs(sum(if(is_after, 1, -1) * (lr - if(is_known, declared, 0)))) as size,
    any_value(declared) filter (is_known and is_after) as declared_after,
    max(allowed) filter (is_known) as allowed, max(peak) filter (is_known) as known_peak
  from found where break is not null group by break
  having bool_and(is_known) or not bool_or(is_known) and min(peak) is not distinct from max(peak)
),
jumped as (
  select count(*) as num, arg_max({'declared': declared_after, 'peak': peak, 'b': b}, size) as j
  from (
    select size, declared_after, b, coalesce(allowed, expected) as allowed,
      coalesce(known_peak, (select max(top) from counts)) as peak
    from jumps join breaks b using (break))
  where size - allowed > $jump * peak and not exists (select 1 from off)
  having count(*) > 0
)
select 'warning' as severity,
  format('lr leaves its declared schedule ({} from {:.3g}, {:,} of {:,} steps warm-up) at step {:,};'
    || ' furthest at step {:,}: {:.3g} where {:.3g} was declared; {:,} of {:,} row{} off by more than'
    || ' {:.2g} % of the peak', d.shape, d.peak, d.warm::bigint, d.total::bigint, first_step, w.step,
    w.lr, w.declared, n_off, n, if(n = 1, ' is', 's are'), 100 * $off) as sentence,
  list_distinct([first_step, w.step]) as steps,
  {'first_step': first_step, 'step': w.step, 'lr': w.lr, 'declared': w.declared, 'n_off': n_off, 'n': n} as "values"
from off
union all
select 'warning',
  format('lr jumps from {:.3g} at step {:,} to {:.3g} at step {:,}', j.b.lr_before, j.b.step_before, j.b.lr, j.b.step)
    || if(j.b.attempt > j.b.attempt_before, format(', where attempt {} begins', j.b.attempt), '')
    || coalesce(format(' ({:.3g} was declared)', j.declared), '')
    || format(': {:.2g} % of its peak', 100 * abs(j.b.lr - j.b.lr_before) / j.peak)
    || if(num > 1, format('; {:,} jumps in all', num), ''),
  [j.b.step_before, j.b.step],
  {'first_step': j.b.step_before, 'step': j.b.step, 'lr': j.b.lr, 'declared': j.declared, 'n_off': num, 'n': null}
from jumped;
