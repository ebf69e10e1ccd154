-- Accuracy by slot of a block, slot 1 first: of the newest evaluation in view that has it, else of the newest train row.
-- Decoding stops at the first miss, so what falls early costs most. `dflash-tui compare --reference` holds it against
-- others'.
--
-- title: accuracy by position
-- chart: bars x=slot y=accuracy
-- order: 35
-- units: -, -
-- better: higher
-- requires: evals.position_acc
-- window: run
-- cache: run
with found as materialized (
  select true as is_held_out, step, rare[1].position_acc as p, generation, line_no
  from other_rows r anti join cuts a on a.run = r.run and a.attempt = r.attempt and r.step >= a.cut_step
  where run = $run and event = 'eval' and coalesce(rank, 0) = 0 and (step between $first and $last or $first is null)
  union all
  select false, step, rare[1].position_acc, generation, line_no
  from counted where run = $run and (step between $first and $last or $first is null)
    and (step >= $recent or step is null or $recent is null) and rare[1].position_acc is not null
),
newest as (
  select is_held_out, step, list_transform(p, lambda x: if(isfinite(x), x, null)) as p,
    len(list_filter(p, lambda x: not isfinite(x))) as nonfinite
  from found where len(list_filter(p, lambda x: isfinite(x))) > 0
  order by is_held_out desc, generation desc, line_no desc limit 1
)
select concat_ws(' · ', if(is_held_out, 'evaluation', 'training') || coalesce(format(' at step {:,}', step), ''),
  format('slot 1 {:.3g}', p[1]), format('slot {} {:.3g}', len(p), p[-1]),
  if(nonfinite > 0, format('{} non-finite', nonfinite), null))
from newest;

with found as materialized (
  select true as is_held_out, step, rare[1].position_acc as p, generation, line_no
  from other_rows r anti join cuts a on a.run = r.run and a.attempt = r.attempt and r.step >= a.cut_step
  where run = $run and event = 'eval' and coalesce(rank, 0) = 0 and (step between $first and $last or $first is null)
  union all
  select false, step, rare[1].position_acc, generation, line_no
  from counted where run = $run and (step between $first and $last or $first is null)
    and (step >= $recent or step is null or $recent is null) and rare[1].position_acc is not null
),
newest as (
  select is_held_out, step, list_transform(p, lambda x: if(isfinite(x), x, null)) as p,
    len(list_filter(p, lambda x: not isfinite(x))) as nonfinite
  from found where len(list_filter(p, lambda x: isfinite(x))) > 0
  order by is_held_out desc, generation desc, line_no desc limit 1
)
select slot::varchar as slot, accuracy from (
  select generate_subscripts(p, 1) as slot, unnest(p) as accuracy from newest)
order by slot::bigint;
