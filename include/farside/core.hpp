// Far memory, atomics, collectives, futures and messages: what farside.hpp has besides containers
// and algorithms. It compiles in three fifths of the time.
#pragma once

#if __cplusplus < 202002L
#error \
    "farside: this compiler is not asked for C++20, which Farside needs: add -std=c++20 to its command line."
#endif

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
