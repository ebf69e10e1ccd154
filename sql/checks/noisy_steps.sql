-- Noisy against clean steps, side by side in time: the run is cut into 50 stretches, and in each the rows whose
-- noise_std is at most half of the stretch's highest are its clean ones. Only stretches in which both kinds come all
-- along count, so that learning does not pass for noise; a run whose noise moves slowly has none of them, and nothing
-- is told.
--
-- title: noisy steps are worse
-- order: 90
-- requires: noise_std, loss
-- thresholds: worse = 0.1, errors = 3, min_rows = 10
-- cache: run
-- next: less noise, or look whether it reaches what labels are made from (`noise.on = "all"`)
with seen as not materialized (
  select step, loss, noise_std, line_no,
    (generation, line_no * 50 // (select max(line_no) + 1 from core where run = $run)) as part
  from core where run = $run and isfinite(loss) and isfinite(noise_std)
),
highest as (select part, max(noise_std) as noise, max(line_no) - min(line_no) + 1 as num_lines from seen group by part),
parts as (
  select min(step) as first_step, max(step) as last_step, count(*) filter (is_noisy) as n_noisy,
    count(*) filter (not is_noisy) as n_clean, avg(loss) filter (is_noisy) as noisy,
    avg(loss) filter (not is_noisy) as clean,
    var_samp(loss) filter (is_noisy) / count(*) filter (is_noisy)
      + var_samp(loss) filter (not is_noisy) / count(*) filter (not is_noisy) as variance,
    abs(avg(line_no) filter (is_noisy) - avg(line_no) filter (not is_noisy)) / any_value(num_lines) as distance
  from (select s.*, noise_std > noise / 2 as is_noisy, num_lines from seen s join highest using (part)) group by part
),
sides as (
  select count(*) as num_parts, sum(n_noisy)::bigint as n_noisy, sum(n_clean)::bigint as n_clean,
    avg(noisy) as noisy, avg(clean) as clean,
    sqrt(sum(variance)) / count(*) as error, min(first_step) as first_step, max(last_step) as last_step
  from parts where n_noisy >= $min_rows and n_clean >= $min_rows and distance <= 0.25
)
select 'warning' as severity,
  format('steps with noise have a loss of {:.4g}, clean ones beside them {:.4g}: {:.3g} % worse ({:,} against'
    || ' {:,} rows in {:,} of 50 stretches)', noisy, clean, 100 * (noisy / clean - 1), n_noisy, n_clean,
      num_parts) as sentence,
  list_filter([first_step, last_step], lambda step: step is not null) as steps,
  {'noisy': noisy, 'clean': clean, 'worse_pct': 100 * (noisy / clean - 1), 'n_noisy': n_noisy,
    'n_clean': n_clean} as "values"
from sides where num_parts > 0 and clean > 0 and noisy > (1 + $worse) * clean and noisy - clean > $errors * error;
