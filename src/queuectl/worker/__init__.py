"""Running jobs: one process, one loop, N slots."""
