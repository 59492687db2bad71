"""The program of a keeper. Run as a file, so that whoever looks at the list of processes can read what it is."""

import sys

if __name__ == "__main__":
    # The package, wherever it lies: a keeper is started without anything from the environment.
    sys.path.insert(0, __file__.removesuffix("/queuectl/process/keep.py"))
    from queuectl.process.keeper import main

    main()
