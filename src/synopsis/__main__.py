"""`python -m synopsis`: the command line."""

from synopsis.cli import main

main()
