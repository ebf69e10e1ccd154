-- Keys that panels need and this run never logged: those panels stay empty. While a run goes on, not every row holds every
-- key: nothing is said before `min_rows` rows, before twice the steps that its `start` event lets pass between arrays
-- (log_arrays_every), and of evaluations before the first that it makes on its way (eval_every).
--
-- title: keys nobody logs
-- order: 200
-- thresholds: min_rows = 100
-- next: log them, or map the names that your trainer uses in `[aliases]` of config.toml
with rows as (
  select count(*) as n, max(step) as last_step from step_rows where run = $run
),
declared as (
  select coalesce(max(try_cast(c->>'log_arrays_every' as double)), 0) as arrays_every,
    coalesce(max(try_cast(c->>'eval_every' as double)), 0) as eval_every
  from (select extra->'config' as c from other_rows where run = $run and event = 'start')
),
reach as (
  select n, last_step, arrays_every, eval_every,
    (select state in ('starting', 'running', 'stopping', 'orphaned') from runs where run = $run) as goes_on
  from rows, declared
),
missing as (
  select need.panel, array_to_string(need.keys, ' or ') as keys from (select unnest($needs) as need), reach
  where not need.logged and n > 0
    and (not goes_on or n >= $min_rows
      and coalesce(last_step, n) > greatest(2 * arrays_every, if(need.relation = 'evals', eval_every, 0)))
),
lacking as (
  select panel, string_agg(keys, ' and ' order by keys) as needed, list(distinct keys) as keys from missing group by panel
)
select 'info' as severity,
  'panels lack keys that this run never logged: '
    || string_agg(panel || ' needs ' || needed, '; ' order by panel) as sentence,
  []::bigint[] as steps,
  {'keys': list_sort(list_distinct(flatten(list(keys)))), 'panels': list(panel order by panel)} as "values"
from lacking having count(*) > 0;
