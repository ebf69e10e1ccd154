-- What the newest `start` event of $run says beside its step and time.
select extra from other_rows where run = $run and event = 'start' order by generation desc, line_no desc limit 1;
