"""What the commands do, each body importing what it needs; `cli.py` names them."""
