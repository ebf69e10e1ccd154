-- How many lines of $run's log are no record.
select count(*) from rejects where run = $run;
