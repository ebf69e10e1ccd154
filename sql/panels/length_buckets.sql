-- Accuracy and top-8 streak by length of the sequences, over the newest 2,000 rows in view (or N, by --last N). The
-- limits are `length_edges` of config.toml; both belong to mid. A bucket that no row falls into says "0 of N rows".
--
-- title: by sequence length
-- chart: table
-- order: 80
-- units: -, -, slots, rows, -
-- better: higher
-- requires: avg_seq_len, accuracy | ddtree_streak8
-- cache: run
with recent as (
  select avg_seq_len, accuracy, ddtree_streak8,
    case when not coalesce(isfinite(avg_seq_len), false) then null when avg_seq_len < $length_edges[1] then 'short'
      when avg_seq_len > $length_edges[2] then 'long' else 'mid' end as bucket
  from core where run = $run and step between $first and $last and step >= $recent
  order by generation desc, line_no desc limit coalesce($last_n, 2000)
),
buckets(pos, bucket, limits) as (values
  (1, 'short', format('< {:.6g}', $length_edges[1])),
  (2, 'mid', format('{:.6g}..{:.6g}', $length_edges[1], $length_edges[2])),
  (3, 'long', format('> {:.6g}', $length_edges[2]))),
figures as (
  select pos, any_value(b.bucket || ' ' || limits) as tokens, count(r.bucket) as n,
    avg(accuracy) filter (isfinite(accuracy)) as accuracy,
    avg(ddtree_streak8) filter (isfinite(ddtree_streak8)) as streak8,
    count_if(not isfinite(accuracy)) + count_if(not isfinite(ddtree_streak8)) as nonfinite
  from buckets b left join recent r on r.bucket = b.bucket group by pos
)
select tokens, accuracy, streak8, n, concat_ws('; ', format('{:,} of {:,} row{}', n, num_rows, if(num_rows = 1, '', 's')),
    if(nonfinite > 0, format('{:,} non-finite left out', nonfinite), null)) as note
from figures, (select count(*) as num_rows, count(avg_seq_len) as num_lengths from recent) where num_lengths > 0
order by pos;
