-- What stands between the lines of $run's log: where attempts begin, and gaps, which are rows that come 20 times later
-- than usual (a minute at least), or steps that are left out. A mark stands above its line.
-- One row a mark, in the log's order, 500 at most: generation, line_no, kind, attempt, step, step before, seconds.
with seen as (
  select generation, line_no, attempt, step, lag(step) over w as before,
    if(isfinite("time"), "time", null) - lag(if(isfinite("time"), "time", null)) over w as seconds
  from step_rows where run = $run
  window w as (partition by attempt order by generation, line_no)
),
usual as (select median(step - before) as steps, median(seconds) as seconds from seen),
gaps as (
  select generation, line_no, 'gap' as kind, attempt, if(is_left_out, step, null) as step,
    if(is_left_out, before, null) as before, if(is_late, seconds, null) as seconds
  from (
    select s.*, s.step - before > 1.5 * u.steps as is_left_out, s.seconds > greatest(60, 20 * u.seconds) as is_late
    from seen s, usual u)
  where is_left_out or is_late
),
begins as (
  select generation, first_line as line_no, 'attempt' as kind, attempt, first_step as step, null, null
  from attempts where run = $run and attempt > 1
)
select * from (select * from begins union all select * from gaps)
order by generation, line_no, kind limit 500;
