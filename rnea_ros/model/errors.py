"""The one kind of error that a robot description can cause."""


class ModelError(ValueError):
    """A robot description or model that cannot be used; one line that names the link, joint or frame."""
