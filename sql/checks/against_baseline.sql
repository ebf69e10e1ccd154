-- Against the baseline (`[checks] baseline` in config.toml, or `--baseline`): the medians of the newest `rows` rows beside
-- those of the baseline at the same steps. Told is what is worse by `worse` of it and by `errors` standard errors, and a
-- gradient norm that is more than `factor` times larger or smaller. A baseline that has no such steps is told too.
--
-- title: against the baseline
-- order: 15
-- requires: loss | accuracy | ddtree_streak8 | accept_len | grad_norm | tok_per_sec | padding_eff
-- thresholds: rows = 2000, min_rows = 100, worse = 0.1, errors = 6, factor = 3
-- next: `dflash-tui compare` shows both side by side, and what their configs differ in
with mine as materialized (
  select true as is_mine, step, loss, accuracy, ddtree_streak8, accept_len, grad_norm, tok_per_sec, padding_eff
  from core where run = $run and $baseline is not null and step is not null and (step >= $recent or $recent is null)
  order by generation desc, line_no desc limit $rows::bigint
),
ends as (select min(step) as first_step, max(step) as last_step, count(*) as n_mine from mine),
theirs as materialized (
  select false as is_mine, step, loss, accuracy, ddtree_streak8, accept_len, grad_norm, tok_per_sec, padding_eff
  from core where run = $baseline and step >= (select first_step from ends) and step <= (select last_step from ends)
),
long_form as (
  select is_mine, v.*
  from (select * from mine union all select * from theirs), (values
    ('loss', loss, -1), ('accuracy', accuracy, 1), ('ddtree_streak8', ddtree_streak8, 1), ('accept_len', accept_len, 1),
    ('tok_per_sec', tok_per_sec, 1), ('padding_eff', padding_eff, 1),
    ('grad_norm', if(grad_norm > 0, grad_norm, null), 0)) v(metric, y, better)
  where isfinite(y)
),
sides as (
  select metric, any_value(better) as better, median(y) filter (is_mine) as mine, median(y) filter (not is_mine) as theirs,
    count(*) filter (is_mine) as n, count(*) filter (not is_mine) as n_theirs,
    quantile_cont(y, 0.75) filter (is_mine) - quantile_cont(y, 0.25) filter (is_mine) as spread,
    quantile_cont(y, 0.75) filter (not is_mine) - quantile_cont(y, 0.25) filter (not is_mine) as spread_theirs
  from long_form group by metric
),
-- The standard error of a median is 1.253 times that of a mean, and a quartile range 1.349 standard deviations.
held as (
  select *, mine / theirs as times, 0.929 * sqrt(spread ** 2 / n + spread_theirs ** 2 / n_theirs) as error
  from sides where n >= $min_rows and n_theirs >= $min_rows and theirs > 0
),
worse as (
  select * from held
  where if(better = 0, times > $factor or times < 1 / $factor,
    better * (mine - theirs) < -$errors * error and better * (times - 1) < -$worse)
),
told as (
  select 'warning' as severity, 1 as place, abs(ln(greatest(times, 1e-9))) as size,
    format('the median {} is {:.3g} over steps {:,}..{:,}, {:.3g} in the baseline {}: {}', metric, mine, first_step,
      last_step, theirs, (select any_value(name) from runs where run = $baseline),
      if(better = 0, format('{:.3g} times as much', times),
        format('{:.3g} % {}', 100 * abs(times - 1), if(times > 1, 'more', 'less')))) as sentence,
    [first_step, last_step] as steps, {'metric': metric, 'median': mine, 'baseline': theirs, 'n': n} as "values"
  from worse, ends
  union all
  select 'info', 0, 0,
    format('nothing was held against the baseline {}: it has {:,} row{} at steps {:,}..{:,}',
      (select any_value(name) from runs where run = $baseline), n_theirs, if(n_theirs = 1, '', 's'), first_step,
      last_step),
    [first_step, last_step], {'metric': null, 'median': null, 'baseline': null, 'n': n_theirs}
  from ends, (select count(*) as n_theirs from theirs) where n_mine >= $min_rows and n_theirs < $min_rows
)
select severity, sentence, steps, "values" from told order by place, size desc;
