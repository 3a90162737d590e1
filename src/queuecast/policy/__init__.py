"""What the site allows: partitions, QOS, associations, nodes; who uses how much of it; and what that means for a request."""
