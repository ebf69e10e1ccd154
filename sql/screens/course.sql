-- Where the steps $first to $last of $run lie in time and in tokens, in $buckets points or less for each attempt.
-- One row a stretch of steps: its attempt, its first and last step, the times of these, tokens as logged, tokens as
-- batch size times length. What stands before $first is the stretch of `bucket` -1.
with seen as (
  select attempt, step, if(isfinite("time"), "time", null) as t, if(isfinite(tokens), tokens, null) as logged,
    avg_batch_size * avg_seq_len as product,
    if(step < $first, -1, (step - $first) * $buckets // ($last - $first + 1)) as bucket
  from core where run = $run and step <= $last
)
select attempt, bucket, min(step) as first_step, max(step) as last_step, arg_min(t, step) as first_time,
  arg_max(t, step) as last_time, sum(logged) as tokens, sum(product) filter (isfinite(product)) as product
from seen group by attempt, bucket order by first_step, attempt;
