"""`python -m trueup`: the command of the same name."""

from trueup.cli import main

if __name__ == "__main__":
    main()
