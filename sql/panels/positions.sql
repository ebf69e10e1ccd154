-- Accuracy by slot of a block, slot 1 first: of the newest evaluation in view, else of the newest train row that has
-- it. Decoding stops at the first miss, so what falls early costs most. `dflash-tui compare --reference` holds it
-- against others'.
--
-- title: accuracy by position
-- chart: bars x=slot y=accuracy
-- order: 35
-- units: -, -
-- better: higher
-- requires: position_acc
-- cache: run
with newest as (
  select position_acc as p, event, step from records
  where run = $run and step between $first and $last and (event = 'eval' or event = 'train' and step >= $recent)
    and position_acc is not null
  order by event = 'eval' desc, generation desc, line_no desc limit 1
)
select concat_ws(' · ', format('{} at step {:,}', if(event = 'eval', 'evaluation', 'training'), step),
  format('slot 1 {:.3g}', p[1]), format('slot {} {:.3g}', len(p), p[-1]))
from newest;

with newest as (
  select position_acc as p from records
  where run = $run and step between $first and $last and (event = 'eval' or event = 'train' and step >= $recent)
    and position_acc is not null
  order by event = 'eval' desc, generation desc, line_no desc limit 1
)
select slot::varchar as slot, accuracy from (
  select generate_subscripts(p, 1) as slot, unnest(p) as accuracy from newest)
order by slot::bigint;
