// Pinocchio's rnea over many states without Python: what a batch is compared with. Compiled by dynamics.py.

#include <pinocchio/algorithm/rnea.hpp>

struct Robot {
  pinocchio::Model model;
  pinocchio::Data data;
};

using Vector = Eigen::Map<const Eigen::VectorXd>;
using Pose = Eigen::Map<const Eigen::Matrix<double, 4, 4, Eigen::RowMajor>>;

// Revolute joints about z: parents (joints), poses (joints, 4, 4), inertias (joints, 10) as toDynamicParameters has them
extern "C" void *make(long joints, const long *parents, const double *poses, const double *inertias) {
  auto *robot = new Robot;
  for (long i = 0; i < joints; ++i) {
    const Pose pose(poses + 16 * i);
    const pinocchio::SE3 placement(pose.topLeftCorner<3, 3>(), pose.topRightCorner<3, 1>());
    const auto joint = robot->model.addJoint(parents[i], pinocchio::JointModelRZ(), placement, std::to_string(i));
    const auto inertia = pinocchio::Inertia::FromDynamicParameters(Vector(inertias + 10 * i, 10));
    robot->model.appendBodyToJoint(joint, inertia, pinocchio::SE3::Identity());
  }
  robot->data = pinocchio::Data(robot->model);
  return robot;
}

// q, v, a and tau: (states, joints)
extern "C" void rnea(void *made, const double *q, const double *v, const double *a, double *tau, long states) {
  auto &[model, data] = *static_cast<Robot *>(made);
  const long n = model.nv;
  for (long at = 0; at < states * n; at += n) {
    Eigen::Map<Eigen::VectorXd>(tau + at, n) =
        pinocchio::rnea(model, data, Vector(q + at, n), Vector(v + at, n), Vector(a + at, n));
  }
}
