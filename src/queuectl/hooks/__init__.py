"""Telling others over HTTP what became of a job: signed, to no address that it should not reach, and to no other one than that."""
