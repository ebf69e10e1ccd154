-- Accuracy by slot of a block, slot 1 first: of the newest evaluation in view that has it, else of the newest train row.
-- Decoding stops at the first miss, so what falls early costs most. `dflash-tui compare --reference` holds it against
-- others'.
--
-- title: accuracy by position
-- chart: bars x=slot y=accuracy
-- order: 35
-- units: -, -
-- better: higher
-- requires: position_acc
-- cache: run
with found as materialized (
  select event = 'eval' as is_held_out, step, rare[1].position_acc as p, generation, line_no
  from other_rows r anti join cuts a on a.run = r.run and a.attempt = r.attempt and r.step >= a.cut_step
  where run = $run and event = 'eval' and coalesce(rank, 0) = 0 and step between $first and $last
    and rare[1].position_acc is not null
  union all
  select false, step, rare[1].position_acc, generation, line_no
  from counted where run = $run and step between $recent and $last and rare[1].position_acc is not null
),
newest as (select is_held_out, step, p from found order by is_held_out desc, generation desc, line_no desc limit 1)
select concat_ws(' · ', format('{} at step {:,}', if(is_held_out, 'evaluation', 'training'), step),
  format('slot 1 {:.3g}', p[1]), format('slot {} {:.3g}', len(p), p[-1]))
from newest;

with found as materialized (
  select event = 'eval' as is_held_out, step, rare[1].position_acc as p, generation, line_no
  from other_rows r anti join cuts a on a.run = r.run and a.attempt = r.attempt and r.step >= a.cut_step
  where run = $run and event = 'eval' and coalesce(rank, 0) = 0 and step between $first and $last
    and rare[1].position_acc is not null
  union all
  select false, step, rare[1].position_acc, generation, line_no
  from counted where run = $run and step between $recent and $last and rare[1].position_acc is not null
),
newest as (select is_held_out, step, p from found order by is_held_out desc, generation desc, line_no desc limit 1)
select slot::varchar as slot, accuracy from (
  select generate_subscripts(p, 1) as slot, unnest(p) as accuracy from newest)
order by slot::bigint;
