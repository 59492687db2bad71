"""The policy of this host: where it stands, what a program really is, and whether a job may run."""
