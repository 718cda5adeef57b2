"""What editors ask for, without any editor."""
