-- What $run was started with, by the newest `start` event of rank 0: the keys that have no column, and those that have
-- one, but for what tells where it stands or was measured. Each a JSON object; a column may be null or no finite number.
with newest as (
  select * exclude (run, attempt, generation, line_no, event, rank, step, "time", epoch, tokens_total,
    resumed_from_step, seconds, mem_alloc_gb, mem_peak_gb, rss_gb)
  from records where run = $run and event = 'start' and coalesce(rank, 0) = 0
  order by generation desc, line_no desc limit 1
)
select extra, to_json(newest)::varchar from newest;
