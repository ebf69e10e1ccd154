-- Keys that panels need and this run never logged: those panels stay empty. A run without a step says nothing yet.
--
-- title: keys nobody logs
-- order: 200
-- next: log them, or map the names that your trainer uses in `[aliases]` of config.toml
with missing as (
  select need.panel, array_to_string(need.keys, ' or ') as keys from (select unnest($needs) as need)
  where not need.logged and exists (select 1 from logged where run = $run and event = 'train')
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
