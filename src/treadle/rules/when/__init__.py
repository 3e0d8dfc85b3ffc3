"""Conditions of rules: parsed, typed, evaluated."""
