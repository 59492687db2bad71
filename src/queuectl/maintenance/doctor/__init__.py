"""What is wrong here? One check a question, each by itself: see checks.py."""
