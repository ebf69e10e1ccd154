-- The lines of $run's log that are no record, the first $limit: generation, line_no, reason.
select generation, line_no, reason from rejects where run = $run order by generation, line_no limit $limit;
