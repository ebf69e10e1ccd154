-- Acceptance in training, by bucket of steps: the tokens that a block yields when the text before it is given, which are
-- its leading right slots and the target's own token. Real decoding is the panel `acceptance`; `min` and `max` keep
-- every outlier. The headline is of the newest 2,000 rows in view (or N, by --last N).
--
-- title: acceptance in training
-- chart: line x=step y=mean low=min high=max
-- order: 12
-- unit: tokens
-- units: step, tokens, tokens, tokens, rows, rows
-- better: higher
-- requires: accept_len
-- cache: buckets
with recent as (
  select accept_len as x from core where run = $run and step between $first and $last and step >= $recent
  order by generation desc, line_no desc limit coalesce($last_n, 2000)
)
select concat_ws(' · ', format('mean {:.4g}', avg(x) filter (isfinite(x))), format('last {:,} row{}', count(*), if(count(*) = 1, '', 's')))
from recent;

with seen as (
  select step, step // $width as bucket, if(isfinite(accept_len), accept_len, null) as y
  from core where run = $run and step between $first and $last and accept_len is not null
)
select min(step) as step, avg(y) as mean, min(y) as min, max(y) as max, count(y) as n, count(*) - count(y) as nonfinite
from seen group by bucket order by step;
