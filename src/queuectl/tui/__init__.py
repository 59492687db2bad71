"""The live view in the terminal. Needs the extra `tui`; only `queuectl top` loads it."""
