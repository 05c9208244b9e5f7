"""Many recordings: each diagnosed in a process of its own, on this machine or on a Dask cluster."""
