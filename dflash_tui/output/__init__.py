"""Answers as text: how a value, a row, a report is written. Decides neither the format nor the colour."""
