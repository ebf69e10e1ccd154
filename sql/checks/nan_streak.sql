-- NaN streak: `streak` rows or more in a row whose loss or grad_norm is not finite. Critical while it lasts. Fewer are
-- only told.
--
-- title: NaN streak
-- order: 10
-- requires: loss | grad_norm
-- thresholds: streak = 3
-- cache: run
-- next: go back to the checkpoint before it; look at the batch of its first step, the learning rate, the number format
with logged as not materialized (
  select step, not coalesce(isfinite(loss), true) or not coalesce(isfinite(grad_norm), true) as is_bad,
    generation, line_no
  from core where run = $run and (loss is not null or grad_norm is not null)
),
-- Most runs have none, and rows need no number then.
seen as (
  select *, row_number() over (order by generation, line_no) as nth
  from logged where exists (select 1 from logged where is_bad)
),
bad as (select step, nth, nth - row_number() over (order by nth) as island from seen where is_bad),
islands as (
  select min(step) as first_step, max(step) as last_step, count(*) as size, max(nth) as until from bad group by island
),
worst as (
  select arg_max(i, size * 1e12 + until) as i, sum(size)::bigint as n_bad, arg_max(i, until) as newest,
    (select max(nth) from seen) as n
  from islands i
),
told as (
  select *, if(newest.until = n and newest.size >= $streak, newest, i) as s,
    newest.until = n and newest.size >= $streak as lasts
  from worst where n_bad > 0
)
select case when lasts then 'critical' when s.size >= $streak then 'warning' else 'info' end as severity,
  case when s.size >= $streak then format('loss or grad_norm is not finite in {:,} row{} in a row, steps {}..{}', s.size,
      if(s.size = 1, '', 's'), coalesce(format('{:,}', s.first_step), '?'), coalesce(format('{:,}', s.last_step), '?'))
      || if(lasts, ', up to now', '') || format('; in {:,} of {:,} row{} in all', n_bad, n, if(n = 1, '', 's'))
    else format('loss or grad_norm is not finite in {:,} of {:,} row{}, at most {:,} in a row, last at step {}',
      n_bad, n, if(n = 1, '', 's'), s.size, coalesce(format('{:,}', newest.last_step), '?')) end as sentence,
  list_filter([s.first_step, s.last_step], lambda step: step is not null) as steps,
  {'longest': s.size, 'n': n_bad, 'rows': n} as "values"
from told;
