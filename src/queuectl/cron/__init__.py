"""Schedules: cron expressions, the decision what to run, the commands and the scheduler task."""
