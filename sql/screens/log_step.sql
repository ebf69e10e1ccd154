-- Where the first row that counts at $step or later stands in $run's log: generation, line_no, step.
select generation, line_no, step from core where run = $run and step >= $step order by step, generation desc limit 1;
