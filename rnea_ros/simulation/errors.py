"""What goes wrong when an arm is simulated."""


class SimulationError(ValueError):
    """A simulated arm that cannot be built or driven as asked; one line that names the joint, link or parameter."""
