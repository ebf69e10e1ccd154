-- Mean loss of each length bucket that the trainer names in `bucket_loss`, over the newest 200 rows in view that hold
-- it: a loss with two humps may be that of two lengths.
--
-- title: loss by length bucket
-- chart: bars x=bucket y=loss n=n
-- order: 25
-- unit: nats
-- units: -, nats, rows
-- better: lower
-- requires: bucket_loss
-- cache: run
with recent as (
  select rare[1].bucket_loss as b from counted
  where run = $run and step between $first and $last and step >= $recent and rare[1].bucket_loss is not null
  order by generation desc, line_no desc limit 200
),
long_form as (
  select unnest(json_keys(b)) as bucket, try_cast(unnest(json_extract_string(b, '$.*')) as double) as loss
  from recent where json_type(b) = 'OBJECT'
)
select bucket, avg(loss) as loss, count(*) as n
from long_form where isfinite(loss) group by bucket order by try_cast(bucket as double), bucket;
