-- Acceptance length of real decoding on held-out prompts, one evaluation after the other: tau of the drafter (the bonus
-- token included), and beside it tau of plain prompt-lookup on the same prompts. `lossless` is the share of prompts
-- decoded token for token; figures of few prompts scatter more than those of many. More evaluations than the chart has
-- room for are joined, `min` and `max` kept.
--
-- title: acceptance
-- chart: line x=step y=tau_linear_macro y2=lookup_tau_macro
-- order: 10
-- unit: tokens
-- units: step, tokens, tokens, tokens, tokens, -, evaluations, evaluations
-- better: higher
-- requires: evals.tau_linear_macro
-- window: run
-- cache: run
with figures as (
  select tau_linear_macro as tau, if(isfinite(lookup_tau_macro), lookup_tau_macro, null) as lookup,
    if(isfinite(lossless), lossless, null) as lossless, if(isfinite(n_samples), n_samples, null) as prompts,
    generation * 1_000_000_000_000 + line_no as place
  from evals where run = $run and (step between $first and $last or $first is null) and isfinite(tau_linear_macro)
),
newest as (select arg_max(f, place) as f, min(prompts) as fewest, max(prompts) as most from figures f)
select concat_ws(' · ', format('tau {:.4g}', f.tau), format('lookup {:.4g}', f.lookup),
  format('lossless {:.4g}', f.lossless), format('{:.0f} prompt', f.prompts) || if(f.prompts = 1, '', 's')
    || if(fewest < most, format(' ({:.0f}..{:.0f} in view)', fewest, most), ''))
from newest;

with seen as (
  select step, if(isfinite(tau_linear_macro), tau_linear_macro, null) as tau,
    if(isfinite(lookup_tau_macro), lookup_tau_macro, null) as lookup,
    if(isfinite(lossless), lossless, null) as lossless,
    row_number() over (order by generation, line_no) - 1 as nth, count(*) over () as num_evals
  from evals where run = $run and (step between $first and $last or $first is null) and tau_linear_macro is not null
)
select min(step) as step, avg(tau) as tau_linear_macro, min(tau) as min, max(tau) as max,
  avg(lookup) as lookup_tau_macro, min(lossless) as lossless, count(*) as n, count(*) - count(tau) as nonfinite
from seen group by nth * least($buckets, num_evals) // num_evals order by min(nth);
