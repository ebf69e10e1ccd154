"""What came back: mirrors of logs, the database made of them, and the ways to ask it."""
