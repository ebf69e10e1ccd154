"""Trains drafters as DFlash does (arXiv:2602.06036, "the paper" wherever modules name it).

Needs torch, transformers and safetensors, and nothing else of this project.

    python -m trainer config.json

reads a config checked against `recipe_schema.json`, writes `train_log.jsonl` and `checkpoints/` into its `run_dir`, and
ends with 0 (all steps done), 75 (saved after SIGTERM or SIGINT), 2 (a bad config) or 1 (anything else).

    config, errors              what a run is told, and how it can fail
    pretrained, target, taps    the frozen model: its files, running it, listening to it
    placement                   its layers on GPUs of their own
    cache, decode               decoding it, alone and with drafts
    rows, data, dataset, sequences  lines of a file, what became of them, and where it lies
    regenerate, server          what the target answers; a server that answers for it
    preparation                 the answers to all rows, as a run of its own
    capture, captured           the target's features of all of them, likewise; where they lie
    batches, schedule           what belongs to which step
    blocks, model, norm         the method: anchors and the drafter
    attention, structured       ways to attend, all to the same numbers
    loss, head, metrics, step   the objective, and what was right
    evaluate, comparison        what a drafter is worth; several side by side
    ddtree, tree_decode         drafts as trees
    checkpoint, zlab            what a run leaves for a server, and to go on from
    drafts, export              drafters of other people, and for other people's servers
    log, records                what it tells while it runs
    train, engine, feed         the loop, its step, and what the step is given
    optimizer, stop             how gradients become steps, and the wish to end
    ranks, launcher             several processes that do what one does
    selfcheck, promises         whether training means what decoding does, before days are spent
    run                         its edge: exit codes, and the one line for a person
"""
