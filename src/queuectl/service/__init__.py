"""Run a worker as a service of systemd or launchd."""
