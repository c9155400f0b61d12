"""The one kind of error that input to the dynamics can cause."""


class DynamicsError(ValueError):
    """Input that the dynamics cannot use; one line that names the argument and, where possible, the joint."""
