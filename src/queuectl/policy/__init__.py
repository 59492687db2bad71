"""The execution policy of this host: which programs jobs may run, and as which user."""
