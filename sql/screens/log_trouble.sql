-- The next line of $run's log with something to look at: a line that is no record, a row whose loss or gradient norm is no
-- number, a warning. Nearest to line $line_no of $generation, behind it, or before it where $by is -1.
-- One row, or none: generation, line_no.
with trouble as (
  select generation, line_no from rejects where run = $run
  union all
  select generation, line_no from logged
  where run = $run and (not isfinite(loss) or not isfinite(grad_norm) or event = 'warn')
)
select generation, line_no from trouble
where if($by > 0, (generation, line_no) > ($generation, $line_no), (generation, line_no) < ($generation, $line_no))
order by generation * $by, line_no * $by limit 1;
