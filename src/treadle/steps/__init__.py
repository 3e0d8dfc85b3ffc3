"""Python steps: what they are, what they leave behind, and how one is made."""
