"""The rules: what a job is and what may happen to it. No IO, no clock, no chance: those are arguments."""
