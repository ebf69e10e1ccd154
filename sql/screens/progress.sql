-- One row of how a run goes, for eyes that have no screen: its last step, means over the newest 20 rows, its last
-- evaluation. $run is the run id.
with newest as (
  select * from steps where run = $run order by generation desc, line_no desc limit 20
),
evaluation as (
  select step, tau_linear_macro, lookup_tau_macro, lossless from evals
  where run = $run and tau_linear_macro is not null order by generation desc, line_no desc limit 1
)
select max(n.step) as step, avg(n.loss) filter (isfinite(n.loss)) as loss,
  avg(n.accuracy) filter (isfinite(n.accuracy)) as accuracy,
  (max(n.step) - min(n.step)) / nullif(max(n."time") - min(n."time"), 0) as steps_per_sec,
  any_value(e.step) as eval_step, any_value(e.tau_linear_macro) as tau, any_value(e.lookup_tau_macro) as lookup_tau,
  any_value(e.lossless) as lossless
from newest n full join evaluation e on true;
