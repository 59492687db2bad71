"""Schedules: when they are due, and what is done about it. Pure rules; zones, time and chance are arguments."""
