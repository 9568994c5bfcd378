"""What a forecast takes: two workloads, two loops, and how quiet the machine was."""
