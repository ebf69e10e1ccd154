-- The last step at which $run was evaluated; null when it never was.
select max(step) from evals where run = $run;
