-- A run without a train row: its checks are silent for want of anything to look at, not because it is well.
--
-- title: nothing to check
-- order: 1
-- next: look at what the trainer printed (`dflash-tui logs`)
select 'info' as severity,
  case when state in ('starting', 'running', 'stopping', 'orphaned')
      then 'training cannot be checked yet: no step is logged so far'
    when state = 'absent' then 'training cannot be checked: the log holds no step'
    else format('training cannot be checked: the run is {}, and its log holds no step; `dflash-tui logs` shows what it'
      || ' printed', concat(state, ' (' || reason || ')'))
    end as sentence,
  []::bigint[] as steps,
  {'state': state, 'reason': reason} as "values"
from runs where run = $run and not exists (select 1 from core where run = $run);
