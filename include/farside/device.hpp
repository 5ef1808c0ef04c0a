// Device memory, kernels, containers and matrices in it: what needs a GPU, or its stand-in (docs/gpu.md).
#pragma once

#include <farside/algorithms/device_multiply.hpp>
#include <farside/containers/device_hash_map.hpp>
#include <farside/containers/device_matrix.hpp>
#include <farside/containers/device_queue.hpp>
#include <farside/containers/device_sparse_matrix.hpp>
#include <farside/core/device/device.hpp>
