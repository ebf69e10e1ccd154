"""Makes the golden fixture known to every test of charts."""

from .chart_golden import golden

__all__ = ["golden"]
