"""The rules to apply: built-in rules and the user's own, as configured."""
