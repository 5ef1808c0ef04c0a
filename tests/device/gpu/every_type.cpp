// All types and inline functions that a unit of nvcc and one of g++ may have in common: see
// same_types_test.sh.
#include <farside/device.hpp>
#include <farside/farside.hpp>

#include <common/genome/collector.hpp>
#include <common/genome/count_table.hpp>
#include <common/genome/histogram.hpp>
#include <common/genome/input.hpp>
#include <common/genome/output_file.hpp>
#include <common/genome/progress.hpp>
#include <common/matrices/generators.hpp>
#include <common/progress_bar.hpp>
#include <common/run_program.hpp>
