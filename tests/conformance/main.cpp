// The conformance suite: the same tests on every back end and any number of ranks, which may be
// processes or threads. suite.hpp tells the arguments.
#include "suite.hpp"

int main(int argc, char** argv) { return far::run(argc, argv, far_test::test_main); }
