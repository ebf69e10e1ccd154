-- How good the drafter of $run is, by its evaluations at steps $first..$last: figures of the newest one, and of the newest
-- of each name. What its train rows say of the same is `trained`: that is another thing, and never stands in for it here.
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
positions as (select position_acc as p from seen where position_acc is not null order by back limit 1)
select metric, stat, value from (
  select metric, stat, 0 as slot, value from figures
  union all
  select 'position_acc', slot::varchar, slot, value from (
    select unnest(p) as value, generate_subscripts(p, 1) as slot from positions))
where isfinite(value)
order by metric, stat <> 'last', slot, stat;
