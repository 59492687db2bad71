"""The program of a relief. Run as a file, as that of a keeper."""

import sys

if __name__ == "__main__":
    # The package, wherever it lies: a relief is started without anything from the environment.
    sys.path.insert(0, __file__.removesuffix("/queuectl/process/relieve.py"))
    from queuectl.process.relieving import main

    main()
