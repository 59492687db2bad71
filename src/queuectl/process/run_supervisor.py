"""The program of a supervisor, run as a file so that `ps` shows what it is."""

import sys

if __name__ == "__main__":
    # A supervisor is started in isolated mode, without anything from the environment: find the package from here.
    sys.path.insert(0, __file__.removesuffix("/queuectl/process/run_supervisor.py"))
    from queuectl.process.supervisor import main

    main()
