"""Every parameter of the simulator, declared once."""

from __future__ import annotations

from rnea_ros.control.parameters import Parameter

PARAMETERS: tuple[Parameter, ...] = (
    Parameter("robot_description", "string", "", "", "URDF as XML; empty: the file."),
    Parameter("robot_description_file", "string", "", "", "Path of a URDF or xacro file; a bare name is looked up in the package's `urdf` folder."),
    Parameter("joints", "string_array", (), "", "Joints to drive, in the order of the commands; the others are locked at zero. Empty: all that move."),
    Parameter("tip", "string", "", "", "The link that carries the payload and takes a push that names no link; empty: the end of a robot that has one."),
    Parameter("initial_positions", "double_array", (), "rad or m", "Where the joints stand at first, one value per joint; empty: zero, moved inside the position limits."),
    Parameter("rate", "double", 1000.0, "Hz", "Rate of physics and joint states.", lower=100.0, upper=2000.0),
    Parameter("gravity", "double_array", (0.0, 0.0, -9.81), "m/s²", "Gravity in the frame of the description's root.", lower=-100.0, upper=100.0),
    Parameter("adds_gravity", "bool", False, "", "The arm carries its own weight, as Franka's does; a payload is not known to it."),
    Parameter("encoder_noise", "double", 0.0, "rad or m", "Standard deviation of the measured position.", lower=0.0, upper=1.0),
    Parameter("velocity_noise", "double", 0.0, "rad/s or m/s", "Standard deviation of the measured velocity.", lower=0.0, upper=10.0),
    Parameter("viscous_friction", "double_array", (0.0,), "Nms/rad", "Viscous friction, per joint or one for all.", lower=0.0),
    Parameter("coulomb_friction", "double_array", (0.0,), "Nm", "Coulomb friction, per joint or one for all.", lower=0.0),
    Parameter("armature", "double_array", (0.0,), "kg m²", "Rotor inertia, per joint or one for all.", lower=0.0),
    Parameter("mass_scale", "double", 1.0, "", "Factor on mass and inertia of every link: the error of the description.", lower=0.1, upper=10.0),
    Parameter("payload", "double", 0.0, "kg", "Point mass at the tip that nobody was told of.", lower=0.0, upper=1000.0),
    Parameter("delay", "double", 0.0, "s", "From the arrival of a command to its torque, rounded to whole periods.", lower=0.0, upper=0.1),
    Parameter("loss", "double", 0.0, "", "Fraction of the commands that get lost.", lower=0.0, upper=1.0),
    Parameter("seed", "double", 0.0, "", "Seed of noise and loss.", lower=0.0, upper=4294967295.0),
    Parameter("push_timeout", "double", 0.2, "s", "A push ends this long after its last message.", lower=0.01, upper=10.0),
)  # fmt: skip
