-- Standard deviation of the noise that is added to the drafter's context, by bucket of steps.
--
-- title: noise
-- chart: line x=step y=mean low=min high=max
-- order: 70
-- units: step, -, -, -, rows
-- requires: noise_std
select concat_ws(' · ', format('first {:.4g}', arg_min(noise_std, place) filter (isfinite(noise_std))),
  format('now {:.4g}', arg_max(noise_std, place) filter (isfinite(noise_std))),
  if(count_if(not isfinite(noise_std)) > 0, format('{:,} non-finite', count_if(not isfinite(noise_std))), null))
from (
  select noise_std, generation * 1_000_000_000_000 + line_no as place
  from steps where run = $run and step between $first and $last);

with seen as (
  select step, step // $width as bucket, if(isfinite(noise_std), noise_std, null) as y
  from steps where run = $run and step between $first and $last and noise_std is not null
)
select min(step) as step, avg(y) as mean, min(y) as min, max(y) as max, count(y) as n
from seen group by bucket order by step;
