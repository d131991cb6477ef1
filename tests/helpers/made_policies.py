"""Small policies with layouts in the formats of others, joints in an order that is not the robot's."""

from pathlib import Path

import numpy as np
import onnx
import yaml
from onnx import TensorProto, helper, numpy_helper

MOTORS = ("a", "b", "c")  # as the SDK lists them
SLOTS = [2, 0, 1]  # the policy's: c, a, b


def save_linear(path: Path, weight: np.ndarray, *, batch: int | str = "batch") -> Path:
    """actions = obs @ weight."""
    nobs, naction = weight.shape
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["obs", "weight"], ["actions"])],
        "linear",
        [helper.make_tensor_value_info("obs", TensorProto.FLOAT, [batch, nobs])],
        [helper.make_tensor_value_info("actions", TensorProto.FLOAT, [batch, naction])],
        [numpy_helper.from_array(weight.astype(np.float32), "weight")],
    )
    return save_graph(path, graph)


def save_graph(path: Path, graph: onnx.GraphProto) -> Path:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    path.write_bytes(model.SerializeToString())
    return path


def rl_sar_files(folder: Path, config: dict | None = None, base: dict | None = None) -> Path:
    """config.yaml and base.yaml; entries may be changed, "absent" takes one away."""
    written_base = {
        "dt": 0.005,
        "decimation": 4,
        "num_of_dofs": 3,
        "wheel_indices": [],
        "joint_names": list(MOTORS),
        "joint_mapping": [0, 1, 2],
    }
    written = {
        "model_name": "policy.pt",
        "num_observations": 18,
        "observations": ["ang_vel", "gravity_vec", "commands", "dof_pos", "dof_vel", "actions"],
        "observations_history": [],
        "observations_history_priority": "time",
        "clip_obs": 100.0,
        "clip_actions_lower": [-4.0, -5.0, -6.0],
        "clip_actions_upper": [4.0, 5.0, 6.0],
        "rl_kp": [30.0, 10.0, 20.0],
        "rl_kd": [3.0, 1.0, 2.0],
        "action_scale": [0.5, 0.25, 0.125],
        "ang_vel_scale": 0.25,
        "dof_pos_scale": 1.0,
        "dof_vel_scale": 0.05,
        "commands_scale": [2.0, 2.0, 0.25],
        "torque_limits": [3.0, 1.0, 2.0],
        "default_dof_pos": [0.3, 0.1, 0.2],
        "joint_mapping": SLOTS,
    }
    _dump(folder / "base.yaml", {"toy": _changed(written_base, base)})
    return _dump(folder / "config.yaml", {"toy/walk": _changed(written, config)})


def deploy_file(folder: Path, changes: dict | None = None, terms: dict | None = None) -> Path:
    """deploy.yaml, gyro with two frames and joint positions with three."""
    observations = {
        "base_ang_vel": _term([0.2] * 3, 2),
        "velocity_commands": _term([1.0, 1.0, 2.0], 1),
        "joint_pos_rel": _term([1.0] * 3, 3),
        "last_action": _term([1.0] * 3, 1),
    }
    written = {
        "joint_ids_map": SLOTS,
        "step_dt": 0.02,
        "stiffness": [10.0, 20.0, 30.0],
        "damping": [1.0, 2.0, 3.0],
        "default_joint_pos": [0.3, 0.1, 0.2],
        "commands": {
            "base_velocity": {
                "ranges": {
                    "lin_vel_x": [-0.5, 1.0],
                    "lin_vel_y": [-0.3, 0.3],
                    "ang_vel_z": [-0.2, 0.2],
                    "heading": None,
                }
            }
        },
        "actions": {
            "JointPositionAction": {
                "clip": None,
                "joint_names": [".*"],
                "scale": [0.5, 0.25, 0.125],
                "offset": [0.31, 0.11, 0.21],
                "joint_ids": slice(None),
            }
        },
        "observations": _changed(observations, terms),
    }
    path = folder / "deploy.yaml"
    path.write_text(yaml.dump(_changed(written, changes), sort_keys=False))  # with Python's tag for the slice
    return path


def _term(scale: list[float], history: int) -> dict:
    return {"params": {}, "clip": None, "scale": scale, "history_length": history}


def _changed(written: dict, changes: dict | None) -> dict:
    return {key: value for key, value in (written | (changes or {})).items() if value != "absent"}


def _dump(path: Path, values: dict) -> Path:
    path.write_text(yaml.safe_dump(values, sort_keys=False))
    return path
