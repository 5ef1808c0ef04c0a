// Were the answers that clients got from a shared object possible, had their operations come one
// at a time? For tests, on any number of threads or ranks; plain C++20, no library behind it.
//
//   history.hpp         recording what clients do
//   map.hpp set.hpp queue.hpp counter.hpp
//                       how these behave when one operation comes after the other
//   specification.hpp   what it takes to write another
//   checker.hpp         check(history): the verdict, and a report where it is bad
#pragma once

#include "checker.hpp"
#include "counter.hpp"
#include "history.hpp"
#include "map.hpp"
#include "queue.hpp"
#include "set.hpp"
#include "specification.hpp"
