-- Accuracy by slot of a block, slot 1 first: of the newest evaluation in view that has it (of the last 20), else of the
-- newest train row. Decoding stops at the first miss, so what falls early costs most. `dflash-tui compare --reference`
-- holds it against others'.
--
-- title: accuracy by position
-- chart: bars x=slot y=accuracy
-- order: 35
-- units: -, -
-- better: higher
-- requires: position_acc
-- cache: run
with found as materialized (
  -- To ask all evaluations for it takes 200 ms of a million rows: of these few it is read when they are found.
  (select event, step, rare[1].position_acc as p, generation, line_no from logged
    where run = $run and event = 'eval' and step between $first and $last
    order by generation desc, line_no desc limit 20)
  union all
  select event, step, rare[1].position_acc, generation, line_no from logged
  where run = $run and event = 'train' and step between $recent and $last
),
newest as (
  select event, step, p from found where p is not null
  order by event = 'eval' desc, generation desc, line_no desc limit 1
)
select concat_ws(' · ', format('{} at step {:,}', if(event = 'eval', 'evaluation', 'training'), step),
  format('slot 1 {:.3g}', p[1]), format('slot {} {:.3g}', len(p), p[-1]))
from newest;

with found as materialized (
  (select event, step, rare[1].position_acc as p, generation, line_no from logged
    where run = $run and event = 'eval' and step between $first and $last
    order by generation desc, line_no desc limit 20)
  union all
  select event, step, rare[1].position_acc, generation, line_no from logged
  where run = $run and event = 'train' and step between $recent and $last
),
newest as (
  select event, step, p from found where p is not null
  order by event = 'eval' desc, generation desc, line_no desc limit 1
)
select slot::varchar as slot, accuracy from (
  select generate_subscripts(p, 1) as slot, unnest(p) as accuracy from newest)
order by slot::bigint;
