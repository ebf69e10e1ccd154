"""What is taken a picture of: a table of scenes for each part of the session."""
