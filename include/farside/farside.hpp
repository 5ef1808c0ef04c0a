// Far memory, whole: all of the core but messages (<farside/core/rpc.hpp>). Its parts can be
// included on their own; containers and algorithms have headers of their own:
// <farside/containers/hash_map.hpp> and so on.
#pragma once

#include <farside/core/accumulate.hpp>
#include <farside/core/atomics.hpp>
#include <farside/core/box.hpp>
#include <farside/core/collectives.hpp>
#include <farside/core/future.hpp>
#include <farside/core/memory.hpp>
#include <farside/core/mutex.hpp>
#include <farside/core/pieces.hpp>
#include <farside/core/print.hpp>
#include <farside/core/ptr.hpp>
#include <farside/core/rank_local.hpp>
#include <farside/core/ref.hpp>
#include <farside/core/rma.hpp>
#include <farside/core/runtime.hpp>
#include <farside/core/serialization.hpp>
#include <farside/core/statistics.hpp>
#include <farside/core/strided.hpp>
#include <farside/core/team.hpp>
