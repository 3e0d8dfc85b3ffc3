"""What happened: events, the journal, the past folded from it, the lock."""
