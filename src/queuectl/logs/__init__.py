"""What jobs print: one file a job, bytes as they came."""
