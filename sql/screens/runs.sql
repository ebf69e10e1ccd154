-- What the list of runs shows of each run's rows: median loss and speed of its newest 2,000 steps, as the panel `loss` has it, and
-- the loss of the whole run in 16 points.
-- One row a run: run, loss_p50, tok_per_sec, losses.
with newest as (
  select s.run, median(loss) filter (isfinite(loss)) as loss_p50, avg(tok_per_sec) filter (isfinite(tok_per_sec)) as tok_per_sec
  from core s join runs r using (run) where s.step > r.last_step - 2000 group by s.run
),
points as (
  select s.run, s.step * 16 // (r.last_step + 1) as part, avg(loss) filter (isfinite(loss)) as loss
  from core s join runs r using (run) where s.step <= r.last_step group by all
),
sparks as (select run, list(loss order by part) as losses from points group by run)
select run, loss_p50, tok_per_sec, losses from newest full join sparks using (run) order by run;
