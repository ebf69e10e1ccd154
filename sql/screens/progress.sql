-- One row of how a run goes, for eyes that have no screen: its last step, means over the newest 20 rows, its last
-- evaluation. $run is the run id.
with newest as (
  select step, loss, accuracy, "time" from steps where run = $run order by generation desc, line_no desc limit 20
),
pace as (
  select (max(step) - min(step)) / nullif(max("time") - min("time"), 0) as steps_per_sec
  from newest where isfinite("time")
),
evaluation as (
  select step, tau_linear_macro, if(isfinite(lookup_tau_macro), lookup_tau_macro, null) as lookup_tau,
    if(isfinite(lossless), lossless, null) as lossless
  from evals where run = $run and isfinite(tau_linear_macro) order by generation desc, line_no desc limit 1
)
select max(n.step) as step, avg(n.loss) filter (isfinite(n.loss)) as loss,
  avg(n.accuracy) filter (isfinite(n.accuracy)) as accuracy, any_value(p.steps_per_sec) as steps_per_sec,
  any_value(e.step) as eval_step, any_value(e.tau_linear_macro) as tau, any_value(e.lookup_tau) as lookup_tau,
  any_value(e.lossless) as lossless
from newest n full join evaluation e on true left join pace p on true;
