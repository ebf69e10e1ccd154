-- Stalled log: the run is in state running, and its log has said nothing for `seconds` and for `times` the usual time
-- between rows, by the time when its host was last heard. A host that is silent itself is another matter.
--
-- title: stalled log
-- order: 5
-- thresholds: seconds = 600, times = 20
-- next: look at what the trainer printed (`dflash-tui logs`), at its GPU (`dflash-tui hosts`), and at the disk
with running as (
  select coalesce(contact, $now) as heard, state_since from runs where run = $run and state = 'running'
),
newest as (
  select step, said, said - lag(said) over (order by generation, line_no) as gap
  from (
    select step, "time" as said, generation, line_no
    from records where run = $run and isfinite("time") and exists (select 1 from running)
    order by generation desc, line_no desc limit 200)
),
log as (select max(said) as said, arg_max(step, said) as step, median(gap) filter (gap > 0) as usual from newest),
silence as (
  select heard - greatest(said, state_since) as silent_s, usual, step, said is null as is_mute from running, log
)
select 'critical' as severity,
  if(is_mute, format('the run is running and has logged nothing for {:,.0f} s', silent_s),
    format('the log has stood still for {:,.0f} s at step {}', silent_s, coalesce(format('{:,}', step), '?'))
      || coalesce(format(', a row used to come every {:.3g} s', usual), '')) as sentence,
  list_filter([step], lambda s: s is not null) as steps,
  {'silent_s': silent_s, 'usual_s': usual} as "values"
from silence where silent_s > greatest($seconds, $times * coalesce(usual, 0));
