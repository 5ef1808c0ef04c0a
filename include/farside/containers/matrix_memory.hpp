// In which memory a distributed matrix lies: far::matrix<T> in that of hosts, which all programs have,
// far::matrix<T, far::device_memory> in that of GPUs (containers/device_matrix.hpp).
#pragma once

#include <farside/base/backend_choice.hpp>

#include <cstdint>

namespace far::inline FARSIDE_BACKEND {

/// The far memory of each rank, which far::ptr names. Local; no communication.
struct host_memory {};
/// The device memory of each rank, which far::device_ptr names. Local; no communication.
struct device_memory {};

template <class T, class Memory = host_memory>
class matrix;
template <class T, class I = std::int32_t, class Memory = host_memory>
class sparse_matrix;

}  // namespace far::inline FARSIDE_BACKEND
