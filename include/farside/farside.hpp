// The whole library: far memory, messages, containers and algorithms. Each header can be included
// on its own, too, which compiles faster.
#pragma once

#include <farside/core.hpp>

#include <farside/algorithms/exchange.hpp>
#include <farside/algorithms/hash_map_buffer.hpp>
#include <farside/algorithms/load_matrix.hpp>
#include <farside/algorithms/multiply.hpp>
#include <farside/algorithms/multiply_model.hpp>
#include <farside/algorithms/multiply_plan.hpp>
#include <farside/algorithms/on_keys.hpp>
#include <farside/algorithms/visit.hpp>
#include <farside/containers/array.hpp>
#include <farside/containers/bloom_filter.hpp>
#include <farside/containers/checksum_queue.hpp>
#include <farside/containers/circular_queue.hpp>
#include <farside/containers/counter.hpp>
#include <farside/containers/darray.hpp>
#include <farside/containers/fast_queue.hpp>
#include <farside/containers/hash_map.hpp>
#include <farside/containers/matrix.hpp>
#include <farside/containers/plain_bloom_filter.hpp>
#include <farside/containers/sparse_matrix.hpp>
#include <farside/containers/store.hpp>
