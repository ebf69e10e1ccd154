-- How good the drafter of $run is, by its evaluations from step $first to $last (null: no limit, nor need they have a step):
-- figures of the newest one of each name, those without a name among them, and accuracy by slot of the newest that has it.
-- What its train rows say of the same is `trained`: that is another thing, and never stands in for it here.
-- One row a figure: metric, slot (from 1 on; null for all but accuracy), the evaluation's name, whether it is the newest
-- of all, value.
with seen as (
  select *, row_number() over (order by generation desc, line_no desc) as back,
    row_number() over (partition by name order by generation desc, line_no desc) as back_of_name
  from evals where run = $run and ($first is null or step >= $first) and ($last is null or step <= $last)
),
figures as (
  unpivot (
    select name, back = 1 as is_newest, tau_linear_macro, tau_linear_micro, lookup_tau_macro, lossless, ddtree_tau_b8,
      ddtree_tau_b16, ddtree_tau_b32, ddtree_tau_b64, walk_accept_len, tau_gap, accept_len, ddtree_streak8,
      full_block_rate, eval_loss
    from seen where back_of_name = 1)
  on columns(* exclude (name, is_newest)) into name metric value value
),
positions as (select name, position_acc as p from seen where position_acc is not null order by back limit 1)
select metric, slot, name, is_newest, value from (
  select metric, null as slot, name, is_newest, value from figures
  union all
  select 'position_acc', generate_subscripts(p, 1), name, true, unnest(p) from positions)
where isfinite(value)
order by metric, slot, is_newest desc, name;
