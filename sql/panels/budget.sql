-- How far this run is and when it ends: steps, epochs and tokens done and planned, speed and the time that is left, by
-- the rules of the same figures in `dynamics`. Planned is what the `start` event says; of epochs else what they come to.
--
-- title: budget
-- chart: table
-- order: 3
-- units: -, -, -, -
-- window: run
-- cache: run
with seen as not materialized (
  select step, epoch, "time", attempt, generation * 1_000_000_000_000 + line_no as place, tokens,
    avg_batch_size * avg_seq_len as product, tok_per_sec
  from core where run = $run and (step between $first and $last or $first is null)
),
whole as (
  select max(step) as last_step, max(epoch) filter (isfinite(epoch)) as epoch,
    avg(if(isfinite(tokens), tokens, null)) as tokens_mean, sum(if(isfinite(tokens), tokens, null)) as tokens_sum,
    avg(if(isfinite(product), product, null)) as product_mean, sum(if(isfinite(product), product, null)) as product_sum,
    avg(if(isfinite(tok_per_sec), tok_per_sec, null)) as rate
  from seen
),
spans as (
  select arg_min((step, "time"), place) filter (isfinite("time")) as head,
    arg_max((step, "time"), place) filter (isfinite("time")) as tail, count(*) as stepped, max(step) - min(step) as span
  from seen where step is not null group by attempt
),
pace as (
  select last_step, total_steps, epoch,
    coalesce(if(every > 1, tokens_sum / covered, tokens_mean), product_mean) as per_step,
    coalesce(tokens_sum, product_sum) as total, epochs, tokens_mean is not null as has_tokens, every,
    case when timed = 0 then rate / per_step when seconds > 0 then steps / seconds end as per_sec
  from whole, (
    select count(head) as timed, sum(tail[1] - head[1]) as steps, sum(tail[2] - head[2]) as seconds,
      coalesce(round(sum(span) / nullif(sum(stepped - 1), 0)), 1) as every, sum(span) + every * count(*) as covered
    from spans)
    left join (select total_steps from runs where run = $run) on true
    left join (
      select arg_max(try_cast(extra->'config'->>'epochs' as double), generation * 1_000_000_000_000 + line_no) as epochs
      from logged where run = $run and event = 'start') on true
)
select f.figure, f.value, f.unit, if(f.value is null, f.why, f.how) as note
from pace, (values
  ('step', last_step, 'steps', null, 'step was never logged'),
  ('total_steps', total_steps, 'steps', null, 'unknown: no start event says it'),
  ('epoch', epoch, 'epochs', null, 'epoch has no value'),
  ('epochs_planned', coalesce(epochs, epoch * total_steps / nullif(last_step, 0)), 'epochs',
    if(epochs is null, 'epoch x total_steps / step', 'of the start event'),
    'unknown: the start event names none, and epoch or total_steps has no value'),
  ('tokens_per_step', per_step, 'tokens', case when not has_tokens
    then 'mean of avg_batch_size x avg_seq_len' when every > 1 then format('of tokens, a row being {:.0f} steps', every)
    else 'mean of tokens' end,
    'neither tokens nor avg_batch_size and avg_seq_len have a value'),
  ('tokens_total', total, 'tokens', null, 'tokens_per_step has no value'),
  ('tokens_planned', per_step * total_steps, 'tokens',
    format('tokens_per_step x total_steps; {:.3g} % are done', 100 * total / (per_step * total_steps)),
    'tokens_per_step or total_steps is unknown'),
  ('steps_per_sec', per_sec, 'steps/s', null, 'needs two rows with time in one attempt, or tok_per_sec and tokens'),
  ('eta_s', if(total_steps < last_step, 0, total_steps - last_step) / per_sec, 's', null,
    'total_steps or steps_per_sec is unknown')
) f(figure, value, unit, how, why);
