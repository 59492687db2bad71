"""A worker that is always there: what the service managers of the system are told, and how they are asked."""
