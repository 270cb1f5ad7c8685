"""`python -m coatcheck` is `coatcheck`."""

from coatcheck.cli.main import main

if __name__ == "__main__":
    main()
