"""Alerts: thresholds for dead jobs, waiting jobs and missing workers, with a webhook or a command to notify."""
