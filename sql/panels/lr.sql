-- Learning rate by bucket of steps, as logged. `min` and `max` show the ends of a bucket's slope, and every jump: a
-- schedule that starts anew after a resume is a step up.
--
-- title: learning rate
-- chart: line x=step y=mean low=min high=max
-- order: 60
-- units: step, -, -, -, rows
-- requires: lr
select concat_ws(' · ', format('now {:.4g}', arg_max(lr, place) filter (isfinite(lr))),
  format('highest {:.4g}', max(lr) filter (isfinite(lr))),
  if(count_if(not isfinite(lr)) > 0, format('{:,} non-finite', count_if(not isfinite(lr))), null))
from (
  select lr, generation * 1_000_000_000_000 + line_no as place
  from steps where run = $run and step between $first and $last);

with seen as (
  select step, step // $width as bucket, if(isfinite(lr), lr, null) as y
  from steps where run = $run and step between $first and $last and lr is not null
)
select min(step) as step, avg(y) as mean, min(y) as min, max(y) as max, count(y) as n
from seen group by bucket order by step;
