-- Accuracy is high, acceptance of real decoding is low: tau of the newest evaluation is below `share` of what the
-- teacher-forced figures beside it promise. That is walk_accept_len, else accept_len, else what `accuracy` would give
-- if all slots were alike. Promises below `least` tell nothing.
--
-- title: high accuracy, low acceptance
-- order: 50
-- requires: evals.tau_linear_macro
-- thresholds: share = 0.75, least = 1.5, block = 16
-- cache: run
-- next: run `python -m trainer.selfcheck`: a layer, a label or a mask off by one looks like this
with newest as (
  select step, tau_linear_macro as tau, walk_accept_len as walk, accept_len as teacher, accuracy
  from evals where run = $run and isfinite(tau_linear_macro) order by generation desc, line_no desc limit 1
),
training as (
  select avg(accept_len) filter (isfinite(accept_len)) as teacher, avg(accuracy) filter (isfinite(accuracy)) as accuracy
  from (
    select accept_len, accuracy from core where run = $run and (step >= $recent or step is null or $recent is null)
    order by generation desc, line_no desc limit 500)
),
figures as (
  select e.step, tau, e.walk, if(isfinite(e.teacher), e.teacher, t.teacher) as teacher,
    if(isfinite(e.accuracy), e.accuracy, t.accuracy) as p
  from newest e, training t
),
held as (
  select *, case when isfinite(walk) then walk when isfinite(teacher) then teacher
      when p < 1 then (1 - p ** $block) / (1 - p) when p = 1 then $block end as promised,
    case when isfinite(walk) then 'walk_accept_len' when isfinite(teacher) then 'accept_len'
      else format('accuracy {:.3g}', p) end as source
  from figures
)
select 'warning' as severity,
  format('decoding accepts {:.3g} token{} a round at step {}, teacher forcing promises {:.3g} ({}): {:.0f} % of it', tau,
    if(round(tau, 2) = 1, '', 's'), coalesce(format('{:,}', step), '?'), promised, source, 100 * tau / promised) as sentence,
  list_filter([step], lambda s: s is not null) as steps,
  {'tau': tau, 'promised': promised, 'accuracy': p} as "values"
from held where promised >= $least and tau < $share * promised;
