-- Too much padding: the mean of padding_eff (real tokens per padded token) over the newest `rows` rows is below
-- `least`, or more than `drop` below what it was before them. A mean of rows that all lie on a limit may be a last digit
-- below it.
--
-- title: padding
-- order: 110
-- requires: padding_eff
-- thresholds: least = 0.7, drop = 0.1, rows = 2000, min_rows = 100
-- cache: run
-- next: more length buckets (`num_buckets`), or a larger batch_tokens; look at the panel batch
with seen as not materialized (
  select step, padding_eff as y, generation * 1_000_000_000_000 + line_no as place
  from core where run = $run and isfinite(padding_eff)
),
recent as (
  select step, y, place from seen where step >= $recent or step is null or $recent is null
  order by place desc limit $rows::bigint
),
sides as (
  select now, n, first_step, last_step, before, n_before, now < $least - 1e-9 as is_low
  from (select avg(y) as now, count(*) as n, min(step) as first_step, max(step) as last_step from recent),
    (select avg(y) as before, count(*) as n_before from seen where place < (select min(place) from recent))
)
select 'warning' as severity,
  if(is_low,
    format('padding efficiency is {:.3g} over the last {:,} rows: {:.0f} % of what is computed is padding', now, n,
      100 * (1 - now)),
    format('padding efficiency fell from {:.3g} to {:.3g} over the last {:,} rows', before, now, n)) as sentence,
  list_filter([first_step, last_step], lambda step: step is not null) as steps,
  {'now': now, 'before': before, 'n': n} as "values"
from sides where n >= $min_rows and (is_low or n_before >= $min_rows and now < (1 - $drop) * before - 1e-9);
