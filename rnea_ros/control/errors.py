"""Errors of the control room: one line each, naming the parameter, joint or point and what would be right."""


class ParameterError(ValueError):
    """A parameter, or the set of them, that cannot be used. Nothing of the set is taken."""


class Refusal(ValueError):
    """A request that is not granted. The arm stays in the mode it was in, and supported."""
