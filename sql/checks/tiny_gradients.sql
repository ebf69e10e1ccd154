-- Vanishing gradients: the median gradient norm (before clipping, of rows with grad_norm > 0) of the newest `rows` rows
-- is below `median`; below `dead`, or with no row above 0 at all, it is critical. A small norm need not be sick, a
-- small drafter's often is: hold it against a run that learns.
--
-- title: vanishing gradients
-- order: 20
-- requires: grad_norm
-- thresholds: median = 0.1, dead = 1e-5, rows = 2000, min_rows = 200
-- cache: run
-- next: compare grad_norm with a run that learns (`dflash-tui compare`); look at the loss and the learning rate
with seen as not materialized (
  select step, if(grad_norm > 0, grad_norm, null) as g, generation, line_no
  from core where run = $run and isfinite(grad_norm) and grad_norm >= 0
),
recent as (
  select median(g) as middle, count(g) as n, count(*) as num_rows, min(step) as first_step, max(step) as last_step
  from (
    select * from seen where step >= $recent or step is null or $recent is null
    order by generation desc, line_no desc limit $rows::bigint)
),
whole as (select median(g) as middle, count(g) as n from seen)
select if(coalesce(recent.middle, 0) < $dead, 'critical', 'warning') as severity,
  if(recent.n = 0, format('grad_norm is 0 in all of the last {:,} rows', num_rows),
    format('the median gradient norm is {:.3g} over the last {:,} rows with grad_norm > 0 ({:.3g} over all {:,}),'
      || ' below {:.3g}',
      recent.middle, recent.n, whole.middle, whole.n, $median)) as sentence,
  list_filter([first_step, last_step], lambda step: step is not null) as steps,
  {'median': recent.middle, 'median_all': whole.middle, 'n': recent.n, 'n_all': whole.n} as "values"
from recent, whole where num_rows >= $min_rows and coalesce(recent.middle, 0) < $median;
