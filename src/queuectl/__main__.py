"""`python -m queuectl` is the same program as `queuectl`."""

from queuectl.cli.main import main

if __name__ == "__main__":
    main()
