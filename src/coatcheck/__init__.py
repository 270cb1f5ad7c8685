"""Coatcheck: hand in work, keep the ticket, come back. A Python function as a durable asynchronous HTTP API."""

from coatcheck.app import App
from coatcheck.core.backoff import Backoff
from coatcheck.core.errors import ErrorCategory
from coatcheck.core.files import File
from coatcheck.declaration import DeclarationError
from coatcheck.execution.job import BlockingJob, Job
from coatcheck.execution.verdicts import JobError, RetryLater
from coatcheck.service import Service
from coatcheck.settings import Settings

__all__ = [
    "App",
    "Backoff",
    "BlockingJob",
    "DeclarationError",
    "ErrorCategory",
    "File",
    "Job",
    "JobError",
    "RetryLater",
    "Service",
    "Settings",
]
