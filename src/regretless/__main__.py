"""`python -m regretless` is the command `regretless`."""

from regretless.cli import main

if __name__ == "__main__":
    main()
