"""Our own steps: the engine's, with all that it counts. Words: a shape, how many threads."""

from collections.abc import Callable

from tests.bench.ours import stepper
from tests.bench.shapes import Clock, Shape, serve


def make(shape: Shape) -> Callable[[int, Clock], float]:
    take = stepper(shape, shape.target_folder())

    def step(_index: int, clock: Clock) -> float:
        done = take()
        clock.target_s = done.seconds["target_fwd_s"]
        assert done.stepped and done.loss is not None
        return done.loss

    return step


serve(make)
