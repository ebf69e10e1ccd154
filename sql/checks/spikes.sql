-- Spikes of the gradient norm: rows above `factor` times the run's median, or above `least` times it and `spreads`
-- robust standard deviations of its logarithm away. A run whose norms scatter widely needs a higher spike to be told.
-- A model that knows nothing yet has large gradients: the warm-up that the `start` event declares (warmup_steps, or
-- warmup_ratio of total_steps) is left out, and the first `begin` of the log in any case, 20 lines at least.
--
-- title: gradient spikes
-- order: 30
-- requires: grad_norm
-- thresholds: factor = 500, least = 10, spreads = 8, begin = 0.04, min_rows = 100
-- cache: run
-- next: look at the loss and the batch at these steps; clip gradients (`max_grad_norm`) if they are not clipped
with seen as (
  select step, grad_norm as g, generation, line_no
  from core where run = $run and isfinite(grad_norm) and grad_norm > 0
),
whole as (
  select quantile_cont(ln(g), [0.25, 0.5, 0.75]) as q, exp(q[2]) as middle, (q[3] - q[1]) / 1.349 as spread,
    count(*) as n, min(generation) as first_generation, max(line_no) as num_lines
  from seen
),
starts as (
  select extra->'config' as c, last_value(coalesce(try_cast(extra->'config'->>'total_steps' as double),
      try_cast(extra->>'total_steps' as double)) ignore nulls) over (order by generation, line_no) as total
  from other_rows where run = $run and event = 'start'
),
declared as (
  select coalesce(max(coalesce(try_cast(c->>'warmup_steps' as double),
    round(try_cast(c->>'warmup_ratio' as double) * total))), 0) as warm
  from starts
),
high as (
  select step, g, generation * 1_000_000_000_000 + line_no as place, middle, g / middle as times
  from seen, whole, declared
  where n >= $min_rows and (step is null or step > warm)
    and (generation > first_generation or line_no > greatest(21, $begin * num_lines))
    and (g > $factor * middle or g > $least * middle and ln(g / middle) > $spreads * spread)
)
select 'warning' as severity,
  format('grad_norm spiked to {:.4g} at step {}, {} times its median of {:.3g}', max(g),
    coalesce(format('{:,}', arg_max(step, g)), '?'),
    if(max(times) < 1e6, format('{:,.0f}', max(times)), format('{:.3g}', max(times))), any_value(middle))
    || if(count(*) > 1, format('; {:,} more, the last at step {}', count(*) - 1,
      coalesce(format('{:,}', arg_max(step, place)), '?')), '') as sentence,
  (list(step order by g desc) filter (step is not null))[:20] as steps,
  {'max': max(g), 'step': arg_max(step, g), 'factor': max(times), 'median': any_value(middle),
    'n': count(*)} as "values"
from high having count(*) > 0;
