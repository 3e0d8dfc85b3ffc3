"""A workflow file as a `Workflow`: head, rules, checks across them; all errors at once (`read.read`)."""
