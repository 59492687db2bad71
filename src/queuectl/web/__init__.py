"""The queue for browsers and for programs elsewhere: an HTTP API, a page, and what Prometheus asks for. An extra: see docs/guides/http-api.md."""
