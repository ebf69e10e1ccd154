-- How far this run is and when it ends: steps, epochs and tokens done and planned, speed and the time that is left, by
-- the rules of the same figures in `dynamics`. Planned is what the `start` event says. Its total_steps decides when the
-- run ends: planned epochs are what they come to, and `epochs` of its config count only where there are no total_steps.
--
-- title: budget
-- chart: table
-- order: 3
-- units: -, -, -, -
-- window: run
-- cache: run
with seen as not materialized (
  select step, if(isfinite(epoch), epoch, null) as epoch, if(isfinite(tokens), tokens, null) as tokens, "time",
    attempt, line_no, if(isfinite("time") and step is not null, line_no, null) as timed_line,
    avg_batch_size * avg_seq_len as product, tok_per_sec
  from core where run = $run and (step between $first and $last or $first is null)
),
-- One look at the rows for all that is of each attempt, or of their sum. Of an attempt's rows with a step no two have
-- the same line: they lie in one generation of the log.
by_attempt as materialized (
  select attempt, max(step) as last_step, max(epoch) as epoch, sum(tokens) as tokens_sum, count(tokens) as tokens_n,
    min(timed_line) as head, max(timed_line) as tail, count(timed_line) as timed, max(step) - min(step) as span
  from seen group by attempt
),
-- How many steps a row is made of, by the newest ones: a gap in the log makes no row longer.
usual as (
  select coalesce(round(median(step - before) filter (step > before)), 1) as every
  from (
    select step, lag(step) over (partition by attempt order by line_no) as before
    from seen where step >= $recent)
),
whole as (
  select max(last_step) as last_step, max(epoch) as epoch, sum(tokens_sum) as tokens_sum, sum(tokens_n) as tokens_n,
    coalesce(sum(timed), 0) as timed, coalesce(sum(greatest(timed - 1, 0)), 0) as pairs, any_value(every) as every,
    sum(span) + any_value(every) * count(span) as covered
  from by_attempt, usual
),
-- The differences between neighbouring rows of an attempt add up to its last row minus its first.
travelled as (
  select sum(steps) as steps, sum(seconds) as seconds from (
    select arg_max(step, line_no) - arg_min(step, line_no) as steps,
      arg_max("time", line_no) - arg_min("time", line_no) as seconds
    from seen where (attempt, line_no) in (select attempt, unnest([head, tail]) from by_attempt) and step is not null
    group by attempt)
),
-- What stands in for tokens and for time; nothing of it is read where both are logged.
instead as (
  select sum(if(isfinite(product), product, null)) as product_sum, count_if(isfinite(product)) as product_n,
    avg(if(isfinite(tok_per_sec), tok_per_sec, null)) as rate
  from seen where (select tokens_n = 0 or timed = 0 from whole)
),
pace as (
  select last_step, total_steps, epoch, if(tokens_n > 0, tokens_n, product_n) as total_n,
    -- The last row of a stretch may be made of fewer steps than the others; a gap is no row.
    if(every > 1, least(covered, every * total_n), total_n) as total_steps_n,
    coalesce(tokens_sum / total_steps_n, product_sum / product_n) as per_step,
    coalesce(tokens_sum, per_step * total_steps_n) as total, epochs, tokens_n > 0 as has_tokens, every, pairs,
    case when timed = 0 then rate / per_step when seconds > 0 then steps / seconds end as per_sec
  from whole, travelled, instead
    left join (select total_steps from runs where run = $run) on true
    left join (
      select arg_max(try_cast(extra->'config'->>'epochs' as double), generation * 1_000_000_000_000 + line_no) as epochs
      from other_rows where run = $run and event = 'start') on true
)
select f.figure, f.value, f.unit, if(f.value is null, f.why, f.how) as note
from pace, (values
  (1, 'step', last_step, 'steps', null, 'step was never logged'),
  (2, 'total_steps', total_steps, 'steps', null, 'unknown: no start event says it'),
  (3, 'epoch', epoch, 'epochs', null, 'epoch has no value'),
  (4, 'epochs_planned', if(total_steps is null, epochs, epoch * total_steps / nullif(last_step, 0)), 'epochs',
    if(total_steps is null, 'of the start event', 'epoch x total_steps / step'),
    if(total_steps is null, 'unknown: the start event names neither epochs nor total_steps',
      'unknown: total_steps decides, and epoch has no value')),
  (5, 'tokens_per_step', per_step, 'tokens', case when not has_tokens
    then 'mean of avg_batch_size x avg_seq_len' when every > 1 then format('of tokens, a row being {:.0f} steps', every)
    else 'mean of tokens' end,
    'neither tokens nor avg_batch_size and avg_seq_len have a value'),
  (6, 'tokens_total', total, 'tokens', null, 'tokens_per_step has no value'),
  (7, 'tokens_planned', per_step * total_steps, 'tokens',
    format('tokens_per_step x total_steps; {:.3g} % are done', 100 * total / (per_step * total_steps)),
    'tokens_per_step or total_steps is unknown'),
  (8, 'steps_per_sec', per_sec, 'steps/s', null, if(pairs > 0, 'time does not advance',
    'needs two rows with time in one attempt, or tok_per_sec and tokens')),
  (9, 'eta_s', if(total_steps < last_step, 0, total_steps - last_step) / per_sec, 's', null,
    'total_steps or steps_per_sec is unknown')
) f(pos, figure, value, unit, how, why)
order by pos;
