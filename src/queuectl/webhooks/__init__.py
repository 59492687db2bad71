"""Webhooks: HTTP requests that report the result of a job, signed and protected against SSRF."""
