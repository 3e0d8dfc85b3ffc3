"""The static plan: tasks, their order, and every structural refusal."""
