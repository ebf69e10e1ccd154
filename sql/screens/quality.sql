-- How good the drafter of $run is, by the steps $first..$last: figures of the newest evaluation, and of the newest of each
-- name. A run without one has what its train rows say: means over the newest 2,000, accuracy by slot of the newest.
-- One row a figure: metric, stat ('last', the evaluation's name, or a slot from 1 on), value.
with seen as (
  select *, row_number() over (order by generation desc, line_no desc) as back,
    row_number() over (partition by name order by generation desc, line_no desc) as back_of_name
  from evals where run = $run and step between $first and $last
),
picked as (
  select 'last' as stat, * from seen where back = 1
  union all
  select name as stat, * from seen where back_of_name = 1 and name is not null
),
figures as (
  unpivot (
    select stat, tau_linear_macro, tau_linear_micro, lookup_tau_macro, lossless, ddtree_tau_b8, ddtree_tau_b16,
      ddtree_tau_b32, ddtree_tau_b64, walk_accept_len, tau_gap, accept_len, ddtree_streak8, full_block_rate, eval_loss
    from picked)
  on columns(* exclude stat) into name metric value value
),
recent as (
  select accept_len, ddtree_streak8 from core where run = $run and step between $first and $last
  order by generation desc, line_no desc limit 2000
),
trained as (
  unpivot (
    select avg(accept_len) filter (isfinite(accept_len)) as accept_len,
      avg(ddtree_streak8) filter (isfinite(ddtree_streak8)) as ddtree_streak8
    from recent)
  on accept_len, ddtree_streak8 into name metric value value
),
positions as (
  select position_acc as p from records
  where run = $run and step between $first and $last and position_acc is not null and event in ('eval', 'train')
  order by event = 'eval' desc, generation desc, line_no desc limit 1
)
select metric, stat, value from figures where isfinite(value)
union all
select metric, 'last', value from trained t where not exists (select 1 from figures f where f.metric = t.metric and f.stat = 'last')
union all
select 'position_acc', slot::varchar, value from (select unnest(p) as value, generate_subscripts(p, 1) as slot from positions)
where isfinite(value);
