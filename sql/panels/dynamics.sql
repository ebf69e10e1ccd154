-- Is this run getting anywhere, and when does it end? One row a figure: `n` is how many values it is made of, `note`
-- says of which rows, or why there is no value. NaN and infinities enter no figure and are counted in the note.
-- Early against late: steps 3,000-5,000 (the streak: 10,000-15,000) against 20,000-23,000; while the last step is below
-- 20,000, the first and the last fifth of the rows; two windows that are asked for take their place, and the headline says
-- so. `at_N` is the last value logged at or before step N.
-- A row of `tokens` may be that of several steps: tokens a step are then those of all rows by the steps these cover.
-- "Last 3,000 rows" takes N with --last N; --from A --to B restricts every figure to those steps.
--
-- title: dynamics
-- chart: table
-- order: 2
-- units: -, -, -, rows, -
-- window: run
-- cache: run
select format('early is steps {:,}..{:,} · late is steps {:,}..{:,}', $a_first, $a_last, $b_first, $b_last)
where $a_first is not null;

with seen as not materialized (
  select step, loss, accuracy, ddtree_streak8, lr, noise_std, avg_batch_size, avg_seq_len, tokens, tok_per_sec, "time",
    attempt, line_no, generation * 1_000_000_000_000 + line_no as place, avg_batch_size * avg_seq_len as product,
    if(isfinite(tokens), tokens, null) as t, if(isfinite("time") and step is not null, line_no, null) as timed_line
  from core where run = $run and (step between $first and $last or $first is null)
),
-- One look at the rows for all that is of each attempt, or of their sum. Of an attempt's rows with a step no two have
-- the same line: they lie in one generation of the log.
by_attempt as materialized (
  select attempt, count(*) as rows, min(step) as first_step, max(step) as last_step, count(tokens) as tokens_logged,
    sum(t) as tokens_sum, count(t) as tokens_n, count(timed_line) as timed, min(timed_line) as head,
    max(timed_line) as tail
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
  select *, $a_first is null and last_step < 20_000 as is_short, greatest(rows // 5, 1) as fifth from (
    select coalesce(sum(rows), 0)::bigint as rows, min(first_step) as first_step, max(last_step) as last_step,
      sum(tokens_logged) as tokens_logged, sum(tokens_sum) as tokens_sum, coalesce(sum(tokens_n), 0) as tokens_n,
      coalesce(sum(timed), 0)::bigint as timed, coalesce(sum(greatest(timed - 1, 0)), 0)::bigint as pairs,
      sum(last_step - first_step) + any_value(every) * count(first_step) as covered, any_value(every) as every
    from by_attempt, usual)
),

-- Early against late. A side is a stretch of steps or, in a short run, of rows.
near as materialized (
  select step, place, loss, accuracy, ddtree_streak8, lr, noise_std
  from seen where step <= greatest(23_000, $a_last, $b_last) or step is null
),
ranked as (select *, row_number() over (order by place) as nth from near where (select is_short from whole)),
picked as (
  select 'early' as side, loss, accuracy, ddtree_streak8
  from near where step between coalesce($a_first, 3_000) and coalesce($a_last, 5_000)
  union all
  select 'middle', loss, accuracy, ddtree_streak8
  from near where step between coalesce($a_first, 10_000) and coalesce($a_last, 15_000)
  union all
  select 'late', loss, accuracy, ddtree_streak8
  from near where step between coalesce($b_first, 20_000) and coalesce($b_last, 23_000)
  union all
  select 'first', loss, accuracy, ddtree_streak8 from ranked, whole where nth <= fifth
  union all
  select 'last', loss, accuracy, ddtree_streak8 from ranked, whole where nth > rows - fifth
),
measured as (
  select side, v.* from (
    select side, count(*) as rows,
      count(loss) as l_logged, count_if(isfinite(loss)) as l_n, avg(loss) filter (isfinite(loss)) as l_mean,
      count(accuracy) as a_logged, count_if(isfinite(accuracy)) as a_n,
      avg(accuracy) filter (isfinite(accuracy)) as a_mean,
      count(ddtree_streak8) as d_logged, count_if(isfinite(ddtree_streak8)) as d_n,
      avg(ddtree_streak8) filter (isfinite(ddtree_streak8)) as d_mean
    from picked group by side), (values
    ('loss', rows, l_logged, l_n, l_mean),
    ('accuracy', rows, a_logged, a_n, a_mean),
    ('ddtree_streak8', rows, d_logged, d_n, d_mean)) v(metric, rows, logged, n, mean)
),
-- `first` and `last` stand in for the named sides while the run is short.
sides(pos, metric, stat, side, short_side, first_step, last_step) as (values
  (10, 'loss', 'early', 'early', 'first', coalesce($a_first, 3_000), coalesce($a_last, 5_000)),
  (11, 'loss', 'late', 'late', 'last', coalesce($b_first, 20_000), coalesce($b_last, 23_000)),
  (20, 'accuracy', 'early', 'early', 'first', coalesce($a_first, 3_000), coalesce($a_last, 5_000)),
  (21, 'accuracy', 'late', 'late', 'last', coalesce($b_first, 20_000), coalesce($b_last, 23_000)),
  (70, 'ddtree_streak8', 'early', 'middle', 'first', coalesce($a_first, 10_000), coalesce($a_last, 15_000)),
  (71, 'ddtree_streak8', 'late', 'late', 'last', coalesce($b_first, 20_000), coalesce($b_last, 23_000))
),
compared as (
  select s.pos, s.metric, s.stat, mean, coalesce(m.n, 0) as n, coalesce(m.rows, 0) as rows,
    coalesce(m.logged, 0) as logged,
    if(is_short, format('the {} fifth of the rows ({})', short_side,
        if($first is null, 'the run is shorter than 20,000 steps', 'the window ends before step 20,000')),
      format('steps {:,}..{:,}', s.first_step, s.last_step)) as scope
  from sides s cross join whole
    left join measured m on m.metric = s.metric and m.side = if(is_short, s.short_side, s.side)
),

-- The schedules, read at fixed steps.
schedule as (
  select at_step, lr, l.step as lr_step, noise_std, n.step as noise_step
  from (values (2_800), (5_000), (10_000), (15_000), (20_000), (22_000)) p(at_step)
    asof left join (select step, lr from near where isfinite(lr)) l on at_step >= l.step
    asof left join (select step, noise_std from near where isfinite(noise_std)) n on at_step >= n.step
),

-- The batches of late.
recent as (
  select avg_batch_size, avg_seq_len from seen where (step >= $recent or step is null or $recent is null)
  order by place desc limit coalesce($last_n, 3000)
),
batches as (
  select v.* from (
    select count(*) as rows, count(avg_batch_size) as b_logged, count(b) as b_n, avg(b) as b_mean, min(b) as b_min,
      max(b) as b_max, count(avg_seq_len) as l_logged, count(l) as l_n, avg(l) as l_mean, min(l) as l_min,
      max(l) as l_max
    from (
      select *, if(isfinite(avg_batch_size), avg_batch_size, null) as b,
        if(isfinite(avg_seq_len), avg_seq_len, null) as l
      from recent)), (values
    (50, 'avg_batch_size', 'mean', b_mean, b_n, b_logged, rows),
    (51, 'avg_batch_size', 'min', b_min, b_n, b_logged, rows),
    (52, 'avg_batch_size', 'max', b_max, b_n, b_logged, rows),
    (60, 'avg_seq_len', 'mean', l_mean, l_n, l_logged, rows),
    (61, 'avg_seq_len', 'min', l_min, l_n, l_logged, rows),
    (62, 'avg_seq_len', 'max', l_max, l_n, l_logged, rows)) v(pos, metric, stat, value, n, logged, rows)
),

-- Speed: the differences between neighbouring rows of an attempt add up to its last row minus its first.
travelled as (
  select sum(steps) as steps, sum(seconds) as seconds from (
    select arg_max(step, line_no) - arg_min(step, line_no) as steps,
      arg_max("time", line_no) - arg_min("time", line_no) as seconds
    from seen where (attempt, line_no) in (select attempt, unnest([head, tail]) from by_attempt) and step is not null
    group by attempt)
),
-- What stands in for tokens and for time; nothing of it is read where both are logged.
instead as (
  select sum(if(isfinite(product), product, null)) as product_sum, count(product) as product_logged,
    coalesce(count_if(isfinite(product)), 0) as product_n, coalesce(count_if(isfinite(tok_per_sec)), 0) as rate_n,
    avg(if(isfinite(tok_per_sec), tok_per_sec, null)) as rate
  from seen where (select tokens_n = 0 or timed = 0 from whole)
),
pace as (
  select *, case when timed = 0 then rate / per_step when seconds > 0 then steps / seconds end as per_sec
  from (
    select *, if(tokens_n > 0, tokens_n, product_n) as total_n,
      if(tokens_n > 0, tokens_logged, product_logged) as total_logged,
      -- The last row of a stretch may be made of fewer steps than the others; a gap is no row.
      if(every > 1, least(covered, every * total_n), total_n) as total_steps_n,
      coalesce(tokens_sum / total_steps_n, product_sum / product_n) as per_step,
      coalesce(tokens_sum, per_step * total_steps_n) as total
    from whole, travelled, instead)
    left join (select total_steps from runs where run = $run) on true
),

-- `keys` make a figure; of the `rows` it looks at `logged` have a value, `n` a finite one.
figures(pos, metric, stat, value, n, keys, rows, logged, how, why, scope) as (
  select pos, metric, stat, mean, n, [metric], rows, logged, null, if(rows = 0, 'no rows in ' || scope, null), scope
  from compared
  union all
  select 72, 'ddtree_streak8', 'change_pct', 100 * (late.mean / nullif(early.mean, 0) - 1), early.n + late.n,
    ['ddtree_streak8'], null, null, 'percent, late against early', case when early.mean is null then 'no early value'
      when late.mean is null then 'no late value' else 'the early value is 0' end, null
  from compared early, compared late where early.pos = 70 and late.pos = 71
  union all
  select v.pos + at_step / 1e6, v.metric, 'at_' || at_step, if(last_step < at_step, null, v.value),
    if(last_step < at_step or v.value is null, 0, 1), [v.metric], null, null,
    format('logged at step {:,}', v.step), case
      when last_step < at_step then
        format('{}: the last step is {:,}', if($first is null, 'not reached yet', 'not in this window'), last_step)
      when first_step > at_step then format('the first step is {:,}', first_step)
      else v.metric || ' has no value up to here' end, null
  from schedule, whole, (values
    (30, 'lr', lr, lr_step), (40, 'noise_std', noise_std, noise_step)) v(pos, metric, value, step)
  union all
  select pos, metric, stat, value, n, [metric], rows, logged, null, null, format('the last {:,} row{}', rows, if(rows = 1, '', 's'))
  from batches
  union all
  select v.pos, 'tokens', v.stat, v.value, total_n, if(tokens_n > 0, ['tokens'], ['avg_batch_size', 'avg_seq_len']),
    rows, total_logged,
    case when tokens_n = 0 then 'of avg_batch_size x avg_seq_len'
      when every > 1 then format('of tokens, a row being {:.0f} steps', every) else 'of tokens' end,
    if(total_n = 0, 'tokens has no value either', null), format('all {:,} row{}', rows, if(rows = 1, '', 's'))
  from pace, (values (80, 'per_step', per_step), (81, 'total', total)) v(pos, stat, value)
  union all
  select 90, 'steps', 'per_sec', per_sec, if(timed > 0, pairs, rate_n), ['step'], null, null,
    if(timed > 0, 'by time between neighbouring rows of an attempt',
      'mean tok_per_sec / tokens.per_step: there is no time'),
    case when timed = 0 then 'no time; tok_per_sec or tokens.per_step has no value either'
      when pairs = 0 then 'a row with time has no neighbour' else 'time does not advance' end, null
  from pace
  union all
  select 91, 'eta_s', null, if(total_steps < last_step, 0, total_steps - last_step) / per_sec, null, ['step'], null,
    null, format('seconds to step {:,}', total_steps),
    if(total_steps is null, 'total_steps is unknown: no start event says it', 'steps.per_sec has no value'), null
  from pace
)
select metric, stat, value, n,
  case
    when value is not null then concat_ws('; ', how, scope, if(n < rows, format('{:,} of {:,} rows', n, rows), null),
      if(n < logged, format('{:,} non-finite left out', logged - n), null))
    when len(missing) > 0 then
      concat_ws('; ', array_to_string(missing, ' and ') || if(len(missing) > 1, ' were', ' was') || ' never logged',
        why)
    when why is not null then why
    when logged = 0 then format('{} is null in {}', array_to_string(keys, ' or '), scope)
    else format('only {:,} non-finite values in {}', logged, scope)
  end as note
from (
  select *, list_filter(keys, lambda key: not list_contains(known, key)) as missing
  from figures, (select coalesce(list(key), []) as known from keys where run = $run))
order by pos;
