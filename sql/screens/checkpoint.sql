-- The newest checkpoint that the log of $run names.
select step, path, bytes, "time" from records
where run = $run and event = 'checkpoint' order by generation desc, line_no desc limit 1;
