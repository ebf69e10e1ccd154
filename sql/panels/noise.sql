-- Standard deviation of the noise that is added to the drafter's context, by bucket of steps.
--
-- title: noise
-- chart: line x=step y=mean low=min high=max
-- order: 70
-- units: step, -, -, -, rows, rows
-- requires: noise_std
-- cache: buckets
select format('now {:.4g}', noise_std) from core
where run = $run and step between $first and $last and step >= $recent and isfinite(noise_std)
order by generation desc, line_no desc limit 1;

with seen as (
  select step, step // $width as bucket, if(isfinite(noise_std), noise_std, null) as y
  from core where run = $run and step between $first and $last and noise_std is not null
)
select min(step) as step, avg(y) as mean, min(y) as min, max(y) as max, count(y) as n, count(*) - count(y) as nonfinite
from seen group by bucket order by step;
