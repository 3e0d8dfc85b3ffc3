"""Rules times values gives drafts of tasks. The door is `expand.expand`."""
