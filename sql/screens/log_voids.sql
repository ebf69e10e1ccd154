-- The stretches of $run's log whose rows do not count: a later attempt logged their steps again.
-- One row a stretch: generation, first line, last line.
select generation, min(line_no), max(line_no)
from logged l semi join cuts a on a.run = l.run and a.attempt = l.attempt and l.step >= a.cut_step
where run = $run group by generation, attempt order by 1, 2;
