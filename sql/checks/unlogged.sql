-- Keys that panels need and this run never logged: those panels stay empty. A run without a step says nothing yet.
--
-- title: keys nobody logs
-- order: 200
-- next: log them, or map the names that your trainer uses in `[aliases]` of config.toml
with missing as (
  select need.panel, array_to_string(need.keys, ' or ') as keys from (select unnest($needs) as need)
  where not need.logged and exists (select 1 from logged where run = $run and event = 'train')
)
select 'info' as severity,
  'panels lack keys that this run never logged: '
    || string_agg(panel || ' needs ' || keys, '; ' order by panel, keys) as sentence,
  []::bigint[] as steps,
  {'keys': list(distinct keys order by keys), 'panels': list(distinct panel order by panel)} as "values"
from missing having count(*) > 0;
