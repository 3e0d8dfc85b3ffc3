"""The driver: a state machine behind one door, and the loop around it."""
