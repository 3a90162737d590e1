"""What is asked for and not used, and the request that would do."""
