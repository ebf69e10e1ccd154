-- Two stretches of steps side by side: medians, their difference and percent, and how many rows each is made of. Which
-- two says `w` on the dashboard (3000..5000 vs 20000..23000) or `report --windows 3000..5000 20000..23000`; unless they
-- are asked for, the newest 2,000 steps in view (b) against the 2,000 before (a). NaN and infinities are left out.
--
-- title: two windows
-- chart: table
-- order: 4
-- units: -, -, -, %, -, rows, rows
-- cache: run
select format('a {:,}..{:,} · b {:,}..{:,}', coalesce($a_first, $last - 2 * size + 1), coalesce($a_last, $last - size),
  coalesce($b_first, $last - size + 1), coalesce($b_last, $last))
from (select greatest(1, least(2000, ($last - $first + 1) // 2)) as size);

with size as (select greatest(1, least(2000, ($last - $first + 1) // 2)) as size),
picked as (
  select 'a' as side, loss, accuracy, accept_len, ddtree_streak8, grad_norm, lr, noise_std, tok_per_sec, padding_eff,
    avg_batch_size, avg_seq_len
  from core, size where run = $run
    and step between coalesce($a_first, $last - 2 * size + 1) and coalesce($a_last, $last - size)
    and step >= coalesce($a_first, $last - 3999)
  union all
  select 'b', loss, accuracy, accept_len, ddtree_streak8, grad_norm, lr, noise_std, tok_per_sec, padding_eff,
    avg_batch_size, avg_seq_len
  from core, size where run = $run
    and step between coalesce($b_first, $last - size + 1) and coalesce($b_last, $last)
    and step >= coalesce($b_first, $last - 1999)
),
long_form as (
  unpivot picked on loss, accuracy, accept_len, ddtree_streak8, grad_norm, lr, noise_std, tok_per_sec, padding_eff,
    avg_batch_size, avg_seq_len into name metric value x
),
figures as (
  select metric, median(x) filter (side = 'a') as a, median(x) filter (side = 'b') as b,
    count_if(side = 'a') as n_a, count_if(side = 'b') as n_b
  from long_form where isfinite(x) group by metric
)
select metric, a, b, 100 * (b - a) / nullif(abs(a), 0) as pct, b - a as delta, n_a, n_b
from figures
order by list_position(['loss', 'accuracy', 'accept_len', 'ddtree_streak8', 'grad_norm', 'lr', 'noise_std',
  'tok_per_sec', 'padding_eff', 'avg_batch_size', 'avg_seq_len'], metric);
