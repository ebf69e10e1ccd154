-- The loss stands still: a line through it over the last `part` of the rows falls by less than `falls` of the loss, and
-- not even the steep end of its interval (two standard errors) falls more. Fitted through the medians of 40 stretches,
-- so that humps and spikes do not bend it. Where lr is below `lr_share` of its highest, this is only told.
--
-- title: plateau
-- order: 60
-- requires: loss
-- thresholds: part = 0.25, falls = 0.02, lr_share = 0.1, min_rows = 1000
-- cache: run
-- next: compare with an earlier run at the same steps; look at the learning rate, the noise and accuracy by length
with seen as not materialized (
  select step, loss, lr, generation * 1_000_000_000_000 + line_no as place from core where run = $run and isfinite(loss)
),
tail as (
  select step, loss, lr, row_number() over (order by place) as nth, count(*) over () as n
  from seen where place > (select quantile_disc(place, 1 - $part) from seen)
),
points as (
  select (nth - 1) * 40 // n as x, median(loss) as y, any_value(n) as n, min(step) as first_step, max(step) as last_step
  from tail group by 1
),
fit as (
  select regr_slope(y, x) * 39 as rise, median(y) as level, count(*) as k, any_value(n) as n,
    39 * sqrt(greatest(regr_syy(y, x) - regr_slope(y, x) * regr_sxy(y, x), 0) / nullif(count(*) - 2, 0)
      / regr_sxx(y, x)) as error,
    min(first_step) as first_step, max(last_step) as last_step
  from points
),
rates as (
  select (select arg_max(lr, nth) filter (isfinite(lr)) from tail) as now,
    (select max(lr) filter (isfinite(lr)) from core where run = $run) as peak
)
select if(now < $lr_share * peak, 'info', 'warning') as severity,
  format('the loss {} by {:.2g} % ({:.2g} to {:.2g} % by its interval) over the last {:,} rows, at {:.3g}: a plateau',
    case when rise > 0 then 'rose' when rise < 0 then 'fell' else 'moved' end, 100 * abs(rise) / level,
    100 * (abs(rise) - 2 * error) / level, 100 * (abs(rise) + 2 * error) / level, n, level)
    || if(now < $lr_share * peak, format('; lr is down to {:.2g} of its peak', now / peak), '') as sentence,
  list_filter([first_step, last_step], lambda step: step is not null) as steps,
  {'fell_pct': -100 * rise / level, 'error_pct': 100 * error / level, 'level': level, 'n': n} as "values"
from fit, rates where n >= $min_rows and k = 40 and level > 0 and -(rise - 2 * error) < $falls * level;
