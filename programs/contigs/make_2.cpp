#include "make.hpp"

template void make_contigs<2>(const contig_job&);
