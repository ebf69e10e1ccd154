-- What of the log is no figure: lines that are no record, losses and gradient norms that are not finite, rows that a
-- later attempt voided, rows without a step. All of it is kept; `dflash-tui query "select * from rejects"` shows the
-- lines.
--
-- title: log health
-- chart: table
-- order: 130
-- units: -, rows, -
-- window: run
-- cache: run
with seen as not materialized (
  select step, loss, grad_norm
  from core where run = $run and (step between $first and $last or $first is null)
),
counted as (
  select count(*) as rows, count(*) - count(step) as without_step, count(loss) - coalesce(count_if(isfinite(loss)), 0) as loss,
    count(grad_norm) - coalesce(count_if(isfinite(grad_norm)), 0) as grad_norm
  from seen
),
rejected as (
  select count(*) as n, arg_max(reason, generation * 1_000_000_000_000 + line_no) as reason,
    arg_max(line_no, generation * 1_000_000_000_000 + line_no) as line_no from rejects where run = $run
),
voided as (
  select count(*) as n from step_rows l join cuts c on c.run = l.run and c.attempt = l.attempt and l.step >= c.cut_step
  where l.run = $run and (l.step between $first and $last or $first is null)
)
select f.figure, f.value, f.note from counted, rejected, voided, (values
  (1, 'rows', rows, 'train rows that count'),
  (2, 'rejected', rejected.n,
    if(rejected.n > 0, format('{}the last at line {:,}: {}', if($first is null, '', 'in the whole log; '), line_no, reason),
      'every line is a record')),
  (3, 'voided', voided.n, 'by the first step of a later attempt'),
  (4, 'without_step', without_step, 'placed by their order'),
  (5, 'nonfinite.loss', loss, 'left out of every figure'),
  (6, 'nonfinite.grad_norm', grad_norm, 'left out of every figure')) f(pos, figure, value, note)
order by pos;
