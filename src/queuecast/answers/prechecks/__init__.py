"""A batch script looked at before it is submitted."""
