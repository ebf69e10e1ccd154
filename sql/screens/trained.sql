-- What the train rows of $run at steps $first..$last say of how good its drafter is: means over the newest 2,000, accuracy
-- by slot of the newest that has it. Keys are those of `quality`, figures are not: of training, not of held-out prompts.
-- One row a figure: metric, stat ('last', or a slot from 1 on), value.
with recent as (
  select accept_len, ddtree_streak8 from core where run = $run and step between $first and $last
  order by generation desc, line_no desc limit 2000
),
means as (
  unpivot (
    select avg(accept_len) filter (isfinite(accept_len)) as accept_len,
      avg(ddtree_streak8) filter (isfinite(ddtree_streak8)) as ddtree_streak8
    from recent)
  on accept_len, ddtree_streak8 into name metric value value
),
positions as (
  select rare[1].position_acc as p from counted
  where run = $run and step between $first and $last and rare[1].position_acc is not null
  order by generation desc, line_no desc limit 1
)
select metric, stat, value from (
  select metric, 'last' as stat, 0 as slot, value from means
  union all
  select 'position_acc', slot::varchar, slot, value from (
    select unnest(p) as value, generate_subscripts(p, 1) as slot from positions))
where isfinite(value) order by metric, slot;
