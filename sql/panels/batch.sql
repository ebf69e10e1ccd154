-- What a step is fed: sequences a batch, and tokens a sequence, by bucket of steps. `min` and `max` keep every outlier.
-- The headline is of the newest 3,000 rows in view (or N, by --last N): mean, and least to most.
--
-- title: batch
-- chart: spark x=step y=avg_batch_size,avg_seq_len
-- order: 90
-- units: step, sequences, sequences, sequences, tokens, tokens, tokens, rows, rows
-- requires: avg_batch_size | avg_seq_len
-- cache: buckets
with recent as (
  select if(isfinite(avg_batch_size), avg_batch_size, null) as b, if(isfinite(avg_seq_len), avg_seq_len, null) as l
  from core where run = $run and step between $first and $last and step >= $recent
  order by generation desc, line_no desc limit coalesce($last_n, 3000)
)
select concat_ws(' · ', format('size {:.4g} ({:.4g}-{:.4g})', avg(b), min(b), max(b)),
  format('length {:,.0f} ({:,.0f}-{:,.0f})', avg(l), min(l), max(l)), format('last {:,} row{}', count(*), if(count(*) = 1, '', 's')))
from recent;

with seen as (
  select step, step // $width as bucket, avg_batch_size, avg_seq_len,
    if(isfinite(avg_batch_size), avg_batch_size, null) as b, if(isfinite(avg_seq_len), avg_seq_len, null) as l
  from core
  where run = $run and step between $first and $last and (avg_batch_size is not null or avg_seq_len is not null)
)
select min(step) as step, avg(b) as avg_batch_size, min(b) as batch_min, max(b) as batch_max,
  avg(l) as avg_seq_len, min(l) as length_min, max(l) as length_max, count(*) as n,
  count(avg_batch_size) - count(b) + count(avg_seq_len) - count(l) as nonfinite
from seen group by bucket order by step;
