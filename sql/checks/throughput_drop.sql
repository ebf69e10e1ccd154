-- Training has become slower: the median of tok_per_sec over the newest `rows` rows is more than `drop` below the
-- median of all rows before them. Medians, so that a first step or an evaluation does not pass for a drop.
--
-- title: throughput dropped
-- order: 100
-- requires: tok_per_sec
-- thresholds: drop = 0.1, rows = 200
-- cache: run
-- next: look at who else uses the GPU (`dflash-tui hosts`), at padding, and at data_wait_s against step_time_s
with seen as not materialized (
  select step, tok_per_sec as y, generation * 1_000_000_000_000 + line_no as place
  from core where run = $run and isfinite(tok_per_sec)
),
recent as (
  select step, y, place from seen where step >= $recent or step is null or $recent is null
  order by place desc limit $rows::bigint
),
sides as (
  select now, n, first_step, last_step, before, n_before
  from (select median(y) as now, count(*) as n, min(step) as first_step, max(step) as last_step from recent),
    (select median(y) as before, count(*) as n_before from seen where place < (select min(place) from recent))
)
select 'warning' as severity,
  format('throughput is down to {:,.0f} tokens/s over the last {:,} row{}, from {:,.0f} before: {:.1f} % less', now,
    n, if(n = 1, '', 's'), before, 100 * (1 - now / before)) as sentence,
  list_filter([first_step, last_step], lambda step: step is not null) as steps,
  {'now': now, 'before': before, 'drop_pct': 100 * (1 - now / before)} as "values"
from sides where n_before >= $rows and now < (1 - $drop) * before;
