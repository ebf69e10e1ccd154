-- Length bias: accuracy, or the top-8 streak, of one length bucket is more than `ratio` times that of another, over the
-- newest `rows` rows; both buckets have `min_rows` rows, and they differ by `errors` standard errors. The limits are
-- `length_edges` of config.toml.
--
-- title: length bias
-- order: 120
-- requires: avg_seq_len, accuracy | ddtree_streak8
-- thresholds: ratio = 1.5, errors = 4, rows = 2000, min_rows = 30
-- cache: run
-- next: look at the panel length_buckets; does the data of one length differ, or do positions go wrong beyond a length?
with recent as (
  select step, accuracy, ddtree_streak8, case when avg_seq_len < $length_edges[1] then 'short'
      when avg_seq_len > $length_edges[2] then 'long' else 'mid' end as bucket
  from core where run = $run and isfinite(avg_seq_len) and (step >= $recent or step is null or $recent is null)
  order by generation desc, line_no desc limit $rows::bigint
),
long_form as (
  select step, bucket, v.*
  from recent, (values ('accuracy', accuracy), ('ddtree_streak8', ddtree_streak8)) v(metric, y) where isfinite(y)
),
buckets as (
  select metric, bucket, avg(y) as mean, var_samp(y) / count(*) as variance, count(*) as n, min(step) as first_step,
    max(step) as last_step
  from long_form group by metric, bucket having count(*) >= $min_rows
),
ends as (
  select metric, arg_max({'bucket': bucket, 'mean': mean, 'n': n, 'variance': variance}, mean) as high,
    arg_min({'bucket': bucket, 'mean': mean, 'n': n, 'variance': variance}, mean) as low,
    min(first_step) as first_step, max(last_step) as last_step
  from buckets group by metric
)
select 'warning' as severity,
  format('{} is {:.3g} on {} sequences and {:.3g} on {} ones ({:,} and {:,} of the last rows)', metric, high.mean,
    high.bucket, low.mean, low.bucket, high.n, low.n)
    || case when low.mean <= 0 then '' when high.mean < 10 * low.mean
        then format(': {:.2g} times as much', high.mean / low.mean)
      when high.mean < 1e6 * low.mean then format(': {:,.0f} times as much', high.mean / low.mean)
      else format(': {:.3g} times as much', high.mean / low.mean) end as sentence,
  list_filter([first_step, last_step], lambda step: step is not null) as steps,
  {'metric': metric, 'high': high.mean, 'high_bucket': high.bucket, 'low': low.mean, 'low_bucket': low.bucket}
    as "values"
from ends
where high.mean > $ratio * low.mean and high.mean - low.mean > $errors * sqrt(high.variance + low.variance)
order by metric;
