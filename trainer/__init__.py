"""Trains DFlash drafters. Needs torch, transformers and safetensors, and nothing else of this project.

    python -m trainer config.json

reads a config checked against `recipe_schema.json`, writes `train_log.jsonl` and `checkpoints/` into its `run_dir`, and
ends with 0 (all steps done), 75 (saved after SIGTERM or SIGINT), 2 (a bad config) or 1 (anything else).

    config                          what a run is told                  log, checkpoint         what it leaves behind
    target, cache                   the frozen model that is drafted    data, regenerate        its prompts and answers
    blocks, model, loss, metrics    the method                          schedule                lr and noise over steps
    decode, evaluate                what the drafter is worth           train                   the loop
"""
