"""Asks the controller of `loop.py` all that does not belong to its loop, until SIGINT; then prints what was answered.

python -m benchmark.loop_client RATE
"""

from __future__ import annotations

import json
import sys
import time
from itertools import cycle

import rclpy
from lifecycle_msgs.srv import GetState
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import DescribeParameters, GetParameters, ListParameters, SetParameters
from rclpy.executors import ExternalShutdownException
from std_srvs.srv import Trigger

from rnea_ros.nodes.transport import leave_out_shared_memory

STIFFNESS = Parameter(
    name="feedforward_pd.ki", value=ParameterValue(type=ParameterType.PARAMETER_DOUBLE_ARRAY, double_array_value=[0.1])
)
REQUESTS = {
    "get_state": (GetState, GetState.Request()),
    "get_parameters": (GetParameters, GetParameters.Request(names=["feedforward_pd.kp", "law"])),
    "list_parameters": (ListParameters, ListParameters.Request()),
    "describe_parameters": (DescribeParameters, DescribeParameters.Request(names=["law"])),
    "set_parameters": (SetParameters, SetParameters.Request(parameters=[STIFFNESS])),
    "reset": (Trigger, Trigger.Request()),  # refused, as there is no fault
}


def main(rate: float) -> None:
    leave_out_shared_memory()
    rclpy.init()
    node = rclpy.create_node("client")
    clients = {name: node.create_client(kind, f"/rnea_controller/{name}") for name, (kind, _) in REQUESTS.items()}
    longest = dict.fromkeys(REQUESTS, 0.0)
    answers = 0
    try:
        for client in clients.values():
            client.wait_for_service()
        for name, (_, request) in cycle(REQUESTS.items()):
            asked = time.monotonic()
            future = clients[name].call_async(request)
            rclpy.spin_until_future_complete(node, future, timeout_sec=5.0)
            if not future.done():
                raise SystemExit(f"{name}: not answered within 5 s")
            took = time.monotonic() - asked
            longest[name] = max(longest[name], took)
            answers += 1
            time.sleep(max(0.0, 1.0 / rate - took))
    except (KeyboardInterrupt, ExternalShutdownException):
        print(json.dumps({"answers": answers, "longest": longest}), flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]))
