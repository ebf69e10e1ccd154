-- The store's tables. All of them can be rebuilt from the mirrors; names of columns are the log's keys.
-- Applied whole when a database is made, and never again: a change raises the version in `store`.
--
-- Rules: no primary keys (idempotence comes from a cursor that moves in the transaction of its rows), no defaults that
-- ask the clock and no ALTER (both are DuckDB's weak spot when a write-ahead log is replayed), numbers are DOUBLE.

create table store (version integer not null);
insert into store values (7);

-- One row a run. `state`... are what its host said last; `contact` is when (unix seconds, this machine's clock).
create table registered (
  run varchar not null, name varchar not null, kind varchar not null, host varchar, path varchar, log varchar,
  created double, parent varchar, code_hash varchar, config json,
  state varchar not null, reason varchar, code integer, signal integer, attempt integer, pid bigint,
  state_since double, contact double
);

-- One row a stretch of a run between resumes. A row of an attempt counts while its step < cut_step: the first train step
-- of any later attempt voids what stood there before.
create table attempts (
  run varchar not null, attempt integer not null, generation integer not null, first_line bigint not null,
  first_step bigint, cut_step bigint not null, started double, resumed_from_step bigint
);

-- How far a run's mirror is in these tables. Moves in the same transaction as its rows.
create table cursors (
  run varchar not null, generation integer not null, byte_offset bigint not null, line_no bigint not null,
  attempt integer not null,
  before_step bigint, before_epoch double, -- the last train row of this generation
  last_step bigint, total_steps bigint -- of all of them, for people
);

-- What the log said beside what its host did: rows of their own, that a sweep writes at once with all that it read.
create view runs as select r.*, c.total_steps, c.last_step from registered r left join cursors c using (run);

-- Which keys a run has ever logged with a value, for panels that must say what is missing.
create table keys (run varchar not null, key varchar not null);

-- Every row as logged, the way it lies on disk; people read `records`. `event` is 'train' where the log names none.
-- Rows of training by rank 0 lie apart from all others: what is asked of a million steps need not look at each row
-- whether it is one, and evaluations are found without reading through the steps.
-- A column that is null costs 28 ns a row when it is written, so only what most logs have in every row is a column of
-- its own; the rest sits in families that are logged together: null, or a list of one. Of a null list nothing is
-- written of what would be in it; a large family costs a row that has only some of it.
create table step_rows (
  run varchar not null, attempt integer not null, generation integer not null, line_no bigint not null,
  event varchar not null, rank integer, step bigint, "time" double, epoch double,
  loss double, accuracy double, accept_len double, ddtree_streak8 double,
  lr double, grad_norm double, grad_clipped boolean, noise_std double,
  avg_batch_size double, avg_seq_len double, padding_eff double, tokens double, tok_per_sec double,
  objective struct(
    loss_ce double, loss_kl double, draft_top1_prob double, full_block_rate double, lr_muon double, gamma double,
    kl_weight double
  )[],
  often struct(
    supervised_share double, draft_tokens double, tokens_total double,
    step_time_s double, data_wait_s double, target_fwd_s double, fwd_s double, bwd_s double, opt_s double
  )[],
  machine struct(
    mem_alloc_gb double, mem_peak_gb double, rss_gb double, world_size double, micro_step double, n_blocks double
  )[],
  rare struct(
    name varchar, n_samples double, seconds double, eval_loss double,
    tau_linear_macro double, tau_linear_micro double, lookup_tau_macro double, lossless double,
    ddtree_tau_b8 double, ddtree_tau_b16 double, ddtree_tau_b32 double, ddtree_tau_b64 double,
    walk_accept_len double, tau_gap double,
    position_acc double[], prefix_acc double[], accept_hist bigint[], bucket_loss json,
    path varchar, best boolean, bytes double, reason varchar, exit_code double, resumed_from_step double
  )[],
  extra json
);
create table other_rows as from step_rows with no data;
create view logged as from step_rows union all from other_rows;

create view records as select
  run, attempt, generation, line_no, event, rank, step, "time", epoch,
  loss, objective[1].loss_ce as loss_ce, objective[1].loss_kl as loss_kl, accuracy, accept_len, ddtree_streak8,
  objective[1].draft_top1_prob as draft_top1_prob, objective[1].full_block_rate as full_block_rate,
  lr, objective[1].lr_muon as lr_muon, grad_norm, grad_clipped, noise_std,
  objective[1].gamma as gamma, objective[1].kl_weight as kl_weight,
  avg_batch_size, avg_seq_len, padding_eff, tokens, often[1].tokens_total as tokens_total,
  often[1].draft_tokens as draft_tokens, machine[1].n_blocks as n_blocks,
  often[1].supervised_share as supervised_share,
  tok_per_sec, often[1].step_time_s as step_time_s, often[1].data_wait_s as data_wait_s,
  often[1].target_fwd_s as target_fwd_s, often[1].fwd_s as fwd_s, often[1].bwd_s as bwd_s, often[1].opt_s as opt_s,
  machine[1].mem_alloc_gb as mem_alloc_gb, machine[1].mem_peak_gb as mem_peak_gb, machine[1].rss_gb as rss_gb,
  machine[1].world_size as world_size, machine[1].micro_step as micro_step,
  rare[1].name as name, rare[1].n_samples as n_samples, rare[1].seconds as seconds, rare[1].eval_loss as eval_loss,
  rare[1].tau_linear_macro as tau_linear_macro, rare[1].tau_linear_micro as tau_linear_micro,
  rare[1].lookup_tau_macro as lookup_tau_macro, rare[1].lossless as lossless,
  rare[1].ddtree_tau_b8 as ddtree_tau_b8, rare[1].ddtree_tau_b16 as ddtree_tau_b16,
  rare[1].ddtree_tau_b32 as ddtree_tau_b32, rare[1].ddtree_tau_b64 as ddtree_tau_b64,
  rare[1].walk_accept_len as walk_accept_len, rare[1].tau_gap as tau_gap,
  rare[1].position_acc as position_acc, rare[1].prefix_acc as prefix_acc, rare[1].accept_hist as accept_hist,
  rare[1].bucket_loss as bucket_loss,
  rare[1].path as path, rare[1].best as best, rare[1].bytes as bytes, rare[1].reason as reason,
  rare[1].exit_code as exit_code, rare[1].resumed_from_step as resumed_from_step, extra
from logged;

-- Lines that are no record. Lines and offsets count from 1 and 0 in the generation's file.
create table rejects (
  run varchar not null, generation integer not null, line_no bigint not null, byte_offset bigint not null,
  reason varchar not null, line varchar
);

-- What was seen of a run, from `events.jsonl`.
create table events (
  run varchar not null, "time" double not null, kind varchar not null, state varchar, reason varchar,
  code integer, signal integer, attempt integer, pid bigint, text varchar
);

-- The GPUs that a run was on, sampled while it was followed, from `gpus.jsonl`. What nobody could know is null.
create table gpus (
  run varchar not null, "time" double not null, gpu integer not null, name varchar, utilization_pct double,
  memory_used_mib double, memory_total_mib double, own_memory_mib double, temperature_c double, power_w double
);

-- Rows of an attempt count below its cut_step. Few attempts are cut, mostly none: an anti join with those costs nothing
-- to run, and half as much to plan as a left join with all.
create view cuts as select run, attempt, cut_step from attempts where cut_step < 9223372036854775807;

-- The train rows that count: rank 0, and not voided by a later attempt.
create view steps as
select r.* from records r anti join cuts a on a.run = r.run and a.attempt = r.attempt and r.step >= a.cut_step
where r.event = 'train' and coalesce(r.rank, 0) = 0;

-- `steps` the way they lie on disk.
create view counted as
from step_rows r anti join cuts a on a.run = r.run and a.attempt = r.attempt and r.step >= a.cut_step;

-- `steps` with the columns that lie in columns of their own, and no others: what a panel asks of it is planned in 2 ms
-- instead of 6, which is most of what panels take until a run has some 100,000 steps.
create view core as
select run, attempt, generation, line_no, step, "time", epoch, loss, accuracy, accept_len, ddtree_streak8, lr, grad_norm,
  grad_clipped, noise_std, avg_batch_size, avg_seq_len, padding_eff, tokens, tok_per_sec
from counted;

-- The evaluations that count, by the same rule (an evaluation at the step of a resume belongs to what came before it).
create view evals as
select r.* from records r anti join cuts a on a.run = r.run and a.attempt = r.attempt and r.step >= a.cut_step
where r.event = 'eval' and coalesce(r.rank, 0) = 0;
