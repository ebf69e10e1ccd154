-- The GPUs that the run is on, by time since its first row: how busy they are and how full, in percent, the mean of all
-- of them. Sampled every ten seconds while a session or `watch` follows the run; a gap is a time without. `own` is what
-- the run itself holds, where its container does not hide that. The headline is the newest sample.
--
-- title: GPU
-- chart: line x=time y=busy y2=memory x_scale=duration
-- order: 107
-- unit: %
-- units: s, %, %, %, GiB, C, W, GPUs, samples
-- requires: gpus.utilization_pct | gpus.memory_used_mib
-- window: run
with seen as (
  select * from gpus where run = $run and ($first is null or "time" between
    (select min("time") from core where run = $run and step between $first and $last) and
    (select max("time") from core where run = $run and step between $first and $last))
)
select concat_ws(' · ', format('now {:.3g} % busy', avg(utilization_pct)),
  format('{:.3g} of {:.3g} GiB', sum(memory_used_mib) / 1024, sum(memory_total_mib) / 1024),
  format('{:.3g} C', max(temperature_c)), format('{:.3g} W', sum(power_w)), format('{} GPU', count(*)))
from seen where "time" = (select max("time") from seen);

with seen as (
  select * from gpus where run = $run and ($first is null or "time" between
    (select min("time") from core where run = $run and step between $first and $last) and
    (select max("time") from core where run = $run and step between $first and $last))
),
ends as (
  select min("time") as first_time, greatest((max("time") - min("time")) / $buckets, 10) as width,
    coalesce((
      select min("time") from core where run = $run and generation = 1 and line_no <= 1000 and isfinite("time")),
      min("time")) as start
  from seen
),
buckets as (
  select floor(("time" - first_time) / width) as bucket, min("time") - any_value(start) as "time",
    avg(utilization_pct) as busy, 100 * avg(memory_used_mib / memory_total_mib) as memory,
    max(utilization_pct) as busiest, sum(own_memory_mib) / 1024 / count(distinct seen."time") as own,
    max(temperature_c) as temperature, avg(power_w) as power, count(distinct gpu) as gpus, count(*) as n
  from seen, ends group by bucket
)
select "time", busy, memory, busiest, own, temperature, power, gpus, n from buckets
union all
-- Nothing is drawn across a time in which nobody looked.
select b."time" + width, null, null, null, null, null, null, null, 0 from buckets b, ends
where not exists (select 1 from buckets o where o.bucket in (b.bucket + 1, b.bucket + 2)) and
  b.bucket < (select max(bucket) from buckets)
order by "time";
