"""How people fare: first success, early failures, recovery."""
