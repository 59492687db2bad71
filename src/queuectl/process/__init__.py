"""Operating system processes: making them, telling them apart, ending them, and knowing who is alive."""
