-- Is this run alive and well? One row a figure: `n` is how many values it is made of, `note` says of which rows, or why
-- there is no value. NaN and infinities enter no figure and are counted in the note. Percentiles interpolate linearly
-- (type 7), std is the sample's (n - 1), the edges of the length buckets belong to mid.
-- "Last 2,000 rows" takes N with --last N; --from A --to B restricts every figure to those steps.
--
-- title: vitals
-- chart: table
-- order: 1
-- units: -, -, -, rows, -
-- window: run
-- cache: run
with seen as not materialized (
  select step, loss, accuracy, ddtree_streak8, grad_norm, noise_std, avg_seq_len, padding_eff, tok_per_sec,
    generation, line_no
  from core where run = $run and (step between $first and $last or $first is null)
),
whole as (
  select count(*) as rows, max(step) as last_step, count(step) as step_n,
    avg(g) as g_mean, quantile_cont(g, [0.5, 0.95]) as g_p, max(g) as g_max, count(g) as g_n,
    count_if(isfinite(grad_norm)) as g_finite, count(grad_norm) as g_logged,
    avg(t) as t_mean, stddev_samp(t) as t_std, count(t) as t_n, count(tok_per_sec) as t_logged,
    arg_min(s, place) as s_first, arg_max(s, place) as s_last, count(s) as s_n, count(noise_std) as s_logged
  from (
    select *, if(isfinite(grad_norm) and grad_norm > 0, grad_norm, null) as g,
      if(isfinite(tok_per_sec), tok_per_sec, null) as t, if(isfinite(noise_std), noise_std, null) as s,
      generation * 1_000_000_000_000 + line_no as place
    from seen)
),
recent as (
  select loss, padding_eff, avg_seq_len, accuracy, ddtree_streak8,
    if(isfinite(loss), loss, null) as l, if(isfinite(padding_eff), padding_eff, null) as p,
    if(isfinite(accuracy), accuracy, null) as a, if(isfinite(ddtree_streak8), ddtree_streak8, null) as d,
    case when not coalesce(isfinite(avg_seq_len), false) then null when avg_seq_len < $length_edges[1] then 'short'
      when avg_seq_len > $length_edges[2] then 'long' else 'mid' end as bucket
  from seen where (step >= $recent or step is null or $recent is null)
  order by generation desc, line_no desc limit coalesce($last_n, 2000)
),
tail as (
  select count(*) as rows, avg(l) as l_mean, quantile_cont(l, [0.1, 0.5, 0.9]) as l_p, count(l) as l_n,
    count(loss) as l_logged, avg(p) as p_mean, count(p) as p_n, count(padding_eff) as p_logged,
    count(avg_seq_len) as len_logged
  from recent
),
buckets as (
  select b.*, count(bucket) as rows, avg(a) as a_mean, count(a) as a_n, count(accuracy) as a_logged,
    avg(d) as d_mean, count(d) as d_n, count(ddtree_streak8) as d_logged
  from (values
      (1, 'short', format('avg_seq_len < {:.6g}', $length_edges[1])),
      (2, 'mid', format('avg_seq_len {:.6g}..{:.6g}', $length_edges[1], $length_edges[2])),
      (3, 'long', format('avg_seq_len > {:.6g}', $length_edges[2]))) b(pos, stat, limits)
    left join recent on bucket = stat
  group by b.pos, b.stat, b.limits
),
-- `keys` make a figure; of the `total` rows of its scope `logged` have a value, `finite` a finite one, and `n` pass the
-- filter.
figures(pos, metric, stat, value, n, keys, logged, finite, filter, why, scope, total) as (
  select f.*, null, 'all', rows from whole, (values
    (1, 'step', 'last', last_step, step_n, ['step'], step_n, step_n, null),
    (2, 'grad_norm', 'mean', g_mean, g_n, ['grad_norm'], g_logged, g_finite, 'grad_norm > 0'),
    (3, 'grad_norm', 'median', g_p[1], g_n, ['grad_norm'], g_logged, g_finite, 'grad_norm > 0'),
    (4, 'grad_norm', 'p95', g_p[2], g_n, ['grad_norm'], g_logged, g_finite, 'grad_norm > 0'),
    (5, 'grad_norm', 'max', g_max, g_n, ['grad_norm'], g_logged, g_finite, 'grad_norm > 0'),
    (16, 'tok_per_sec', 'mean', t_mean, t_n, ['tok_per_sec'], t_logged, t_n, null),
    (17, 'tok_per_sec', 'std', t_std, t_n, ['tok_per_sec'], t_logged, t_n, 'sample std (n - 1)'),
    (18, 'noise_std', 'first', s_first, s_n, ['noise_std'], s_logged, s_n, null),
    (19, 'noise_std', 'last', s_last, s_n, ['noise_std'], s_logged, s_n, null)) f
  union all
  select f.*, null, null, 'the last', rows from tail, (values
    (6, 'loss', 'mean', l_mean, l_n, ['loss'], l_logged, l_n),
    (7, 'loss', 'median', l_p[2], l_n, ['loss'], l_logged, l_n),
    (8, 'loss', 'p10', l_p[1], l_n, ['loss'], l_logged, l_n),
    (9, 'loss', 'p90', l_p[3], l_n, ['loss'], l_logged, l_n),
    (20, 'padding_eff', 'mean', p_mean, p_n, ['padding_eff'], p_logged, p_n)) f
  union all
  select f.*, limits,
    case when len_logged = 0 then format('avg_seq_len is null in the last {:,} row{}', t.rows, if(t.rows = 1, '', 's'))
      when b.rows = 0 then format('{}: 0 of the last {:,} row{}', limits, t.rows, if(t.rows = 1, '', 's')) end,
    'the last', t.rows
  from buckets b, tail t, (values
    (9 + pos, 'accuracy', stat, a_mean, a_n, ['accuracy', 'avg_seq_len'], a_logged, a_n),
    (12 + pos, 'ddtree_streak8', stat, d_mean, d_n, ['ddtree_streak8', 'avg_seq_len'], d_logged, d_n)) f
),
explained as (
  select *, format('{} {:,} row{}', scope, total, if(total = 1, '', 's')) as those, format('{:,} non-finite', logged - finite) as nonfinite,
    list_filter(keys, lambda key: not list_contains(known, key)) as missing
  from figures, (select coalesce(list(key), []) as known from keys where run = $run)
)
select metric, stat, value, n,
  case
    when value is not null then concat_ws('; ', filter, if(n < total, format('{:,} of ', n), '') || those,
      if(finite < logged, nonfinite || ' left out', null))
    when len(missing) > 0 then
      array_to_string(missing, ' and ') || if(len(missing) > 1, ' were', ' was') || ' never logged'
    when why is not null then why
    when logged = 0 then concat_ws(': ', filter, keys[1] || ' is null in ' || those)
    when finite = 0 then 'only ' || nonfinite || ' values in ' || those
    when n = 0 then filter || ': 0 of ' || those
    else 'one value has no std'
  end as note
from explained order by pos;
