-- How the gradient norms of the newest 2,000 rows in view (or N, by --last N) are spread, in equal steps of their
-- logarithm: one hump is usual, a long tail to the right is spikes, a second hump another kind of batch.
--
-- title: gradient norms, spread
-- chart: hist low=low high=high y=n
-- order: 55
-- scale: log
-- units: -, -, rows, rows
-- requires: grad_norm
-- cache: run
with recent as (
  select grad_norm, if(isfinite(grad_norm) and grad_norm > 0, ln(grad_norm), null) as y
  from core where run = $run and step between $first and $last and step >= $recent
  order by generation desc, line_no desc limit coalesce($last_n, 2000)
),
edges as (
  select min(y) as least, coalesce(nullif((max(y) - min(y)) / 30, 0), 0.01) as size,
    count_if(not isfinite(grad_norm)) as nonfinite from recent
),
bins as (
  select least(floor((y - least) / size), 29) as bin, count(*) as n from recent, edges where y is not null group by 1
)
select exp(least + bin * size) as low, exp(least + (bin + 1) * size) as high, n,
  if(row_number() over (order by bin) = 1, nonfinite, 0) as nonfinite
from bins, edges order by low;
