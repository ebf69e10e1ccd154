-- Two-humped loss: the newest `rows` rows fall into two groups with hardly anything between them, so that mean and
-- median describe neither. The split is the one that explains most of the variance (Otsu), by at least `explained`; the
-- smaller group has at least `share` of the rows, and both come all along: a loss that fell in the middle has no two
-- humps.
--
-- title: two-humped loss
-- order: 40
-- requires: loss
-- thresholds: explained = 0.85, share = 0.05, apart = 0.25, rows = 2000, min_rows = 200
-- cache: run
-- next: two kinds of batches? look at the panel length_buckets and at bucket_loss; log the loss by kind of data
with recent as (
  select step, loss as y, avg_seq_len as length, row_number() over (order by generation, line_no) as nth
  from (
    select step, loss, avg_seq_len, generation, line_no
    from core where run = $run and isfinite(loss) and (step >= $recent or step is null or $recent is null)
    order by generation desc, line_no desc limit $rows::bigint)
),
ranked as (
  select *, row_number() over w as below, sum(y) over w as sum_below, count(*) over () as n, sum(y) over () as total,
    var_pop(y) over () as variance
  from recent window w as (order by y, nth rows unbounded preceding)
),
split as (
  select y as edge, below, n, variance,
    below * (n - below) / (n * n) * (sum_below / below - (total - sum_below) / (n - below)) ** 2 as between_groups
  from ranked where below < n and variance > 0
  order by between_groups desc, below limit 1
),
humps as (
  select count(*) filter (not is_high) as n_low, count(*) filter (is_high) as n_high,
    median(y) filter (not is_high) as low, median(y) filter (is_high) as high,
    max(y) filter (not is_high) as low_end, min(y) filter (is_high) as high_begin,
    avg(y) as mean, median(y) as middle, min(step) as first_step, max(step) as last_step,
    abs(avg(nth) filter (is_high) - avg(nth) filter (not is_high)) / count(*) as distance,
    -- Of lengths that are all alike it is NaN.
    corr(is_high::int, length) filter (isfinite(length)) as r, if(isfinite(r), r, null) as with_length
  from (select r.*, y > edge as is_high from recent r, split)
)
select 'warning' as severity,
  format('the loss has two humps over the last {:,} rows: {:,} near {:.3g} and {:,} near {:.3g},'
    || ' none between {:.3g} and {:.3g}; the mean of {:.3g} describes neither', n, n_low, low, n_high, high,
      low_end, high_begin, mean)
    || if(abs(with_length) > 0.5, format(' (they go with avg_seq_len, r = {:.2f})', with_length), '') as sentence,
  list_filter([first_step, last_step], lambda step: step is not null) as steps,
  {'low': low, 'high': high, 'n_low': n_low, 'n_high': n_high, 'mean': mean, 'median': middle,
    'explained': between_groups / variance, 'r_avg_seq_len': with_length} as "values"
from humps, split
where n >= $min_rows and between_groups >= $explained * variance and least(n_low, n_high) >= $share * n
  and distance <= $apart;
