// The device suite, compiled for a GPU: one unit, as most of the time is for what all sources use.
#include "../map.cpp"
#include "../memory.cpp"
#include "../multiply.cpp"
#include "../queue.cpp"
#include "../room.cpp"
#include "../streams.cpp"
#include "suite.hpp"

int main(int argc, char** argv) { return far::run(argc, argv, far_test::test_main); }
