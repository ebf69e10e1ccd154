-- Learning rate by bucket of steps, as logged. `min` and `max` show the ends of a bucket's slope, and every jump: a
-- schedule that starts anew after a resume is a step up.
--
-- title: learning rate
-- chart: line x=step y=mean low=min high=max
-- order: 60
-- units: step, -, -, -, rows, rows
-- requires: lr
-- cache: buckets
select format('now {:.4g}', lr) from core
where run = $run and step between $first and $last and step >= $recent and isfinite(lr)
order by generation desc, line_no desc limit 1;

with seen as (
  select step, step // $width as bucket, if(isfinite(lr), lr, null) as y
  from core where run = $run and step between $first and $last and lr is not null
)
select min(step) as step, avg(y) as mean, min(y) as min, max(y) as max, count(y) as n, count(*) - count(y) as nonfinite
from seen group by bucket order by step;
