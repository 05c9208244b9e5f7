"""Recordings and reports elsewhere: at URLs that fsspec knows, such as gs://, s3://, az:// and https://."""
