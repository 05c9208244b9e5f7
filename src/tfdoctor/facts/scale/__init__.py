"""Several devices and hosts: how they are matched, and which of them delay the others."""
