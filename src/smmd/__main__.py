"""``python -m smmd``: the command line."""

from smmd.cli import main

main()
