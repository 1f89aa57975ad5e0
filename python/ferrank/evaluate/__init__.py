"""Judging rankings: how well they predict, how stable they are, which is better."""
