"""What a user would pick instead, each doing the same job: accept over HTTP, keep durably, run a no-op in a worker.

These modules run in an environment of their own, which `benchmarks.workbench` prepares.
"""
