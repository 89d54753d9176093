"""`python -m regretless` is the command `regretless`."""

from regretless.cli import main

main()
