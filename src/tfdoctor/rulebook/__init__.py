"""The rules to apply: built-in and own rules, selected and set by the configuration."""
