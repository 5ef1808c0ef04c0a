// The whole library: far memory, messages, containers and algorithms. Each header can be included
// on its own, too, which compiles faster.
#pragma once

#if __cplusplus < 202002L
#error \
    "farside: this compiler is not asked for C++20, which Farside needs: add -std=c++20 to its command line."
#endif

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
#include <farside/core/accumulate.hpp>
#include <farside/core/atomics.hpp>
#include <farside/core/box.hpp>
#include <farside/core/collectives.hpp>
#include <farside/core/distributed.hpp>
#include <farside/core/draft.hpp>
#include <farside/core/future.hpp>
#include <farside/core/in_order.hpp>
#include <farside/core/make_team.hpp>
#include <farside/core/memory.hpp>
#include <farside/core/mutex.hpp>
#include <farside/core/native.hpp>
#include <farside/core/pieces.hpp>
#include <farside/core/print.hpp>
#include <farside/core/ptr.hpp>
#include <farside/core/rank_local.hpp>
#include <farside/core/ref.hpp>
#include <farside/core/rma.hpp>
#include <farside/core/rpc.hpp>
#include <farside/core/runtime.hpp>
#include <farside/core/serialization.hpp>
#include <farside/core/statistics.hpp>
#include <farside/core/strided.hpp>
#include <farside/core/team.hpp>
