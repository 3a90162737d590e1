"""What jobs used of what they were given, measured right: unknown stays unknown and is counted."""
