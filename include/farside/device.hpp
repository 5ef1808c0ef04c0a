// Device memory, kernels and containers in them: what needs a GPU, or its stand-in (docs/gpu.md).
#pragma once

#include <farside/containers/device_hash_map.hpp>
#include <farside/containers/device_queue.hpp>
#include <farside/core/device/device.hpp>
